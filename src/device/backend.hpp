// What each backend offers to the list of devices. None of these throws for a driver that is absent: listing
// gives nothing and a note, opening gives nullptr.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ergotune/device/device.hpp"

namespace ergotune::device {

/// Limits of devices that have no such limit: large enough never to exclude a configuration.
inline constexpr std::int64_t kNoLimit = 2147483647;

std::vector<DeviceInfo> list_cuda(std::string* note);
std::vector<DeviceInfo> list_opencl(std::string* note);
std::vector<DeviceInfo> list_host(std::string* note);

/// `id` is one that list_*() gave.
std::unique_ptr<Device> open_cuda(const std::string& id);
std::unique_ptr<Device> open_opencl(const std::string& id);
std::unique_ptr<Device> open_host();

/// For "sm_90" and the like, without a driver.
std::unique_ptr<Compiler> make_cuda_compiler(const std::string& architecture);
/// For a listed device, without a context on it.
std::unique_ptr<Compiler> make_cuda_compiler_for(const std::string& id);
std::unique_ptr<Compiler> make_opencl_compiler(const std::string& id);
std::unique_ptr<Compiler> make_host_compiler();
/// "AMD EPYC 7763 64-Core Processor": what code compiled with -march=native depends on.
std::string processor_name();

}  // namespace ergotune::device
