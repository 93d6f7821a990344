// The kinds of devices there are: one entry each, and the only place that knows them by name
// (src/device/backends.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"

namespace ergotune::device {

struct Backend {
  /// DeviceInfo::backend, and the beginning of its devices' ids.
  std::string_view name;
  /// What its devices compile; the first that a kernel has a source in is taken.
  std::vector<Language> languages;
  /// Sources of another language that its compiler takes for the first of its own, where a kernel has none of those.
  std::vector<Language> takes = {};
  /// Its devices, best first. Gives nothing and a note where its driver is absent.
  std::vector<DeviceInfo> (*list)(std::string* note);
  /// `id` is one that list() gave. Throw UserError when the device has gone since.
  std::unique_ptr<Device> (*open)(const std::string& id);
  std::unique_ptr<Compiler> (*open_compiler)(const std::string& id);
  /// A compiler that needs no driver, for what stands behind "NAME:" in an id ("sm_90" in "cuda:sm_90");
  /// nullptr where that names a device. Null where there is no such compiler.
  std::unique_ptr<Compiler> (*open_driverless)(const std::string& target) = nullptr;
};

/// Best first.
const std::vector<Backend>& backends();
/// By DeviceInfo::backend. Throws Error for a name that is none.
const Backend& backend_named(std::string_view name);

/// Limits of devices that have no such limit: large enough never to exclude a configuration.
inline constexpr std::int64_t kNoLimit = 2147483647;

// What a backend's own files offer to its entry, and to its devices.
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
/// "AMD EPYC 7763 64-Core Processor": what code compiled with -march=native depends on.
std::string processor_name();

}  // namespace ergotune::device

namespace ergotune {

/// The source that devices of a backend compile; throws UserError naming the languages there are.
const KernelSource& source_for_device(const Kernel& kernel, std::string_view backend);
/// What that source is compiled as there: CUDA C++ as HIP where the device is AMD's.
Language language_on_device(const KernelSource& source, std::string_view backend);
/// True when the kernel has a source that this kind of device compiles.
bool has_source_for(const Kernel& kernel, std::string_view backend);

}  // namespace ergotune
