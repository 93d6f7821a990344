// The observer "counters": hardware counters of an NVIDIA GPU, measured in a separate phase after time and energy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/observer.hpp"

namespace ergotune {

/// The requested counters, resolved for a chip.
struct CounterPlan {
  std::vector<std::string> counters;             ///< names as requested
  std::vector<std::string> metrics;              ///< the chip's metrics from which they are computed, without
                                                 ///< duplicates
  std::vector<std::vector<std::size_t>> behind;  ///< for each counter: positions in `metrics`
  std::vector<std::string> missing;              ///< counters that this chip lacks
  std::size_t passes = 0;                        ///< launches needed for counting
};

/// Throws UserError, with a suggestion, for a name that is neither one of our counters nor in the form of a chip's
/// metric. Does not need CUPTI.
void check_counter_names(const std::vector<std::string>& requested);
/// Resolves counters for a chip; none requested: the default set. Our own counters that the chip lacks are left out and
/// listed in `missing`. Throws UserError for a chip's metric that it lacks, and for an empty plan. Uses only the host
/// side of CUPTI: no GPU is needed.
CounterPlan plan_counters(std::vector<std::string> requested, const std::string& chip,
                          std::span<const std::uint8_t> availability = {});
/// "20 counters in 2 further launches of each configuration ...", for people.
std::string to_string(const CounterPlan& plan, const std::string& chip);

/// Creates the observer for the device that is open on this thread. Throws UserError if the device has no counters, the
/// user may not read them, or CUPTI is missing. `notes` receives a summary of the plan.
std::shared_ptr<Observer> make_counters_observer(const std::vector<std::string>& requested, const DeviceInfo& device,
                                                 std::vector<std::string>* notes);

}  // namespace ergotune
