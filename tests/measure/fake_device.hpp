// A device without hardware: kernels are C++ functions, time is whatever the test says, every fault can be made.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace ergotune::test {

/// Memory of its own, or a part of another's.
struct FakeBuffer : Buffer {
  std::vector<std::byte> storage;
  std::span<std::byte> contents;
  std::size_t bytes() const override { return contents.size(); }
  float* floats() const { return reinterpret_cast<float*>(contents.data()); }
};

struct FakeQueue : Queue {
  explicit FakeQueue(std::string given) : name(std::move(given)) {}
  std::string name;
  double now = 0;  ///< of the main queue: FakeDevice::now
};

struct FakeLaunch {
  LaunchGeometry geometry;
  std::vector<FakeBuffer*> buffers;  ///< by argument, null for others
  std::vector<std::vector<std::byte>> scalars;
};

/// What a kernel does, and how long that takes, in s.
using FakeKernel = std::function<double(const FakeLaunch&)>;

class FakeDevice : public Device {
 public:
  DeviceInfo device_info;
  std::map<std::string, FakeKernel> kernels;             ///< by Binary::entry
  std::map<std::string, LoadedKernel::Resources> needs;  ///< likewise, where they are not the usual ones
  std::size_t memory = 1u << 30;
  std::size_t launches = 0, copies = 0, fills = 0;
  double now = 0;
  /// What was queued where, once there is more than the main queue: "q1: add", "q1 waits for main".
  std::vector<std::string> log;
  /// Thrown by the next synchronise().
  std::unique_ptr<DeviceError> fault;

  FakeDevice() {
    device_info.id = "fake:0";
    device_info.name = "fake device";
    device_info.backend = "opencl";
  }
  const DeviceInfo& info() const override { return device_info; }

  struct FakeCompiler : Compiler {
    Binary compile(const CompileJob& job) override { return {job.source, job.function, {}}; }
    std::string identity() const override { return "fake compiler"; }
  };
  std::unique_ptr<Compiler> make_compiler() override { return std::make_unique<FakeCompiler>(); }

  std::unique_ptr<Buffer> allocate(std::size_t bytes) override {
    if (bytes > memory) throw DeviceError(DeviceFault::out_of_memory, "no memory left");
    memory -= bytes;
    auto buffer = std::make_unique<FakeBuffer>();
    buffer->storage.resize(bytes);
    buffer->contents = buffer->storage;
    return buffer;
  }
  std::unique_ptr<Buffer> view(Buffer& whole, std::size_t offset, std::size_t bytes) override {
    auto buffer = std::make_unique<FakeBuffer>();
    buffer->contents = contents_of(whole).subspan(offset, bytes);
    return buffer;
  }
  std::unique_ptr<Buffer> wrap_buffer(void* native, std::size_t bytes) override {
    auto buffer = std::make_unique<FakeBuffer>();
    buffer->contents = {static_cast<std::byte*>(native), bytes};
    return buffer;
  }
  void write(Buffer& buffer, std::span<const std::byte> data, std::size_t offset = 0) override {
    std::copy(data.begin(), data.end(), contents_of(buffer).subspan(offset, data.size()).begin());
  }
  void read(const Buffer& buffer, std::span<std::byte> data, std::size_t offset = 0) override {
    const auto from = contents_of(buffer).subspan(offset, data.size());
    std::copy(from.begin(), from.end(), data.begin());
  }
  void copy(Buffer& to, const Buffer& from, Queue* = nullptr) override {
    ++copies;
    std::copy(contents_of(from).begin(), contents_of(from).end(), contents_of(to).begin());
  }
  void fill(Buffer& buffer, unsigned char byte, Queue* = nullptr) override {
    ++fills;
    const auto contents = contents_of(buffer);
    std::ranges::fill(contents, std::byte{byte});
    now += 1e-3;
  }
  static std::span<std::byte> contents_of(const Buffer& buffer) {
    return static_cast<const FakeBuffer&>(buffer).contents;
  }

  struct Loaded : LoadedKernel {
    std::string name;
    FakeKernel kernel;
    FakeLaunch launch;
    Resources needed{24, 512, 0, 1024};
    Resources resources() const override { return needed; }
    void bind(const LaunchGeometry& geometry, const std::vector<KernelArgument>& arguments) override {
      launch.geometry = geometry;
      launch.buffers.clear();
      launch.scalars.clear();
      for (const KernelArgument& argument : arguments) {
        launch.buffers.push_back(const_cast<FakeBuffer*>(static_cast<const FakeBuffer*>(argument.buffer)));
        launch.scalars.push_back(argument.scalar);
      }
    }
  };
  std::unique_ptr<LoadedKernel> load(const Binary& binary) override {
    auto loaded = std::make_unique<Loaded>();
    const auto kernel = kernels.find(binary.entry);
    if (kernel == kernels.end()) throw DeviceError(DeviceFault::launch, "no such function: " + binary.entry);
    loaded->name = binary.entry;
    loaded->kernel = kernel->second;
    if (const auto other = needs.find(binary.entry); other != needs.end()) loaded->needed = other->second;
    return loaded;
  }
  void launch(LoadedKernel& kernel, std::size_t count = 1, Queue* queue = nullptr) override {
    auto& loaded = static_cast<Loaded&>(kernel);
    for (std::size_t i = 0; i < count; ++i) {
      ++launches;
      if (queues > 0) log.push_back(name_of(queue) + ": " + loaded.name);
      clock_of(queue) += loaded.kernel(loaded.launch);
    }
  }

  std::size_t queues = 0;  ///< beside the main one, made so far
  std::vector<QueueOptions> queue_options;
  Queue& main_queue() override { return main_; }
  std::unique_ptr<Queue> make_queue(const QueueOptions& options = {}) override {
    queue_options.push_back(options);
    return std::make_unique<FakeQueue>("q" + std::to_string(++queues));
  }
  void wait(Queue& queue, const Marker& marker) override {
    const auto& awaited = static_cast<const FakeMarker&>(marker);
    log.push_back(name_of(&queue) + " waits for " + awaited.queue);
    clock_of(&queue) = std::max(clock_of(&queue), awaited.time);
  }
  /// Queues run side by side, each by its own clock.
  double& clock_of(Queue* queue) { return queue && queue != &main_ ? static_cast<FakeQueue&>(*queue).now : now; }
  std::string name_of(Queue* queue) { return (queue ? static_cast<FakeQueue&>(*queue) : main_).name; }

  struct FakeMarker : Marker {
    double time = -1;
    std::string queue;
  };
  std::unique_ptr<Marker> make_marker() override { return std::make_unique<FakeMarker>(); }
  void record(Marker& marker, Queue* queue = nullptr) override {
    static_cast<FakeMarker&>(marker).time = clock_of(queue);
    static_cast<FakeMarker&>(marker).queue = name_of(queue);
  }
  bool passed(const Marker&) override { return true; }
  double seconds_between(const Marker& start, const Marker& stop) override {
    return static_cast<const FakeMarker&>(stop).time - static_cast<const FakeMarker&>(start).time;
  }
  void synchronise() override {
    if (fault) {
      const DeviceError thrown = *fault;
      fault.reset();
      throw thrown;
    }
  }

 private:
  FakeQueue main_{"main"};
};

}  // namespace ergotune::test
