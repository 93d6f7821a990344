// The observer "counters": hardware counters of an NVIDIA GPU, in a phase of its own after time and energy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/observer.hpp"

namespace ergotune {

/// What was requested, as a chip can count it.
struct CounterPlan {
  std::vector<std::string> counters;             ///< as they were named
  std::vector<std::string> metrics;              ///< the chip's own behind them, each once
  std::vector<std::vector<std::size_t>> behind;  ///< of each counter: positions in metrics
  std::vector<std::string> missing;              ///< counters that this chip does not have
  std::size_t passes = 0;                        ///< launches that counting takes
};

/// Throws UserError, with a suggestion, for a name that is neither a counter of ours nor looks like a chip's metric.
/// Needs no CUPTI.
void check_counter_names(const std::vector<std::string>& requested);
/// None requested: the usual. What a chip lacks of those that have a name of ours is left out and told in `missing`; a
/// metric of its own that it lacks is a UserError, as is a plan with nothing in it. The host side of CUPTI answers: no
/// GPU is needed.
CounterPlan plan_counters(std::vector<std::string> requested, const std::string& chip,
                          std::span<const std::uint8_t> availability = {});
/// "20 counters in 2 further launches of each configuration ..." for people.
std::string to_string(const CounterPlan& plan, const std::string& chip);

/// For the device that is open on this thread. Throws UserError where it has no counters, this user may not read them,
/// or CUPTI is not there. `notes` receives what is counted.
std::shared_ptr<Observer> make_counters_observer(const std::vector<std::string>& requested, const DeviceInfo& device,
                                                 std::vector<std::string>* notes);

}  // namespace ergotune
