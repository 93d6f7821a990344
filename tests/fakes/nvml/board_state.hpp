// The state of the fake GPUs: one plain struct in a file that every process maps. It outlives its clients, so a test
// sees what a killed program left set, and knows the true energy that the fake sensors only approximate.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "corruption.hpp"

namespace fake_nvml {

inline constexpr std::uint32_t kMagic = 0x4c4d564e;
inline constexpr std::uint32_t kLayout = 8;
inline constexpr int kMaxDevices = 8;
inline constexpr int kMaxClocks = 256;
inline constexpr int kMaxMemoryClocks = 4;
inline constexpr int kHistory = 16384;  ///< steps of the model that are remembered
inline constexpr int kQueue = 4096;     ///< launches and markers in flight
inline constexpr int kMaxFaults = 32;
inline constexpr int kMaxCorruptions = 8;
inline constexpr int kSetterLog = 256;
inline constexpr int kMaxProcesses = 16;

/// What turns the true power into the value that a call returns. All times in s, powers in W.
struct PowerSensorModel {
  int supported;
  int exponential;  ///< 1: first-order lag with time constant tau; 0: boxcar over `window`
  double period, window, lag, tau;
  double phase;  ///< updates happen at phase + k * period
  double gain, offset;
};

struct CounterModel {
  int supported;
  double period, lag, phase;
  double step;  ///< J; the counter counts in whole steps
  double gain;
  int sleeps;  ///< 1: every period counts `window` seconds' mean for the whole period (25 of 100 ms GPUs)
  double window;
  double missed_after_idle;  ///< J lost at the start of a load: the counter that misses the beginning of a
                             ///< short run
};

/// A launch (count >= 1) or a marker (count 0) on the fake device's queue.
struct WorkItem {
  std::uint64_t count;
  double mega_cycles;   ///< core-clock bound part of one launch
  double seconds;       ///< clock-independent part of one launch (memory)
  double activity;      ///< mean over the first `high_fraction` of a launch
  double activity_low;  ///< over the rest
  double high_fraction;
  double not_before;  ///< when it was queued
  double progress;    ///< launches done
  double start, end;  ///< model time; valid once done
};

/// Makes a function (or one field: "field:186") fail, hang, or pretend.
struct Fault {
  char function[48];
  int code;                   ///< nvmlReturn_t to return; -1: return success and do nothing; -2: abort
  std::uint64_t after_calls;  ///< calls that still succeed
  std::uint64_t for_calls;    ///< calls that fail; 0: all
  double delay;               ///< s added to the call
  std::uint64_t calls;        ///< so far
};

struct SetterCall {
  char function[48];
  std::uint32_t a, b;
  int pid, result;
  double time;
};

struct Gpu {
  char name[96], uuid[96], pci[32];
  int architecture;  ///< NVML_DEVICE_ARCH_*: Kepler 2, Maxwell 3, Pascal 4, Volta 5, Turing 6, Ampere 7, Ada
                     ///< 8, Hopper 9
  int compute_capability;

  // clocks, MHz, descending as NVML gives them
  int graphics_clock_count, memory_clock_count;
  std::uint32_t graphics_clocks[kMaxClocks], memory_clocks[kMaxMemoryClocks];
  std::uint32_t low_memory_max_graphics;  ///< highest graphics clock at all but the first memory clock; 0: no bound
  int supports_locked_clocks, supports_memory_locked_clocks, supports_application_clocks;

  // settings, as setters leave them
  int locked, memory_locked, application_clocks_set;
  std::uint32_t locked_min, locked_max, memory_locked_min, memory_locked_max, application_graphics, application_memory;
  std::uint32_t default_application_graphics, default_application_memory;
  std::uint32_t power_limit_mw, default_power_limit_mw, min_power_limit_mw, max_power_limit_mw;
  int persistence, mig_mode, compute_mode;
  std::uint32_t outer_limit_mw;  ///< a lower limit that something outside of the driver enforces; 0: none
  int ignores_limit;             ///< takes a power limit and draws what it likes
  double clock_settling;         ///< s that a lock of the clock takes to have an effect
  double locked_at;              ///< model time of the last lock

  // physics: P = p0 + leakage * (T - ambient) + (activity_floor + activity) * C * f * V(f)^2
  double p0, full_power;  ///< W; full_power: activity 1 at the top clock, cold
  double activity_floor;
  double leakage;  ///< W per degree C
  double v_min, v_max, knee_mhz;
  double ambient, thermal_resistance, thermal_tau;
  double noise, noise_time;  ///< relative standard deviation of the power and its correlation time
  double slowdown_temperature;

  // sensors
  PowerSensorModel instant, average, usage, samples;
  CounterModel counter;
  int sample_capacity;

  // live
  double background_activity;  ///< while the queue is empty: what tests set by hand
  double background_until;     ///< model time at which that ends; 0: never (live_kernel.hpp)
  double time;                 ///< the model has been advanced to here
  double true_energy;          ///< J since creation: the side channel
  double power, temperature, clock_mhz, cap_mhz, filtered_power, noise_state, last_active, next_control;
  int capped, thermal_slowdown;
  std::uint64_t step_count;  ///< history holds steps (step_count - kHistory, step_count]
  double history_time[kHistory], history_energy[kHistory], history_exponential[kHistory];
  double exponential_state;
  double next_counter_tick, counter_raw, counter_energy, counter_loss, counter_loss_ahead;
  std::uint64_t random;

  // queue
  std::uint64_t queue_head, queue_tail;  ///< items [head, tail) are not done
  WorkItem queue[kQueue];
  double work_done;  ///< launches completed since creation, fractions included

  int process_count;
  std::uint32_t processes[kMaxProcesses];
};

struct State {
  std::uint32_t magic, layout;
  pthread_mutex_t mutex;  ///< robust and shared between processes
  char driver_version[80];
  int driver_loaded;
  int permitted;   ///< setters are allowed (as for root)
  double latency;  ///< s that every call takes
  // time: host monotonic seconds, or virtual seconds that only tests advance
  int is_virtual;
  double virtual_time;
  std::int64_t wall_offset_us;  ///< wall clock minus model time; fixed, so that a time stamp never changes
  double step;                  ///< s of the physics' step
  int device_count;
  Gpu gpus[kMaxDevices];
  int fault_count;
  Fault faults[kMaxFaults];
  int corruption_count;
  CorruptionState corruptions[kMaxCorruptions];
  std::uint64_t setter_calls;
  SetterCall setter_log[kSetterLog];
  std::uint64_t calls;
};

}  // namespace fake_nvml
