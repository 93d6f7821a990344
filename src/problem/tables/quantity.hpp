// The quantities with built-in names, declared once: meaning, unit, and whether a value is plausible. Python's
// observers and recordings of other tools may add quantities with other names.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ergotune/objective.hpp"

namespace ergotune {

struct Problem;

/// What produces a quantity. A simulated device produces all of them.
enum class Producer {
  device,        ///< the device's own events
  sensor,        ///< a power or energy sensor
  monitor,       ///< the monitor of the GPU's state while the kernel runs
  compiler,      ///< the compiler: a property of the code, equal in every measurement
  verification,  ///< the comparison of outputs
  observer,      ///< an observer that the user requested
  program,       ///< the operating system, for a run of a whole program
};
std::string to_string(Producer producer);

struct QuantityInfo {
  std::string_view name;
  std::string_view unit;  ///< SI; empty for counts and ratios
  std::string_view meaning;
  Producer producer = Producer::device;
  /// The direction of improvement; nullopt if neither is better.
  std::optional<Direction> better;
  /// Values must be above zero; other values are those of a failed sensor and are rejected. (All quantities must be
  /// finite.)
  bool positive = false;
  /// Always a modelled value, even in a session with measured results.
  bool modelled = false;

  /// True if the quantity is unavailable without a sensor or the GPU's monitor.
  bool needs_sensor() const { return producer == Producer::sensor || producer == Producer::monitor; }
  /// True if confirmation repeats are averaged; false for properties of the code, which do not vary.
  bool averaged() const { return producer != Producer::compiler; }
};

/// Declares a quantity in the file of the observer that measures it: a constant at namespace scope, so that the
/// quantity is known in each program with the observer before that reads a problem. The arguments are those of
/// QuantityInfo.
struct ObservedQuantity {
  ObservedQuantity(std::string_view name, std::string_view unit, std::string_view meaning,
                   std::optional<Direction> better, bool positive);
};

/// All quantities, in the order in which they are displayed.
std::span<const QuantityInfo> quantities();
/// Returns nullptr for an unknown name. Quantities of one kernel of a workload ("time.NAME") are recognised by their
/// prefix.
const QuantityInfo* quantity_info(std::string_view name);

/// Returns the names of the quantities that each kernel of a workload has: "time.NAME", "occupancy.NAME".
std::vector<std::string> per_kernel_quantities(const Problem& problem);

/// Returns the unit of a metric or a quantity. For other names it is inferred from the ending ("ps_energy": J). Empty
/// if there is none or it is unknown.
std::string unit_of(std::string_view name, std::span<const Metric> metrics = {});
/// Returns QuantityInfo::positive. For other names it is inferred from the ending: times, energies and powers are
/// positive.
bool must_be_positive(std::string_view name);

}  // namespace ergotune
