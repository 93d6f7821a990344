#include "measure/observation.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>

#include "ergotune/base/clock.hpp"

namespace ergotune {
namespace {

template <class F>
void call(const std::vector<std::shared_ptr<Observer>>& observers, F&& hook) {
  for (const auto& observer : observers) {
    try {
      hook(*observer);
    } catch (const DeviceError&) {
      throw;
    } catch (const std::exception& error) {
      throw ObserverError(observer->name(), error.what());
    }
  }
}

}  // namespace

DuringThread::~DuringThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    active_ = false;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DuringThread::begin(const std::vector<std::shared_ptr<Observer>>& observers) {
  {
    const std::lock_guard lock(mutex_);
    observers_.clear();
    for (const auto& observer : observers) observers_.push_back(observer.get());
    fault_.clear();
    active_ = true;
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
  changed_.notify_all();
}

void DuringThread::end() {
  std::unique_lock lock(mutex_);
  active_ = false;
  changed_.wait(lock, [this] { return !busy_; });
  if (!fault_.empty()) throw ObserverError(fault_observer_, fault_);
}

void DuringThread::cancel() {
  std::unique_lock lock(mutex_);
  active_ = false;
  changed_.wait(lock, [this] { return !busy_; });
  fault_.clear();
}

void DuringThread::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return active_ || stop_; });
    if (stop_) return;
    busy_ = true;
    const std::vector<Observer*> observers = observers_;
    lock.unlock();
    std::string faulty, words;
    for (Observer* observer : observers) {
      try {
        observer->during();
      } catch (const std::exception& error) {
        faulty = observer->name();
        words = error.what();
      }
    }
    lock.lock();
    busy_ = false;
    if (!words.empty()) {
      fault_observer_ = faulty;
      fault_ = words;
      active_ = false;
    }
    changed_.notify_all();
    // An observer that returns at once must not take a core away from the launches.
    if (active_)
      changed_.wait_for(lock, std::chrono::microseconds(100), [this] { return !active_ || stop_; });
  }
}

std::vector<std::shared_ptr<Observer>> Observation::some(bool streaming) const {
  std::vector<std::shared_ptr<Observer>> found;
  for (const auto& observer : observers_) {
    if (observer->wants_stream() == streaming) found.push_back(observer);
  }
  return found;
}

bool Observation::wants_stream() const { return !some(true).empty(); }
bool Observation::wants_repetitions() const { return !some(false).empty(); }

void Observation::register_configuration(const ObservedConfiguration& configuration) {
  call(observers_, [&](Observer& o) { o.register_configuration(configuration); });
}

RepetitionHooks Observation::repetition_hooks() {
  const auto watching = some(false);
  RepetitionHooks hooks;
  hooks.before_start = [watching] { call(watching, [](Observer& o) { o.before_start(); }); };
  hooks.after_start = [this, watching] {
    call(watching, [](Observer& o) { o.after_start(); });
    during_.begin(watching);
  };
  hooks.after_finish = [this, watching] {
    during_.end();
    call(watching, [](Observer& o) { o.after_finish(); });
  };
  return hooks;
}

LaunchStream Observation::stream(Device& device, LoadedKernel& kernel, double launch_seconds, double limit) {
  const auto watching = some(true);
  double period = 0;
  for (const auto& observer : watching) {
    const double wanted = observer->wanted_mark_period();
    if (wanted > 0 && (period == 0 || wanted < period)) period = wanted;
  }
  if (period == 0) period = 0.01;
  const auto per_mark =
      static_cast<std::size_t>(std::clamp(std::round(period / std::max(launch_seconds, 1e-9)), 1.0, 1e6));
  constexpr std::size_t kAhead = 2;

  LaunchStream stream;
  MarkerPool markers(device);
  // Markers go round in a ring, so that a long stream needs few of them; the mark before the oldest one
  // awaited is kept for the device time between the two.
  constexpr std::size_t kRing = kAhead + 3;
  std::size_t recorded = 0;
  std::array<std::size_t, kRing> launched{};  // before each mark
  const auto record = [&](std::size_t launches) {
    launched[recorded % kRing] = launches;
    device.record(markers[recorded++ % kRing]);
  };
  const auto launch_chunk = [&] {
    device.launch(kernel, per_mark);
    record(per_mark);
  };

  call(watching, [](Observer& o) { o.before_start(); });
  stream.queued_at = host_seconds();
  record(0);
  for (std::size_t i = 0; i < kAhead; ++i) launch_chunk();
  call(watching, [](Observer& o) { o.after_start(); });
  during_.begin(watching);

  const double mark_seconds = static_cast<double>(per_mark) * launch_seconds;
  double looked = stream.queued_at;
  std::size_t awaited = 0;
  bool more = true;
  double pause = 0;
  while (awaited < recorded) {
    const Marker& marker = markers[awaited % kRing];
    while (!device.passed(marker)) {
      looked = host_seconds();
      // Short naps: the mark's time must be known well, but a spinning host would add to the board's power.
      const double nap = std::clamp(mark_seconds / 50, 5e-6, 2e-4);
      std::this_thread::sleep_for(std::chrono::duration<double>(nap));
    }
    const double now = host_seconds();
    LaunchMark mark;
    mark.host_time = now;
    mark.host_late = now - looked;
    looked = now;
    if (awaited > 0) {
      mark.launches = stream.marks.back().launches + launched[awaited % kRing];
      mark.device_seconds =
          stream.marks.back().device_seconds + device.seconds_between(markers[(awaited - 1) % kRing], marker);
    }
    stream.marks.push_back(mark);
    ++awaited;
    if (more && awaited > 1) {
      more = now - stream.queued_at < limit;
      if (more) {
        more = false;
        call(watching, [&](Observer& o) { more = o.wants_more(stream) || more; });
        if (more && pause == 0) call(watching, [&](Observer& o) { pause = std::max(pause, o.wanted_pause()); });
      }
    }
    if (!more || awaited < 2) continue;
    if (pause == 0) {
      launch_chunk();
    } else if (awaited == recorded) {
      std::this_thread::sleep_for(std::chrono::duration<double>(pause));
      pause = 0;
      record(0);
      for (std::size_t i = 0; i < kAhead; ++i) launch_chunk();
    }
  }
  device.synchronise();
  during_.end();
  call(watching, [](Observer& o) { o.after_finish(); });
  call(watching, [&](Observer& o) { o.finished(stream); });
  return stream;
}

void Observation::collect(Measurement& measurement) {
  call(observers_, [&](Observer& o) {
    for (auto& [name, quantity] : o.results()) measurement.quantities[name] = quantity;
    for (auto& warning : o.warnings()) {
      if (std::find(measurement.warnings.begin(), measurement.warnings.end(), warning) ==
          measurement.warnings.end()) {
        measurement.warnings.push_back(warning);
      }
    }
    std::string message;
    const Status verdict = o.verdict(message);
    if (verdict != Status::ok && (measurement.status == Status::ok || !usable(verdict))) {
      measurement.status = verdict;
      if (!message.empty()) measurement.message = message;
    }
  });
}

}  // namespace ergotune
