// The quantities that ergotune knows by name, declared once: what each says, its unit, and when a number of
// it may be believed. Observers and other tools' recordings bring quantities of any other name.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ergotune/problem.hpp"

namespace ergotune {

/// Who may say it. A simulated device stands for all of them.
enum class Producer {
  device,        ///< its own events
  sensor,        ///< of power or energy
  monitor,       ///< the GPU's state while the kernel runs
  compiler,      ///< a property of the compiled code: the same in every round
  verification,  ///< the comparison of the outputs
  observer,      ///< one that was requested
  program,       ///< the system, of a whole program's run
};
std::string to_string(Producer producer);

struct QuantityInfo {
  std::string_view name;
  std::string_view unit;  ///< SI; empty for counts and ratios
  std::string_view meaning;
  Producer producer = Producer::device;
  /// Which way is better, where one is.
  std::optional<Direction> better;
  /// Must be above zero to be believed (and finite, as every quantity): a sensor that says otherwise has
  /// failed.
  bool positive = false;
  /// Always a model's value, in a measured session, too.
  bool modelled = false;

  /// Unavailable without a sensor or the GPU's monitor.
  bool needs_sensor() const { return producer == Producer::sensor || producer == Producer::monitor; }
  /// False where the rounds of a confirmation have nothing to average.
  bool averaged() const { return producer != Producer::compiler; }
};

/// All of them, in the order in which they are shown.
std::span<const QuantityInfo> quantities();
/// nullptr for a name that is none of ours. Those of one kernel among several are recognised by their prefix
/// ("time.NAME").
const QuantityInfo* quantity_info(std::string_view name);

/// What each of several kernels has for itself: "time.NAME", "occupancy.NAME".
std::vector<std::string> mix_quantities(const Problem& problem);

/// The unit of a metric (its own) or quantity; those of others are known by their ending ("ps_energy": J).
/// Empty where there is none or it is unknown.
std::string unit_of(std::string_view name, std::span<const Metric> metrics = {});
/// QuantityInfo::positive; of others by their ending: times, energies and powers are positive.
bool must_be_positive(std::string_view name);

}  // namespace ergotune
