// A device without hardware: kernels are C++ functions, time is whatever the test says, every fault can be
// made.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ergotune/device/device.hpp"

namespace ergotune::test {

struct FakeBuffer : Buffer {
  std::vector<std::byte> contents;
  std::size_t bytes() const override { return contents.size(); }
  float* floats() { return reinterpret_cast<float*>(contents.data()); }
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
  std::map<std::string, FakeKernel> kernels;  ///< by Binary::entry
  std::size_t memory = 1u << 30;
  std::size_t launches = 0, copies = 0, fills = 0;
  double now = 0;
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
    buffer->contents.resize(bytes);
    return buffer;
  }
  void write(Buffer& buffer, std::span<const std::byte> data) override {
    std::copy(data.begin(), data.end(), static_cast<FakeBuffer&>(buffer).contents.begin());
  }
  void read(const Buffer& buffer, std::span<std::byte> data) override {
    const auto& contents = static_cast<const FakeBuffer&>(buffer).contents;
    std::copy(contents.begin(), contents.end(), data.begin());
  }
  void copy(Buffer& to, const Buffer& from) override {
    ++copies;
    static_cast<FakeBuffer&>(to).contents = static_cast<const FakeBuffer&>(from).contents;
  }
  void fill(Buffer& buffer, unsigned char byte) override {
    ++fills;
    auto& contents = static_cast<FakeBuffer&>(buffer).contents;
    std::fill(contents.begin(), contents.end(), std::byte{byte});
    now += 1e-3;
  }

  struct Loaded : LoadedKernel {
    FakeKernel kernel;
    FakeLaunch launch;
    Resources resources() const override { return {24, 512, 0, 1024}; }
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
    loaded->kernel = kernel->second;
    return loaded;
  }
  void launch(LoadedKernel& kernel, std::size_t count) override {
    auto& loaded = static_cast<Loaded&>(kernel);
    for (std::size_t i = 0; i < count; ++i) {
      ++launches;
      now += loaded.kernel(loaded.launch);
    }
  }

  struct FakeMarker : Marker {
    double time = -1;
  };
  std::unique_ptr<Marker> make_marker() override { return std::make_unique<FakeMarker>(); }
  void record(Marker& marker) override { static_cast<FakeMarker&>(marker).time = now; }
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
};

}  // namespace ergotune::test
