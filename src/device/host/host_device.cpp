// Runs host functions in the calling thread, timed with the monotonic clock.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>
#include <thread>

#include "base/clock.hpp"
#include "device/backend.hpp"
#include "device/host/host_call.hpp"

namespace ergotune::host {
namespace {

constexpr std::size_t kAlignment = 4096;  // a page: offsets do not vary, and vector loads cross no boundary

class HostBuffer : public Buffer {
 public:
  /// Memory that another owner frees.
  HostBuffer(std::byte* data, std::size_t bytes) : bytes_(bytes), data_(data), owned_(false) {}
  explicit HostBuffer(std::size_t bytes) : bytes_(bytes) {
    // Linux overcommits memory and kills processes later, so that impossible sizes are rejected here
    const auto memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    if (static_cast<double>(bytes) < memory && rounded >= bytes)
      data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
    if (!data_) throw DeviceError(DeviceFault::out_of_memory, fmt::format("no memory for a buffer of {} bytes", bytes));
  }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  ~HostBuffer() override {
    if (owned_) std::free(data_);
  }
  std::size_t bytes() const override { return bytes_; }
  void* native_handle() const override { return data_; }
  std::byte* data() const { return data_; }

 private:
  std::size_t bytes_;
  std::byte* data_ = nullptr;
  bool owned_ = true;
};

std::byte* data_of(const Buffer& buffer) { return static_cast<const HostBuffer&>(buffer).data(); }

struct HostMarker : Marker {
  double time = 0;
};

/// Returns the loader's message without the name of the temporary file at its beginning.
std::string why_not_loaded(const std::string& message) {
  constexpr std::string_view kMissing = "undefined symbol: ";
  const std::size_t at = message.find(kMissing);
  if (at == std::string::npos) return message;
  return fmt::format("error: neither the source nor what it is linked with has a function or variable \"{}\"",
                     message.substr(at + kMissing.size()));
}

/// A shared object with its function, open while a kernel uses it.
class Library {
 public:
  explicit Library(const Binary& binary) {
    // a unique name per object: the loader identifies objects by name, and would return the old one for a name that is
    // reused
    std::string path = (std::filesystem::temp_directory_path() / "ergotune-kernel-XXXXXX").string();
    const int descriptor = mkstemp(path.data());
    if (descriptor < 0) throw Error(fmt::format("cannot write a shared object to {}", path));
    close(descriptor);
    std::ofstream(path, std::ios::binary) << binary.bytes;
    library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* message = library_ ? nullptr : dlerror();
    unlink(path.c_str());
    if (!library_) throw DeviceError(DeviceFault::compile, why_not_loaded(message ? message : "dlopen failed"));
    call_ = reinterpret_cast<void (*)(void**)>(dlsym(library_, binary.entry.c_str()));
    auto* found = reinterpret_cast<int (*)()>(dlsym(library_, "ergotune_found"));
    if (!call_ || (found && !found())) {
      dlclose(library_);
      throw DeviceError(
          DeviceFault::compile,
          "the source has no such procedure: for one inside a module give the function as \"module::procedure\"");
    }
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    // A thread that was created while this object was loaded may execute its code, or that of its dependencies (such as
    // libgomp, whose threads outlive parallel regions): then the object stays loaded. Objects loaded later, when these
    // threads already exist, may be closed.
    if (!new_threads()) dlclose(library_);
  }
  void call(void** arguments) const { call_(arguments); }

 private:
  static std::set<std::string> threads() {
    std::set<std::string> numbers;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", ignored))
      numbers.insert(entry.path().filename().string());
    return numbers;
  }
  bool new_threads() const {
    const auto now = threads();
    return now.empty() || !std::includes(threads_before_.begin(), threads_before_.end(), now.begin(), now.end());
  }
  std::set<std::string> threads_before_ = threads();
  void* library_ = nullptr;
  void (*call_)(void**) = nullptr;
};

class HostKernel : public LoadedKernel {
 public:
  explicit HostKernel(std::shared_ptr<const Library> library) : library_(std::move(library)) {}

  Resources resources() const override { return {}; }
  std::unique_ptr<LoadedKernel> another() override { return std::make_unique<HostKernel>(library_); }
  void bind(const LaunchGeometry&, const std::vector<KernelArgument>& arguments) override {
    scalars_.clear();
    scratch_.clear();
    pointers_.clear();
    for (const auto& argument : arguments) {
      if (argument.buffer) {
        pointers_.push_back(data_of(*argument.buffer));
      } else if (argument.scalar.empty()) {  // local memory, which may have size 0
        scratch_.push_back(std::make_unique<HostBuffer>(argument.local_bytes));
        pointers_.push_back(scratch_.back()->data());
      } else {
        auto& room = scalars_.emplace_back(1 + argument.scalar.size() / sizeof(std::max_align_t));
        std::memcpy(room.data(), argument.scalar.data(), argument.scalar.size());
        pointers_.push_back(room.data());
      }
    }
  }
  void call() { library_->call(pointers_.data()); }

