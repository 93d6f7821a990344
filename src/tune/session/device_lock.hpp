// Sessions on one device, of this user or another, measure one after another: side by side each would find the other's
// load in its times, and a clock that one has set would be in force for the other.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace ergotune {

/// Holds the device for this process until the last copy is gone; sessions of one process share it. Waits while another
/// process has it, and says so once; null when `interrupted` comes first, when ERGOTUNE_DEVICE_LOCK is "off", or where
/// there is no folder for locks. Devices that are the processor count as one. Throws UserError where it would have to
/// wait and `announce` is empty, Error where it has waited for `patience` s (0: it waits however long it takes).
std::shared_ptr<void> wait_for_lock(const DeviceInfo& device, const std::function<void(const std::string&)>& announce,
                                    const std::atomic<bool>* interrupted, double patience = 0);

/// The same for several, in an order of their own, so that two who want the same ones do not wait for each other. Where
/// one does not come (interrupted) none is held.
std::shared_ptr<void> wait_for_locks(std::vector<DeviceInfo> devices,
                                     const std::function<void(const std::string&)>& announce,
                                     const std::atomic<bool>* interrupted, double patience = 0);

}  // namespace ergotune
