// Lists and opens devices; defaults of their optional features.
#include "device/device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"
#include "device/backend.hpp"
#include "device/decorator.hpp"
#include "device/driver_trial.hpp"
#include "ergotune/problem.hpp"

namespace ergotune {
namespace {

[[noreturn]] void unsupported(const Device& device, const char* what) {
  throw DeviceError(DeviceFault::unsupported, fmt::format("{} has no {}", device.info().id, what));
}

bool compiles(const DeviceInfo& device, const Problem& problem) {
  return std::ranges::all_of(problem.kernels,
                             [&](const Kernel& kernel) { return has_source_for(kernel, device.backend); });
}

/// True if `id`, as a user wrote it, names this device. The name of a backend refers to its first device.
bool is_named(const DeviceInfo& device, const std::string& id) {
  if (id == device.id || id == device.backend) return true;
  return !device.uuid.empty() && id == device.backend + ":" + device.uuid;
}

/// `for_cuda`: a GPU of NVIDIA was wanted.
[[noreturn]] void fail(const std::string& message, bool for_cuda, const std::vector<DeviceInfo>& devices,
                       const std::vector<std::string>& notes) {
  std::string text = message + "; devices here:";
  for (const auto& device : devices) text += fmt::format("\n  {} ({})", device.id, device.name);
  for (const auto& note : notes) text += "\n  unavailable: " + note;
  if (for_cuda && std::ranges::count(devices, "cuda", &DeviceInfo::backend) == 0)
    text +=
        "\nwithout an NVIDIA GPU: `ergotune space PROBLEM --profile h100 --compile 10` compiles for one that is not "
        "here, and the device sim:h100 shows a session with simulated values";
  throw UserError(text);
}

/// Adds a backend's devices. Does not throw: a broken driver must not hide the devices of others.
void add_devices(const device::Backend& backend, std::vector<DeviceInfo>& devices, std::vector<std::string>* notes) {
  std::string note;
  try {
    if (const std::string reason = device::left_out(backend.name); !reason.empty())
      throw Error(fmt::format("{}: {}", backend.name, reason));
    auto found = backend.list(&note);
    devices.insert(devices.end(), found.begin(), found.end());
  } catch (const std::exception& error) {
    note = error.what();
  }
  if (!note.empty() && notes) notes->push_back(note);
}

/// Returns the part of an id after "NAME:"; nullopt if the id belongs to another backend.
std::optional<std::string> target_in(const std::string& id, const device::Backend& backend) {
  if (!id.starts_with(backend.name)) return std::nullopt;
  if (id.size() == backend.name.size()) return std::string();
  if (id[backend.name.size()] != ':') return std::nullopt;
  return id.substr(backend.name.size() + 1);
}

DeviceInfo resolve_any(const Problem* problem) {
  std::vector<std::string> notes;
  const auto devices = list_devices(&notes);
  for (const auto& device : devices)
    if (!problem || compiles(device, *problem)) return device;
  std::vector<std::string> languages;
  for (const Kernel& kernel : problem->kernels) {
    for (const auto& source : kernel.sources) {
      const std::string language = to_string(source.language);
      if (std::ranges::find(languages, language) == languages.end()) languages.push_back(language);
    }
  }
  if (languages.empty())
    throw UserError(
        fmt::format("the problem \"{}\" has no kernel source: set one (source in its file, set_source() in Python); a "
                    "function of your own is tuned by ergotune.tune_callable",
                    problem->name));
  fail(fmt::format("no device here compiles a source of problem \"{}\" (it has {})", problem->name,
                   fmt::join(languages, ", ")),
       std::ranges::count(languages, to_string(Language::cuda)) > 0, devices, notes);
}

DeviceInfo resolve(const std::string& id, const Problem* problem) {
  if (id.empty()) return resolve_any(problem);
  // Loads only the driver of the requested backend, since starting the others takes time.
  for (const auto& backend : device::backends()) {
    std::vector<DeviceInfo> devices;
    if (target_in(id, backend)) add_devices(backend, devices, nullptr);
    for (const auto& device : devices)
      if (is_named(device, id)) return device;
  }
  std::vector<std::string> notes;
  const auto devices = list_devices(&notes);
  fail(fmt::format("there is no device \"{}\"", id), id.starts_with("cuda"), devices, notes);
}

DeviceDecorator& device_decorator() {
  static DeviceDecorator decorator;
  return decorator;
}

}  // namespace

std::unique_ptr<Buffer> Device::view(Buffer&, std::size_t, std::size_t) { unsupported(*this, "parts of buffers"); }
std::unique_ptr<Buffer> Device::wrap_buffer(void*, std::size_t) { unsupported(*this, "buffers of others"); }
std::unique_ptr<PinnedMemory> Device::pin(std::span<std::byte>) { return nullptr; }
void Device::launch_runs(std::span<const LaunchRun> runs, Queue* queue) {
  for (const LaunchRun& run : runs) launch(*run.kernel, run.count, queue);
}
std::unique_ptr<LaunchGraph> Device::record_graph(const std::function<void()>&) { return nullptr; }
void Device::launch_graph(LaunchGraph&) { unsupported(*this, "graphs of launches"); }
Queue& Device::main_queue() { unsupported(*this, "queues"); }
std::unique_ptr<Queue> Device::make_queue(const QueueOptions&) { unsupported(*this, "further queues"); }
std::unique_ptr<Queue> Device::wrap_queue(void*) { unsupported(*this, "queues of others"); }
void Device::wait(Queue&, const Marker&) { unsupported(*this, "queues that wait for each other"); }

void decorate_devices(DeviceDecorator decorator) { device_decorator() = std::move(decorator); }

std::vector<ArgumentSignature> signature_of(const std::vector<Argument>& arguments) {
  std::vector<ArgumentSignature> signature;
  for (const auto& argument : arguments)
    signature.push_back({argument.kind, argument.type, argument.name, argument.type_name,
                         argument.kind == Argument::Kind::scalar ? size_of(argument.fields) : 0, argument.access});
  return signature;
}

std::vector<DeviceInfo> list_devices(std::vector<std::string>* notes) {
  std::vector<DeviceInfo> devices;
  for (const auto& backend : device::backends()) add_devices(backend, devices, notes);
  return devices;
}

bool names_several_devices(const std::string& text) {
  if (text.starts_with("replay:")) return false;
  return text.find(',') != text.npos || text.ends_with(":all");
}

std::vector<DeviceInfo> devices_named(const std::string& text, const Problem* for_problem) {
  if (!names_several_devices(text)) return {resolve(text, for_problem)};
  std::vector<DeviceInfo> devices;
  const auto add = [&](DeviceInfo device) {
    if (std::ranges::any_of(devices, [&](const DeviceInfo& d) { return d.id == device.id; }))
      throw UserError(fmt::format("\"{}\" names {} twice", text, device.id));
    devices.push_back(std::move(device));
  };
  for (const std::string& part : split(text)) {
    if (part.empty()) throw UserError(fmt::format("\"{}\" has an empty place among its devices", text));
    if (!part.ends_with(":all")) {
      add(resolve(part, for_problem));
      continue;
    }
    const std::string backend = part.substr(0, part.size() - 4);
    std::vector<DeviceInfo> found;
    for (const auto& known : device::backends())
      if (known.name == backend) add_devices(known, found, nullptr);
    if (found.empty()) resolve(backend, for_problem);  // throws the error that lists the available devices
    for (DeviceInfo& device : found) add(std::move(device));
  }
  return devices;
}

std::vector<std::vector<DeviceInfo>> by_kind(const std::vector<DeviceInfo>& devices) {
  const auto same = [](const DeviceInfo& a, const DeviceInfo& b) {
    return a.backend == b.backend && a.name == b.name && a.driver_version == b.driver_version &&
           a.properties == b.properties;
  };
  std::vector<std::vector<DeviceInfo>> kinds;
  for (const DeviceInfo& device : devices) {
    const auto kind = std::ranges::find_if(kinds, [&](const auto& k) { return same(k.front(), device); });
    (kind == kinds.end() ? kinds.emplace_back() : *kind).push_back(device);
  }
  return kinds;
}

std::unique_ptr<Device> open_device(const std::string& id, const Problem* for_problem) {
  const DeviceInfo info = resolve(id, for_problem);
  std::unique_ptr<Device> device = device::backend_named(info.backend).open(info.id);
  return device_decorator().device ? device_decorator().device(std::move(device)) : std::move(device);
}

std::unique_ptr<Compiler> open_compiler(const std::string& id) {
  if (device_decorator().compiler)
    if (auto compiler = device_decorator().compiler(id)) return compiler;
  for (const auto& backend : device::backends()) {
    const auto target = target_in(id, backend);
    if (target && backend.open_driverless)
      if (auto compiler = backend.open_driverless(*target)) return compiler;
  }
  const DeviceInfo info = resolve(id, nullptr);
  return device::backend_named(info.backend).open_compiler(info.id);
}

}  // namespace ergotune
