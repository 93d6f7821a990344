// The observer "perf": what a processor counts while a round runs, through perf_event_open (Linux).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/observer.hpp"

namespace ergotune {

/// Throws UserError, with a suggestion, for a name that is no counter of processors.
void check_perf_names(const std::vector<std::string>& requested);
/// None requested: all that are to be had here; `notes` names the unavailable ones. Throws UserError for a device that
/// is no processor, for a counter that was named and is not to be had, and where this user may count nothing.
std::shared_ptr<Observer> make_perf_observer(const std::vector<std::string>& requested, const DeviceInfo& device,
                                             std::vector<std::string>* notes);

}  // namespace ergotune
