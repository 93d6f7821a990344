// The device lock: sessions on one device, of any user, measure one after the other. Otherwise the load of one would
// affect the times of the other, and its clocks would be in force for both.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace ergotune {

/// Acquires the lock of a device; it is held by this process, whose sessions share it, until the last copy of the
/// result is released. While another process holds it, calls `announce` once and waits. Returns null if `interrupted`
/// is set meanwhile, if ERGOTUNE_DEVICE_LOCK is "off", or if there is no folder for locks. All CPU devices share one
/// lock. Throws UserError if it would have to wait and `announce` is empty.
std::shared_ptr<void> wait_for_lock(const DeviceInfo& device, const std::function<void(const std::string&)>& announce,
                                    const std::atomic<bool>* interrupted);

/// Acquires the locks of several devices in a fixed order, which prevents deadlocks. If interrupted, none is held.
std::shared_ptr<void> wait_for_locks(std::vector<DeviceInfo> devices,
                                     const std::function<void(const std::string&)>& announce,
                                     const std::atomic<bool>* interrupted);

}  // namespace ergotune
