// Work on the first fake GPU for kernels that run on the host: a launch lasts as long as the GPU's clock makes it,
// and heats it. A kernel finds this in the library that ERGOTUNE_NVML names (work.h).
#include <cstdlib>
#include <string>

#include "presets.hpp"

namespace {

fake_nvml::State* gpu_state() {
  const char* path = std::getenv("ERGOTUNE_FAKE_NVML_STATE");
  static std::string mapped;
  static fake_nvml::State* state = nullptr;
  // A process may have gone on to another GPU.
  if (path && path != mapped) state = fake_nvml::map_state(mapped = path, "");
  return state;
}

}  // namespace

/// Calls of this library so far, by all processes: what a program that measures itself counts while it runs.
extern "C" __attribute__((visibility("default"))) unsigned long long fake_nvml_calls() {
  fake_nvml::State* state = gpu_state();
  if (!state) return 0;
  const fake_nvml::Lock lock(*state);
  return state->calls;
}

/// `mega_cycles` / clock in MHz + `seconds` at `activity` (0 idle, 1 full), waiting for its end.
extern "C" __attribute__((visibility("default"))) void fake_nvml_work(double mega_cycles, double seconds,
                                                                      double activity) {
  using namespace fake_nvml;
  State* state = gpu_state();
  if (!state) return;
  WorkItem item{};
  item.count = 1;
  item.mega_cycles = mega_cycles;
  item.seconds = seconds;
  item.activity = item.activity_low = activity;
  item.high_fraction = 1;
  std::uint64_t number = 0;
  double left = 0;
  {
    const Lock lock(*state);
    number = enqueue(*state, state->gpus[0], item);
    left = launch_seconds(item, state->gpus[0].clock_mhz);
  }
  while (true) {
    const timespec nap{0, static_cast<long>(std::clamp(0.5 * left, 2e-5, 5e-3) * 1e9)};
    nanosleep(&nap, nullptr);
    const Lock lock(*state);
    Gpu& gpu = state->gpus[0];
    advance(*state, gpu, model_now(*state));
    if (gpu.queue_head > number) return;
    left = launch_seconds(item, gpu.clock_mhz) * (1 - gpu.queue[number % kQueue].progress);
  }
}
