// The observer "perf": CPU counters during an iteration, read through perf_event_open (Linux).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/observer.hpp"

namespace ergotune {

/// Throws UserError, with a suggestion, for a name that is not a CPU counter.
void check_perf_names(const std::vector<std::string>& requested);
/// Creates the observer; none requested: all that are available here, and `notes` names the unavailable ones. Throws
/// UserError for a device that is not a CPU, for a requested counter that is unavailable, and if the user may not count
/// at all.
std::shared_ptr<Observer> make_perf_observer(const std::vector<std::string>& requested, const DeviceInfo& device,
                                             std::vector<std::string>* notes);

}  // namespace ergotune
