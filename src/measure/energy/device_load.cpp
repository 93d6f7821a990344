#include "measure/energy/device_load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.hpp"
#include "device/backend.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"

namespace ergotune {

std::unique_ptr<KeepWarm> KeepWarm::make(Device& device) {
  try {
    return std::unique_ptr<KeepWarm>(new KeepWarm(device));
  } catch (const std::exception&) {
    return nullptr;
  }
}

bool KeepWarm::heat(double seconds) {
  try {
    load_.work_until(host_seconds() + seconds);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

namespace {

constexpr std::string_view kCudaHead = R"(
#define fma fmaf
#define LOCAL threadIdx.x
#define GLOBAL (blockIdx.x * blockDim.x + threadIdx.x)
extern "C" __global__ void ergotune_load(float* out, int steps)
)";
constexpr std::string_view kOpenClHead = R"(
#define LOCAL get_local_id(0)
#define GLOBAL get_global_id(0)
__kernel void ergotune_load(__global float* out, int steps)
)";
constexpr std::string_view kBody = R"({
  float x[8];
  for (int i = 0; i < 8; ++i) x[i] = 0.1f * i + 1e-3f * LOCAL;
  for (int s = 0; s < steps; ++s)
    for (int i = 0; i < 8; ++i) x[i] = fma(x[i], 0.9993f, 0.0007f * i);
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += x[i];
  out[GLOBAL] = sum;
}
)";

std::string with_body(std::string_view head) { return std::string(head).append(kBody); }

}  // namespace

DeviceLoad::DeviceLoad(Device& device) : device_(device) {
  Kernel kernel;
  kernel.sources = {{Language::cuda, {}, with_body(kCudaHead), {}}, {Language::opencl, {}, with_body(kOpenClHead), {}}};
  if (!has_source_for(kernel, device.info().backend))
    throw UserError(
        fmt::format("the load of ergotune runs through CUDA, HIP or OpenCL; {} is none of them", device.info().id));
  const KernelSource& source = source_for_device(kernel, device.info().backend);
  CompileJob job;
  job.language = language_on_device(source, device.info().backend);
  job.source = source.text;
  job.source_name = job.function = "ergotune_load";
  kernel_ = device.load(device.make_compiler()->compile(job));
  double units = 64;
  const auto& properties = device.info().properties;
  if (const auto found = properties.find("device.multiprocessors"); found != properties.end())
    units = std::max(1.0, found->second.as_real());
  geometry_.block[0] = 128;
  geometry_.grid[0] = static_cast<std::uint32_t>(16 * units);
  out_ = device.allocate(4ull * geometry_.block[0] * geometry_.grid[0]);
  marker_[0] = device.make_marker();
  marker_[1] = device.make_marker();
  // Launches of half a millisecond: short compared with all windows, long compared with the cost of a launch.
  int steps = 64;
  for (int i = 0; i < 12; ++i) {
    bind(steps);
    if (launch_seconds_ > 3e-4 && launch_seconds_ < 8e-4) break;
    steps = static_cast<int>(std::clamp(steps * 5e-4 / std::max(launch_seconds_, 1e-7), 1.0, 1e7));
  }
}

void DeviceLoad::bind(int steps) {
  KernelArgument buffer, scalar;
  buffer.buffer = out_.get();
  scalar.scalar.resize(sizeof steps);
  std::memcpy(scalar.scalar.data(), &steps, sizeof steps);
  kernel_->bind(geometry_, {buffer, scalar});
  launch_seconds_ = shortest_of(3);
}

double DeviceLoad::shortest_of(int launches) {
  double best = 1e9;
  for (int i = 0; i < launches; ++i) {
    device_.record(*marker_[0]);
    device_.launch(*kernel_);
    device_.record(*marker_[1]);
    device_.synchronise();
    best = std::min(best, device_.seconds_between(*marker_[0], *marker_[1]));
  }
  return std::max(best, 1e-9);
}

TimeSpan DeviceLoad::work_until(double end) {
  const double start = host_seconds();
  // Two small batches are in flight, so that the queue never runs empty and little remains at the end.
  const auto batch = static_cast<std::size_t>(std::max(1.0, 1e-3 / launch_seconds_));
  const double batch_seconds = static_cast<double>(batch) * launch_seconds_;
  std::size_t recorded = 0, passed = 0;
  while (true) {
    while (recorded < passed + 2 && host_seconds() + static_cast<double>(recorded - passed) * batch_seconds < end) {
      device_.launch(*kernel_, batch);
      device_.record(*marker_[recorded++ % 2]);
    }
    if (passed == recorded) break;
    if (device_.passed(*marker_[passed % 2]))
      ++passed;
    else
      std::this_thread::sleep_for(std::chrono::microseconds(30));
  }
  return {start, host_seconds()};
}

}  // namespace ergotune
