// The physics and the sensor stage of the fake GPUs, as inline functions over the mapped state: the library
// and the tests run the same code, whoever asks first advances the GPU to "now".
#pragma once

#include <algorithm>
#include <cmath>
#include <ctime>

#include "board_state.hpp"

namespace fake_nvml {

inline double clock_seconds(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
inline double model_now(const State& state) {
  return state.is_virtual ? state.virtual_time : clock_seconds(CLOCK_MONOTONIC);
}
/// Wall-clock time of a model time in whole microseconds: what time stamps carry. The two clocks were
/// compared once, when the state was made: a driver stamps a sample when it takes it, so whoever looks at it
/// again sees the same stamp.
inline std::uint64_t wall_microseconds(const State& state, double time) {
  return static_cast<std::uint64_t>(state.wall_offset_us + std::llround(time * 1e6));
}

/// Holds the state's mutex; a client that was killed while it held it leaves it usable.
class Lock {
 public:
  explicit Lock(State& state) : state_(state) {
    if (pthread_mutex_lock(&state_.mutex) == EOWNERDEAD) pthread_mutex_consistent(&state_.mutex);
  }
  ~Lock() { pthread_mutex_unlock(&state_.mutex); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  State& state_;
};

inline double uniform(Gpu& b) {
  b.random ^= b.random << 13;
  b.random ^= b.random >> 7;
  b.random ^= b.random << 17;
  return static_cast<double>(b.random >> 11) * 0x1p-53;
}
inline double normal(Gpu& b) {
  // Sum of uniforms: light, reproducible, and Gaussian enough for noise.
  double sum = 0;
  for (int i = 0; i < 6; ++i) sum += uniform(b);
  return (sum - 3.0) * std::sqrt(2.0);
}

inline double top_clock(const Gpu& b) { return b.graphics_clocks[0]; }
inline double bottom_clock(const Gpu& b) { return b.graphics_clocks[b.graphics_clock_count - 1]; }
inline double memory_clock(const Gpu& b) {
  if (b.memory_locked) return b.memory_locked_max;
  if (b.application_clocks_set) return b.application_memory;
  return b.memory_clocks[0];
}
inline double voltage(const Gpu& b, double mhz) {
  if (mhz <= b.knee_mhz) return b.v_min;
  return b.v_min + (b.v_max - b.v_min) * (mhz - b.knee_mhz) / (top_clock(b) - b.knee_mhz);
}
inline double power_at(const Gpu& b, double activity, double mhz, double temperature) {
  const double per_activity = (b.full_power - b.p0) / (top_clock(b) * b.v_max * b.v_max);
  const double v = voltage(b, mhz);
  return b.p0 + b.leakage * (temperature - b.ambient) + (b.activity_floor + activity) * per_activity * mhz * v * v;
}

/// The clock that settings ask for while there is work.
inline double requested_clock(const Gpu& b) {
  double target = top_clock(b);
  if (b.application_clocks_set) target = std::min<double>(target, b.application_graphics);
  if (b.locked && b.time >= b.locked_at + b.clock_settling)
    target = std::clamp<double>(target, b.locked_min, b.locked_max);
  if (b.low_memory_max_graphics && memory_clock(b) < b.memory_clocks[0])
    target = std::min<double>(target, b.low_memory_max_graphics);
  return target;
}

inline double launch_seconds(const WorkItem& w, double mhz) { return w.mega_cycles / mhz + w.seconds; }

/// Integral of a launch pattern's activity from 0 to `launches`.
inline double activity_integral(const WorkItem& w, double launches) {
  const double whole = std::floor(launches), part = launches - whole;
  const double mean = w.activity * w.high_fraction + w.activity_low * (1 - w.high_fraction);
  const double high = std::min(part, w.high_fraction);
  return whole * mean + high * w.activity + (part - high) * w.activity_low;
}

/// The activity beside the queue.
inline double background(const Gpu& b, double time) {
  return b.background_until > 0 && time > b.background_until ? 0.0 : b.background_activity;
}

/// Works off the queue over [time, time + dt]; returns the mean activity, background where the queue is empty.
inline double work(Gpu& b, double dt) {
  double left = dt, activity = 0, busy = 0;
  double now = b.time;
  while (left > 0 && b.queue_head < b.queue_tail) {
    WorkItem& w = b.queue[b.queue_head % kQueue];
    if (w.progress == 0) {
      if (w.not_before > now) {
        const double wait = std::min(left, w.not_before - now);
        now += wait;
        left -= wait;
        activity += wait * background(b, now);
        if (left <= 0) break;
      }
      w.start = now;
    }
    const double each = launch_seconds(w, b.clock_mhz);
    const double remaining = (static_cast<double>(w.count) - w.progress) * each;
    const double take = std::min(left, remaining);
    if (w.count > 0 && each > 0) {
      const double before = w.progress;
      w.progress = take < remaining ? w.progress + take / each : static_cast<double>(w.count);
      activity += (activity_integral(w, w.progress) - activity_integral(w, before)) * each;
      b.work_done += w.progress - before;
    }
    now += take;
    left -= take;
    busy += take;
    if (w.count == 0 || w.progress >= static_cast<double>(w.count)) {
      w.end = now;
      ++b.queue_head;
    }
  }
  activity += left * background(b, now);
  if (busy > 0 || background(b, now) > 0) b.last_active = b.time + dt;
  return activity / dt;
}

inline double energy_at(const Gpu& b, double time) {
  // The history is an evenly stepped cumulative energy; linear between steps.
  const std::uint64_t newest = b.step_count, oldest = newest > kHistory - 1 ? newest - (kHistory - 1) : 0;
  std::uint64_t low = oldest, high = newest;
  if (time <= b.history_time[low % kHistory]) return b.history_energy[low % kHistory];
  if (time >= b.history_time[high % kHistory]) return b.history_energy[high % kHistory];
  while (high - low > 1) {
    const std::uint64_t middle = (low + high) / 2;
    (b.history_time[middle % kHistory] <= time ? low : high) = middle;
  }
  const double t0 = b.history_time[low % kHistory], t1 = b.history_time[high % kHistory];
  const double e0 = b.history_energy[low % kHistory], e1 = b.history_energy[high % kHistory];
  return e0 + (e1 - e0) * (t1 > t0 ? (time - t0) / (t1 - t0) : 0);
}
inline double exponential_at(const Gpu& b, double time) {
  const std::uint64_t newest = b.step_count, oldest = newest > kHistory - 1 ? newest - (kHistory - 1) : 0;
  std::uint64_t low = oldest, high = newest;
  if (time >= b.history_time[high % kHistory]) return b.history_exponential[high % kHistory];
  while (high - low > 1) {
    const std::uint64_t middle = (low + high) / 2;
    (b.history_time[middle % kHistory] <= time ? low : high) = middle;
  }
  return b.history_exponential[low % kHistory];
}

/// Value of a power sensor at its update `tick` (model time), in W.
inline double power_reading(const Gpu& b, const PowerSensorModel& s, double tick) {
  const double true_value = s.exponential
                                ? exponential_at(b, tick - s.lag)
                                : (energy_at(b, tick - s.lag) - energy_at(b, tick - s.lag - s.window)) / s.window;
  return std::max(0.0, s.gain * true_value + s.offset);
}
inline double last_tick(double phase, double period, double now) {
  return phase + std::floor((now - phase) / period + 1e-9) * period;
}

inline std::uint32_t enforced_limit_mw(const Gpu& b) {
  return b.outer_limit_mw ? std::min(b.outer_limit_mw, b.power_limit_mw) : b.power_limit_mw;
}

/// Governor: follows the settings, steps down past the power limit, rests when idle.
inline void govern(Gpu& b) {
  const double limit = b.ignores_limit ? 1e9 : enforced_limit_mw(b) * 1e-3;
  const double grid = b.graphics_clock_count > 1 ? b.graphics_clocks[0] - b.graphics_clocks[1] : 15.0;
  const double requested = requested_clock(b);
  if (b.filtered_power > limit) {
    const double steps = std::clamp(std::ceil((b.filtered_power / limit - 1) * 20), 1.0, 8.0);
    b.cap_mhz = std::max(bottom_clock(b), std::min(b.cap_mhz, requested) - steps * grid);
    b.capped = 1;
  } else if (b.filtered_power < 0.985 * limit) {
    b.cap_mhz = std::min(b.cap_mhz + grid, top_clock(b));
    if (b.cap_mhz >= requested) b.capped = 0;
  }
  b.thermal_slowdown = b.slowdown_temperature > 0 && b.temperature > b.slowdown_temperature;
  double clock = std::min(requested, b.cap_mhz);
  if (b.thermal_slowdown) clock = std::max(bottom_clock(b), clock - 10 * grid);
  if (b.time - b.last_active > 1.0) clock = b.locked ? b.locked_min : bottom_clock(b);
  b.clock_mhz = clock;
}

inline void advance(const State& state, Gpu& b, double now) {
  // A GPU that nobody looked at for long has been idle: skip what no sensor can still show.
  const double horizon = 12.0;
  if (b.queue_head == b.queue_tail && now - b.time > 2 * horizon) {
    const double skip = now - b.time - horizon;
    b.temperature = b.ambient + b.thermal_resistance * b.power;
    b.true_energy += b.power * skip;
    b.time += skip;
    ++b.step_count;
    b.history_time[b.step_count % kHistory] = b.time;
    b.history_energy[b.step_count % kHistory] = b.true_energy;
    b.history_exponential[b.step_count % kHistory] = b.exponential_state;
    const double before = b.next_counter_tick;
    b.next_counter_tick = last_tick(b.counter.phase, b.counter.period, b.time) + b.counter.period;
    if (b.counter.sleeps) b.counter_raw += b.power * std::max(0.0, b.next_counter_tick - before);
  }
  while (b.time < now) {
    const double dt = std::min(state.step, now - b.time);
    if (dt <= 0) break;
    if (b.time >= b.next_control) {
      govern(b);
      b.next_control = b.time + 0.005;
    }
    const bool was_idle = b.time - b.last_active > 0.5;
    const double activity = work(b, dt);
    if (was_idle && b.time + dt - b.last_active <= 0.5) b.counter_loss_ahead = b.counter.missed_after_idle;
    const double keep = b.noise_time > 0 ? std::exp(-dt / b.noise_time) : 0.0;
    if (b.noise > 0) b.noise_state = keep * b.noise_state + std::sqrt(1 - keep * keep) * normal(b);
    b.power = power_at(b, activity, b.clock_mhz, b.temperature) * (1 + b.noise * b.noise_state);
    b.temperature += dt * (b.ambient + b.thermal_resistance * b.power - b.temperature) / b.thermal_tau;
    b.filtered_power += (b.power - b.filtered_power) * (1 - std::exp(-dt / 0.02));
    const double tau = b.instant.exponential ? b.instant.tau : b.usage.tau;
    if (tau > 0) b.exponential_state += (b.power - b.exponential_state) * (1 - std::exp(-dt / tau));
    // A counter that misses the start of a load stands still until it has missed that much; it never goes back.
    const double missed = std::min(b.counter_loss_ahead, b.power * dt);
    b.counter_loss_ahead -= missed;
    b.counter_loss += missed;
    b.true_energy += b.power * dt;
    b.time += dt;
    ++b.step_count;
    const auto slot = b.step_count % kHistory;
    b.history_time[slot] = b.time;
    b.history_energy[slot] = b.true_energy;
    b.history_exponential[slot] = b.exponential_state;
    while (b.counter.period > 0 && b.next_counter_tick <= b.time) {
      const double t = b.next_counter_tick - b.counter.lag;
      if (b.counter.sleeps) {
        b.counter_raw += (energy_at(b, t) - energy_at(b, t - b.counter.window)) / b.counter.window * b.counter.period;
      } else {
        b.counter_raw = energy_at(b, t);
      }
      const double value = b.counter.gain * std::max(0.0, b.counter_raw - b.counter_loss);
      b.counter_energy = b.counter.step > 0 ? std::floor(value / b.counter.step) * b.counter.step : value;
      b.next_counter_tick += b.counter.period;
    }
  }
}

/// Queues a launch or a marker; returns its number on the queue.
inline std::uint64_t enqueue(const State& state, Gpu& b, WorkItem item) {
  const double now = model_now(state);
  advance(state, b, now);
  item.not_before = now;
  item.progress = 0;
  item.start = item.end = 0;
  b.queue[b.queue_tail % kQueue] = item;
  return b.queue_tail++;
}

}  // namespace fake_nvml