 private:
  std::shared_ptr<const Library> library_;
  std::vector<void*> pointers_;
  /// Aligned for all types; the generated call reads from them.
  std::vector<std::vector<std::max_align_t>> scalars_;
  std::vector<std::unique_ptr<HostBuffer>> scratch_;
};

std::int64_t system_value(int name) { return std::max<std::int64_t>(0, sysconf(name)); }

DeviceInfo describe() {
  DeviceInfo info;
  info.id = "host";
  info.backend = "host";
  info.name = device::processor_name();
  info.is_cpu = true;
  Constants& p = info.properties;
  p["device.name"] = info.name;
  for (const char* name :
       {"device.max_threads_per_block", "device.shared_memory_per_block", "device.shared_memory_per_multiprocessor",
        "device.registers_per_block", "device.registers_per_multiprocessor", "device.max_threads_per_multiprocessor",
        "device.max_blocks_per_multiprocessor"})
    p[name] = Value(device::kNoLimit);
  p["device.multiprocessors"] = Value(static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency())));
  p["device.multiprocessor_unit"] = Value(std::int64_t{0});
  p["device.warp_size"] = Value(std::int64_t{1});
  p["device.l2_bytes"] = Value(system_value(_SC_LEVEL3_CACHE_SIZE) > 0 ? system_value(_SC_LEVEL3_CACHE_SIZE)
                                                                       : system_value(_SC_LEVEL2_CACHE_SIZE));
  p["device.global_memory_bytes"] = Value(system_value(_SC_PHYS_PAGES) * system_value(_SC_PAGESIZE));
  p["device.compute_capability"] = Value(std::int64_t{0});
  return info;
}

class HostDevice : public Device {
 public:
  const DeviceInfo& info() const override { return info_; }
  std::unique_ptr<Compiler> make_compiler() override { return device::make_host_compiler(); }
  std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return std::make_unique<HostBuffer>(bytes); }
  std::unique_ptr<Buffer> view(Buffer& whole, std::size_t offset, std::size_t bytes) override {
    return std::make_unique<HostBuffer>(data_of(whole) + offset, bytes);
  }
  std::unique_ptr<Buffer> wrap_buffer(void* native, std::size_t bytes) override {
    return std::make_unique<HostBuffer>(static_cast<std::byte*>(native), bytes);
  }
  void write(Buffer& buffer, std::span<const std::byte> data, std::size_t offset) override {
    if (!data.empty()) std::memcpy(data_of(buffer) + offset, data.data(), data.size());
  }
  void read(const Buffer& buffer, std::span<std::byte> data, std::size_t offset) override {
    if (!data.empty()) std::memcpy(data.data(), data_of(buffer) + offset, data.size());
  }
  void copy(Buffer& to, const Buffer& from, Queue*) override {
    std::memcpy(data_of(to), data_of(from), std::min(to.bytes(), from.bytes()));
  }
  void fill(Buffer& buffer, unsigned char byte, Queue*) override { std::memset(data_of(buffer), byte, buffer.bytes()); }
  std::unique_ptr<LoadedKernel> load(const Binary& binary) override {
    return std::make_unique<HostKernel>(std::make_shared<const Library>(binary));
  }
  void launch(LoadedKernel& kernel, std::size_t count, Queue*) override {
    auto& host_kernel = static_cast<HostKernel&>(kernel);
    for (std::size_t i = 0; i < count; ++i) host_kernel.call();
  }
  std::unique_ptr<Marker> make_marker() override { return std::make_unique<HostMarker>(); }
  // Functions run when they are queued, so that all queues are equal and waiting has no effect.
  Queue& main_queue() override { return main_; }
  std::unique_ptr<Queue> make_queue(const QueueOptions& options) override {
    if (options.multiprocessors > 0)
      throw DeviceError(DeviceFault::unsupported, "functions on the host cannot have cores for themselves");
    return std::make_unique<Queue>();
  }
  std::unique_ptr<Queue> wrap_queue(void*) override { return std::make_unique<Queue>(); }
  void wait(Queue&, const Marker&) override {}
  void record(Marker& marker, Queue*) override { static_cast<HostMarker&>(marker).time = host_seconds(); }
  bool passed(const Marker&) override { return true; }
  double seconds_between(const Marker& start, const Marker& stop) override {
    return static_cast<const HostMarker&>(stop).time - static_cast<const HostMarker&>(start).time;
  }
  void synchronise() override {}

 private:
  DeviceInfo info_ = describe();
  Queue main_;
};

}  // namespace
}  // namespace ergotune::host

namespace ergotune::device {

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos && line.starts_with("model name")) return line.substr(colon + 2);
  }
  return "host CPU";
}

std::vector<DeviceInfo> list_host(std::string*) { return {host::describe()}; }
std::unique_ptr<Device> open_host() { return std::make_unique<host::HostDevice>(); }

}  // namespace ergotune::device
