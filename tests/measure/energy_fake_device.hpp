// A device whose kernels run on a GPU of the fake NVML: launches heat it, its sensors see them, markers pass in order.
#pragma once

#include <memory>

#include "device/device.hpp"
#include "fakes/nvml/fake_nvml.hpp"

namespace ergotune {

class GpuKernel : public LoadedKernel {
 public:
  explicit GpuKernel(const fake_nvml::WorkItem& item) : item(item) {}
  Resources resources() const override { return {}; }
  void bind(const LaunchGeometry&, const std::vector<KernelArgument>&) override {}
  fake_nvml::WorkItem item;
};

class GpuMarker : public Marker {
 public:
  std::uint64_t id = 0;
  mutable double time = -1;
};

class GpuDevice : public Device {
 public:
  explicit GpuDevice(fake_nvml::FakeNvml& nvml) : nvml_(nvml) {
    info_.id = "fake:0";
    info_.uuid = nvml.gpu().uuid;
  }
  const DeviceInfo& info() const override { return info_; }
  std::unique_ptr<Compiler> make_compiler() override { return nullptr; }
  std::unique_ptr<Buffer> allocate(std::size_t) override { return nullptr; }
  void write(Buffer&, std::span<const std::byte>, std::size_t) override {}
  void read(const Buffer&, std::span<std::byte>, std::size_t) override {}
  void copy(Buffer&, const Buffer&, Queue*) override {}
  void fill(Buffer&, unsigned char, Queue*) override {}
  std::unique_ptr<LoadedKernel> load(const Binary&) override { return nullptr; }

  /// A kernel of so many seconds at the top clock, split in a clock-bound and a fixed part.
  GpuKernel kernel(double clocked_seconds, double fixed_seconds, double activity) {
    fake_nvml::WorkItem item{};
    item.count = 1;
    item.mega_cycles = clocked_seconds * fake_nvml::top_clock(nvml_.gpu());
    item.seconds = fixed_seconds;
    item.activity = item.activity_low = activity;
    item.high_fraction = 1;
    return GpuKernel(item);
  }
  void launch(LoadedKernel& kernel, std::size_t count, Queue*) override {
    fake_nvml::WorkItem item = static_cast<GpuKernel&>(kernel).item;
    item.count = count;
    enqueue(item);
  }
  std::unique_ptr<Marker> make_marker() override { return std::make_unique<GpuMarker>(); }
  void record(Marker& marker, Queue* = nullptr) override {
    auto& m = static_cast<GpuMarker&>(marker);
    m.id = enqueue(fake_nvml::WorkItem{});
    m.time = -1;
  }
  bool passed(const Marker& marker) override {
    const auto& m = static_cast<const GpuMarker&>(marker);
    fake_nvml::Lock lock(nvml_.state());
    fake_nvml::advance(nvml_.state(), nvml_.gpu(), nvml_.now());
    if (nvml_.gpu().queue_head <= m.id) return false;
    if (m.time < 0) m.time = nvml_.gpu().queue[m.id % fake_nvml::kQueue].end;
    return true;
  }
  double seconds_between(const Marker& start, const Marker& stop) override {
    passed(start);
    passed(stop);
    return static_cast<const GpuMarker&>(stop).time - static_cast<const GpuMarker&>(start).time;
  }
  void synchronise() override {
    GpuMarker last;
    record(last);
    while (!passed(last)) {
      const timespec nap{0, 200000};
      nanosleep(&nap, nullptr);
    }
  }

 private:
  std::uint64_t enqueue(const fake_nvml::WorkItem& item) {
    fake_nvml::Lock lock(nvml_.state());
    return fake_nvml::enqueue(nvml_.state(), nvml_.gpu(), item);
  }
  fake_nvml::FakeNvml& nvml_;
  DeviceInfo info_;
};

}  // namespace ergotune
