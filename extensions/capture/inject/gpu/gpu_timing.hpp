// How long kernels take on the device, by a pair of events around each launch: where no kernel is named.
#pragma once

#include <memory>

#include "capture/inject/gpu/gpu_driver.hpp"
#include "capture/inject/kernel_log.hpp"

namespace ergotune::inject::gpu {

/// An event before the launch; null where none is taken.
Handle start_timing(Handle stream);
/// One behind it.
void stop_timing(const std::shared_ptr<KernelLog::Entry>& entry, Handle started, Handle stream);
/// Takes the times of launches that have ended.
void collect_times();

}  // namespace ergotune::inject::gpu
