// The list of devices over all backends, and opening by id.
#include <fmt/format.h>

#include <algorithm>

#include "device/backend.hpp"

namespace ergotune {
namespace {

bool compiles(const DeviceInfo& device, const Problem& problem) {
  const auto any = [&](std::initializer_list<Language> languages) {
    return std::any_of(languages.begin(), languages.end(),
                       [&](Language language) { return problem.kernel().source_for(language) != nullptr; });
  };
  if (device.backend == "cuda") return any({Language::cuda});
  if (device.backend == "opencl") return any({Language::opencl});
  return any({Language::c, Language::cpp, Language::fortran});
}

/// True when `id`, as a user wrote it, names this device. "cuda" and "opencl" name the backend's first.
bool is_named(const DeviceInfo& device, const std::string& id) {
  if (id == device.id || id == device.backend) return true;
  return !device.uuid.empty() && id == device.backend + ":" + device.uuid;
}

[[noreturn]] void fail(const std::string& message, const std::vector<DeviceInfo>& devices,
                       const std::vector<std::string>& notes) {
  std::string text = message + "; devices here:";
  for (const auto& device : devices) text += fmt::format("\n  {} ({})", device.id, device.name);
  for (const auto& note : notes) text += "\n  not here: " + note;
  throw UserError(text);
}

DeviceInfo resolve(const std::string& id, const Problem* problem) {
  std::vector<std::string> notes;
  const auto devices = list_devices(&notes);
  for (const auto& device : devices)
    if (id.empty() ? !problem || compiles(device, *problem) : is_named(device, id)) return device;
  if (id.empty()) {
    std::string languages;
    for (const auto& source : problem->kernel().sources)
      languages += (languages.empty() ? "" : ", ") + to_string(source.language);
    fail(fmt::format("no device here compiles a source of problem \"{}\" (it has {})", problem->name,
                     languages.empty() ? "none" : languages),
         devices, notes);
  }
  fail(fmt::format("there is no device \"{}\"", id), devices, notes);
}

}  // namespace

std::vector<ArgumentSignature> signature_of(const std::vector<Argument>& arguments) {
  std::vector<ArgumentSignature> signature;
  for (const auto& argument : arguments) signature.push_back({argument.kind, argument.type});
  return signature;
}

std::vector<DeviceInfo> list_devices(std::vector<std::string>* notes) {
  std::vector<DeviceInfo> devices;
  for (auto* list : {device::list_cuda, device::list_opencl, device::list_host}) {
    std::string note;
    try {
      auto found = list(&note);
      devices.insert(devices.end(), found.begin(), found.end());
    } catch (const std::exception& error) {
      note = error.what();  // a driver that is there but broken must not hide the others
    }
    if (!note.empty() && notes) notes->push_back(note);
  }
  return devices;
}

std::unique_ptr<Device> open_device(const std::string& id, const Problem* for_problem) {
  const DeviceInfo info = resolve(id, for_problem);
  if (info.backend == "cuda") return device::open_cuda(info.id);
  if (info.backend == "opencl") return device::open_opencl(info.id);
  return device::open_host();
}

std::unique_ptr<Compiler> open_compiler(const std::string& id) {
  if (id == "host") return device::make_host_compiler();
  if (id.starts_with("cuda:sm_")) return device::make_cuda_compiler(id.substr(5));
  const DeviceInfo info = resolve(id, nullptr);
  if (info.backend == "cuda") return device::make_cuda_compiler_for(info.id);
  if (info.backend == "opencl") return device::make_opencl_compiler(info.id);
  return device::make_host_compiler();
}

}  // namespace ergotune
