// GPUs of each generation, and the mapping of the state file.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>

#include "board_model.hpp"

namespace fake_nvml {

inline void set_text(char* to, std::size_t size, const std::string& text) {
  std::snprintf(to, size, "%s", text.c_str());
}

/// A boxcar sensor; window 0 means unsupported.
inline PowerSensorModel boxcar(double period, double window, double lag = 0.0) {
  return {1, 0, period, window, lag, 0, 0.0, 1.0, 0.0};
}
inline PowerSensorModel exponential(double period, double tau) { return {1, 1, period, 0, 0, tau, 0.0, 1.0, 0.0}; }

/// Fills a GPU: "hopper", "ada", "ampere" (GA102), "ga100", "turing", "volta", "pascal", "kepler".
inline void preset(Gpu& b, const std::string& generation, int index) {
  std::memset(static_cast<void*>(&b), 0, sizeof b);
  char text[96];
  std::snprintf(text, sizeof text, "GPU-fa4e0000-0000-4000-8000-%012d", index);
  set_text(b.uuid, sizeof b.uuid, text);
  std::snprintf(text, sizeof text, "00000000:%02X:00.0", 0x1b + 0x10 * index);
  set_text(b.pci, sizeof b.pci, text);
  b.random = 0x9e3779b97f4a7c15ull + static_cast<std::uint64_t>(index);
  auto clocks = [&](int top, int bottom, int step) {
    b.graphics_clock_count = 0;
    for (int f = top; f >= bottom && b.graphics_clock_count < kMaxClocks; f -= step)
      b.graphics_clocks[b.graphics_clock_count++] = static_cast<std::uint32_t>(f);
  };
  auto memory = [&](std::initializer_list<std::uint32_t> values) {
    b.memory_clock_count = 0;
    for (auto v : values) b.memory_clocks[b.memory_clock_count++] = v;
  };
  auto limits = [&](double low, double usual, double high) {
    b.min_power_limit_mw = static_cast<std::uint32_t>(low * 1000);
    b.max_power_limit_mw = static_cast<std::uint32_t>(high * 1000);
    b.default_power_limit_mw = b.power_limit_mw = static_cast<std::uint32_t>(usual * 1000);
  };
  b.supports_locked_clocks = b.supports_memory_locked_clocks = b.supports_application_clocks = 1;
  b.activity_floor = 0.05;
  b.leakage = 0.25;
  b.v_min = 0.72;
  b.v_max = 1.05;
  b.ambient = 32;
  b.thermal_tau = 6;
  b.noise = 0.01;
  b.noise_time = 0.004;
  b.slowdown_temperature = 90;
  b.sample_capacity = 119;
  b.counter = {1, 0.1, 0.0, 0.0, 0.001, 1.0, 0, 0.025, 0.0};
  b.samples = boxcar(0.02, 0.02);
  b.average = boxcar(0.1, 1.0);
  b.usage = b.average;
  b.instant = boxcar(0.1, 0.1);
  if (generation == "hopper") {
    set_text(b.name, sizeof b.name, "NVIDIA H100 80GB HBM3 (fake)");
    b.architecture = 9, b.compute_capability = 90;
    clocks(1980, 345, 15), memory({2619, 1593}), limits(200, 700, 700);
    b.knee_mhz = 1200, b.p0 = 60, b.full_power = 900, b.thermal_resistance = 0.05;
    b.instant = boxcar(0.1, 0.025);
    b.supports_application_clocks = 0;
  } else if (generation == "ga100") {
    set_text(b.name, sizeof b.name, "NVIDIA A100-PCIE-40GB (fake)");
    b.architecture = 7, b.compute_capability = 80;
    clocks(1410, 210, 15), memory({1215}), limits(150, 250, 250);
    b.knee_mhz = 1000, b.p0 = 36, b.full_power = 290, b.thermal_resistance = 0.12;
    b.instant = b.average = b.usage = boxcar(0.1, 0.025);
    b.counter.sleeps = 1;
  } else if (generation == "ampere" || generation == "ada") {
    const bool ada = generation == "ada";
    set_text(b.name, sizeof b.name, ada ? "NVIDIA RTX 4000 Ada (fake)" : "NVIDIA RTX A4000 (fake)");
    b.architecture = ada ? 8 : 7, b.compute_capability = ada ? 89 : 86;
    clocks(2100, 210, 15), memory({7001, 6501, 5001, 405}), limits(100, 140, 140);
    b.low_memory_max_graphics = 420;
    b.knee_mhz = 1400, b.p0 = 18, b.full_power = 165, b.thermal_resistance = 0.25;
  } else if (generation == "turing") {
    set_text(b.name, sizeof b.name, "Quadro RTX 6000 (fake)");
    b.architecture = 6, b.compute_capability = 75;
    clocks(2100, 300, 15), memory({7001, 405}), limits(100, 260, 260);
    b.supports_memory_locked_clocks = 0;
    b.knee_mhz = 1300, b.p0 = 25, b.full_power = 270, b.thermal_resistance = 0.15;
    b.usage = boxcar(0.1, 0.1);
    b.instant.supported = b.average.supported = 0;
  } else if (generation == "volta" || generation == "pascal") {
    const bool volta = generation == "volta";
    set_text(b.name, sizeof b.name, volta ? "Tesla V100-PCIE-16GB (fake)" : "Tesla P100-PCIE-16GB (fake)");
    b.architecture = volta ? 5 : 4, b.compute_capability = volta ? 70 : 60;
    clocks(1380, 135, 15), memory({877}), limits(100, 250, 250);
    b.supports_memory_locked_clocks = 0;
    b.supports_locked_clocks = volta;
    b.knee_mhz = 900, b.p0 = 25, b.full_power = 260, b.thermal_resistance = 0.15;
    b.usage = boxcar(0.02, 0.01);
    b.instant.supported = b.average.supported = 0;
    b.counter.supported = volta;
    b.counter.period = 0.02;
  } else if (generation == "kepler" || generation == "maxwell") {
    set_text(b.name, sizeof b.name, "Tesla K20c (fake)");
    b.architecture = 2, b.compute_capability = 35;
    clocks(758, 324, 31), memory({2600, 324}), limits(150, 225, 225);
    b.supports_memory_locked_clocks = b.supports_locked_clocks = 0;
    b.knee_mhz = 600, b.p0 = 45, b.full_power = 200, b.thermal_resistance = 0.2;
    b.usage = exponential(0.0152, 0.833);
    b.instant.supported = b.average.supported = b.counter.supported = b.samples.supported = 0;
  } else {
    throw std::invalid_argument("fake NVML: unknown generation " + generation);
  }
  b.default_application_graphics = b.application_graphics = b.graphics_clocks[0];
  b.default_application_memory = b.application_memory = b.memory_clocks[0];
}

/// Starts the GPU's physics at `now`, idle since long.
inline void start(Gpu& b, double now) {
  b.time = now;
  b.clock_mhz = bottom_clock(b);
  b.cap_mhz = top_clock(b);
  b.temperature = b.ambient + b.thermal_resistance * b.p0;
  b.power = b.filtered_power = b.exponential_state = power_at(b, 0, b.clock_mhz, b.temperature);
  b.last_active = now - 1000;
  b.next_control = now;
  b.step_count = 1;
  b.history_time[0] = now - 20;
  b.history_energy[0] = -20 * b.power;
  b.history_exponential[0] = b.power;
  b.history_time[1] = now;
  b.history_energy[1] = 0;
  b.history_exponential[1] = b.power;
  b.next_counter_tick = b.counter.period > 0 ? last_tick(b.counter.phase, b.counter.period, now) + b.counter.period : 0;
}

/// `description`: "generation=hopper devices=2 permitted=1 virtual=0 latency=0.0003 seed=7" (all optional).
inline void initialise(State& state, const std::string& description) {
  std::memset(static_cast<void*>(&state), 0, sizeof state);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&state.mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  state.layout = kLayout;
  state.driver_loaded = state.permitted = 1;
  state.step = 0.001;
  state.device_count = 1;
  set_text(state.driver_version, sizeof state.driver_version, "580.159.00");
  std::string generation = "hopper";
  std::uint64_t seed = 0;
  std::istringstream words(description);
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    const std::string key = word.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (key == "generation")
      generation = value;
    else if (key == "devices")
      state.device_count = std::clamp(std::atoi(value.c_str()), 0, kMaxDevices);
    else if (key == "permitted")
      state.permitted = std::atoi(value.c_str());
    else if (key == "virtual")
      state.is_virtual = std::atoi(value.c_str());
    else if (key == "latency")
      state.latency = std::atof(value.c_str());
    else if (key == "step")
      state.step = std::atof(value.c_str());
    else if (key == "seed")
      seed = static_cast<std::uint64_t>(std::atoll(value.c_str()));
    else if (key == "driver")
      set_text(state.driver_version, sizeof state.driver_version, value);
    else
      throw std::invalid_argument("fake NVML: unknown setting " + word);
  }
  state.virtual_time = 1000;
  state.wall_offset_us =
      state.is_virtual ? 0 : std::llround(1e6 * (clock_seconds(CLOCK_REALTIME) - clock_seconds(CLOCK_MONOTONIC)));
  for (int i = 0; i < kMaxDevices; ++i) {
    preset(state.gpus[i], generation, i);
    state.gpus[i].random += seed * 0x2545f4914f6cdd1dull;
    start(state.gpus[i], model_now(state));
  }
  __atomic_store_n(&state.magic, kMagic, __ATOMIC_RELEASE);
}

/// Maps the state file, making and initialising it when it is not there; nullptr when that is impossible. An
/// empty path gives private memory.
inline State* map_state(const std::string& path, const std::string& description) {
  if (path.empty()) {
    void* memory = mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    initialise(*static_cast<State*>(memory), description);
    return static_cast<State*>(memory);
  }
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return nullptr;
  // One process initialises; the others wait for its lock (fcntl: freed even when it dies).
  struct flock whole {};
  whole.l_type = F_WRLCK;
  while (fcntl(file, F_SETLKW, &whole) != 0 && errno == EINTR) {
  }
  struct stat status {};
  fstat(file, &status);
  const bool fresh = static_cast<std::size_t>(status.st_size) < sizeof(State);
  if (fresh && ftruncate(file, sizeof(State)) != 0) {
    close(file);
    return nullptr;
  }
  void* memory = mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  State* state = memory == MAP_FAILED ? nullptr : static_cast<State*>(memory);
  if (state && (state->magic != kMagic || state->layout != kLayout)) initialise(*state, description);
  close(file);
  return state;
}

}  // namespace fake_nvml
