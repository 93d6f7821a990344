// The backends, one entry each. Only src/device/backends.cpp refers to them by name.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"

namespace ergotune::device {

struct Backend {
  /// DeviceInfo::backend, and the prefix of the ids of its devices.
  std::string_view name;
  /// Languages that its devices compile; the first one in which a kernel has a source is used.
  std::vector<Language> languages;
  /// Languages whose sources its compiler accepts as its first language, if a kernel has none in `languages`.
  std::vector<Language> takes = {};
  /// Returns its devices, best first; returns none and sets `note` if the driver is missing.
  std::vector<DeviceInfo> (*list)(std::string* note);
  /// `id` is the id of a listed device. Both throw UserError if the device does not exist any more.
  std::unique_ptr<Device> (*open)(const std::string& id);
  std::unique_ptr<Compiler> (*open_compiler)(const std::string& id);
  /// Returns a compiler that needs no driver, for the part of an id after "NAME:" ("sm_90" in "cuda:sm_90"); nullptr if
  /// that part names a device. Null if the backend has no such compiler.
  std::unique_ptr<Compiler> (*open_driverless)(const std::string& target) = nullptr;
};

/// All backends, best first.
const std::vector<Backend>& backends();
/// Finds a backend by DeviceInfo::backend. Throws Error for an unknown name.
const Backend& backend_named(std::string_view name);

/// Value of limits that a device does not have: large enough never to exclude a configuration.
inline constexpr std::int64_t kNoLimit = 2147483647;

// Functions of the backends for the table of entries and for devices.
std::vector<DeviceInfo> list_cuda(std::string* note);
std::unique_ptr<Device> open_cuda(const std::string& id);
std::unique_ptr<Compiler> make_cuda_compiler_for(const std::string& id);
std::unique_ptr<Compiler> make_cuda_compiler(const std::string& architecture);

std::vector<DeviceInfo> list_hip(std::string* note);
std::unique_ptr<Device> open_hip(const std::string& id);
std::unique_ptr<Compiler> make_hip_compiler_for(const std::string& id);
std::unique_ptr<Compiler> make_hip_compiler(const std::string& architecture);

std::vector<DeviceInfo> list_opencl(std::string* note);
std::unique_ptr<Device> open_opencl(const std::string& id);
std::unique_ptr<Compiler> make_opencl_compiler(const std::string& id);

std::vector<DeviceInfo> list_host(std::string* note);
std::unique_ptr<Device> open_host();
std::unique_ptr<Compiler> make_host_compiler();
/// Returns "AMD EPYC 7763 64-Core Processor"; code compiled with -march=native depends on it.
std::string processor_name();

}  // namespace ergotune::device

namespace ergotune {

struct Kernel;

/// Returns the source that devices of a backend compile. Throws UserError that lists the existing languages.
const KernelSource& source_for_device(const Kernel& kernel, std::string_view backend);
/// Returns the language as which that source is compiled: CUDA C++ is compiled as HIP on AMD devices.
Language language_on_device(const KernelSource& source, std::string_view backend);
/// True if the kernel has a source that devices of the backend compile.
bool has_source_for(const Kernel& kernel, std::string_view backend);

}  // namespace ergotune
