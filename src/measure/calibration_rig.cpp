// Calibration on a real device: our own compute kernel as the load, the sensor read by a thread of its own.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/measure/calibration.hpp"

namespace ergotune {
namespace {

constexpr const char* kCudaSource = R"(
extern "C" __global__ void ergotune_load(float* out, int steps) {
  float x[8];
  for (int i = 0; i < 8; ++i) x[i] = 0.1f * i + 1e-3f * threadIdx.x;
  for (int s = 0; s < steps; ++s)
    for (int i = 0; i < 8; ++i) x[i] = fmaf(x[i], 0.9993f, 0.0007f * i);
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += x[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
)";
constexpr const char* kOpenClSource = R"(
__kernel void ergotune_load(__global float* out, int steps) {
  float x[8];
  for (int i = 0; i < 8; ++i) x[i] = 0.1f * i + 1e-3f * get_local_id(0);
  for (int s = 0; s < steps; ++s)
    for (int i = 0; i < 8; ++i) x[i] = fma(x[i], 0.9993f, 0.0007f * i);
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += x[i];
  out[get_global_id(0)] = sum;
}
)";

class DeviceRig : public CalibrationRig {
 public:
  DeviceRig(Device& device, std::unique_ptr<Sensor> sensor, std::unique_ptr<Sensor> meter)
      : device_(device), sensor_(std::move(sensor)), meter_(std::move(meter)) {
    CompileJob job;
    const bool cuda = device.info().backend == "cuda";
    if (!cuda && device.info().backend != "opencl")
      throw UserError(
          fmt::format("calibration drives its load through CUDA or OpenCL; {} is neither", device.info().id));
    job.language = cuda ? Language::cuda : Language::opencl;
    job.source = cuda ? kCudaSource : kOpenClSource;
    job.source_name = cuda ? "ergotune_load.cu" : "ergotune_load.cl";
    job.function = "ergotune_load";
    kernel_ = device.load(device.make_compiler()->compile(job));
    double units = 64;
    if (const auto found = device.info().properties.find("device.multiprocessors");
        found != device.info().properties.end())
      units = std::max(1.0, found->second.as_real());
    LaunchGeometry geometry;
    geometry.block[0] = 128;
    geometry.grid[0] = static_cast<std::uint32_t>(16 * units);
    out_ = device.allocate(4ull * geometry.block[0] * geometry.grid[0]);
    geometry_ = geometry;
    marker_[0] = device.make_marker();
    marker_[1] = device.make_marker();
    // Launches of half a millisecond: short against every window, long against the cost of launching.
    int steps = 64;
    for (int i = 0; i < 12; ++i) {
      bind(steps);
      const double seconds = time_of(1);
      if (seconds > 3e-4 && seconds < 8e-4) break;
      steps = static_cast<int>(std::clamp(steps * 5e-4 / std::max(seconds, 1e-7), 1.0, 1e7));
    }
  }

  const SensorInfo& sensor() const override { return sensor_->info(); }
  bool has_meter() const override { return meter_ != nullptr; }
  std::string meter_id() const override { return meter_ ? meter_->info().id : ""; }

  std::vector<double> read_costs() override {
    std::vector<double> costs;
    std::vector<Reading> ignored;
    for (int i = 0; i < 50; ++i) {
      const double before = host_seconds();
      if (sensor_->read(ignored) == ReadStatus::failed)
        throw Error(sensor_->info().id + ": " + sensor_->last_error());
      costs.push_back(host_seconds() - before);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return costs;
  }

  CalibrationTrace drive(const std::vector<double>& on_off, std::vector<Reading>* meter) override {
    CalibrationTrace trace;
    sensor_->restart();
    if (meter && meter_) meter_->restart();
    std::atomic<bool> stop = false;
    std::string failure;
    std::thread reader([&] {
      while (!stop) {
        const double before = host_seconds();
        if (sensor_->read(trace.readings) == ReadStatus::failed) failure = sensor_->last_error();
        if (meter && meter_) meter_->read(*meter);
        const double used = host_seconds() - before;
        std::this_thread::sleep_for(
            std::chrono::duration<double>(std::max(5e-4 - used, std::min(used, 5e-3))));
      }
    });
    try {
      // Against an absolute schedule, so that late wake-ups do not add up.
      double due = host_seconds();
      for (std::size_t i = 0; i < on_off.size(); ++i) {
        due += on_off[i];
        if (i % 2 == 0) {
          if (on_off[i] > 0) trace.busy.push_back(work_until(due));
        } else {
          std::this_thread::sleep_for(std::chrono::duration<double>(std::max(0.0, due - host_seconds())));
        }
      }
    } catch (...) {
      stop = true;
      reader.join();
      throw;
    }
    stop = true;
    reader.join();
    if (trace.readings.empty() && !failure.empty()) throw Error(sensor_->info().id + ": " + failure);
    return trace;
  }

 private:
  void bind(int steps) {
    KernelArgument buffer, scalar;
    buffer.buffer = out_.get();
    scalar.scalar.resize(sizeof steps);
    std::memcpy(scalar.scalar.data(), &steps, sizeof steps);
    kernel_->bind(geometry_, {buffer, scalar});
    launch_seconds_ = time_of(3);
  }
  double time_of(int launches) {
    double best = 1e9;
    for (int i = 0; i < launches; ++i) {
      device_.record(*marker_[0]);
      device_.launch(*kernel_);
      device_.record(*marker_[1]);
      device_.synchronise();
      best = std::min(best, device_.seconds_between(*marker_[0], *marker_[1]));
    }
    return best;
  }
  TimeSpan work_until(double end) {
    const double start = host_seconds();
    // Two small batches in flight: the queue never runs dry, and little is left when time is up.
    const auto batch = static_cast<std::size_t>(std::max(1.0, 1e-3 / launch_seconds_));
    std::size_t recorded = 0, passed = 0;
    while (true) {
      while (recorded < passed + 2 &&
             host_seconds() + static_cast<double>((recorded - passed) * batch) * launch_seconds_ < end) {
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

  Device& device_;
  std::unique_ptr<Sensor> sensor_, meter_;
  std::unique_ptr<LoadedKernel> kernel_;
  std::unique_ptr<Buffer> out_;
  std::unique_ptr<Marker> marker_[2];
  LaunchGeometry geometry_;
  double launch_seconds_ = 5e-4;
};

}  // namespace

std::unique_ptr<CalibrationRig> make_device_rig(Device& device, std::unique_ptr<Sensor> sensor,
                                                std::unique_ptr<Sensor> meter) {
  return std::make_unique<DeviceRig>(device, std::move(sensor), std::move(meter));
}

}  // namespace ergotune
