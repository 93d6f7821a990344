#include "measure/observers/observation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/clock.hpp"

namespace ergotune {

LaunchStreamer::LaunchStreamer(Device& device, Workload& workload, double mark_period, double round_seconds)
    : device_(device),
      workload_(workload),
      markers_(device),
      per_mark_(
          static_cast<std::size_t>(std::clamp(std::round(mark_period / std::max(round_seconds, 1e-9)), 1.0, 1e6))),
      mark_seconds_(static_cast<double>(per_mark_) * round_seconds) {}

void LaunchStreamer::record(std::size_t rounds) {
  launched_[recorded_ % kRing] = rounds;
  device_.record(markers_[recorded_++ % kRing]);
}

bool LaunchStreamer::ran_empty() { return is_asynchronous_ && device_.passed(markers_[(recorded_ - 1) % kRing]); }

void LaunchStreamer::launch_chunk() {
  // After a gap, one more mark is outstanding.
  if (recorded_ - awaited_ >= kAhead) return;
  if (ran_empty()) record(0);
  workload_.launch(per_mark_);
  record(per_mark_);
}

void LaunchStreamer::fill() {
  record(0);
  for (std::size_t i = 0; i < kAhead; ++i) {
    workload_.launch(per_mark_);
    record(per_mark_);
  }
}

void LaunchStreamer::begin() {
  stream_.queued_at = host_seconds();
  fill();
  looked_ = stream_.queued_at;
}

bool LaunchStreamer::next_mark() {
  if (drained()) return false;
  const Marker& marker = markers_[awaited_ % kRing];
  while (!device_.passed(marker)) {
    is_asynchronous_ = true;
    looked_ = host_seconds();
    // Short sleeps: the time of the mark must be precise, but a spinning host would add to the measured power.
    const double nap = std::clamp(mark_seconds_ / 50, 5e-6, 2e-4);
    std::this_thread::sleep_for(std::chrono::duration<double>(nap));
  }
  LaunchMark mark;
  mark.host_time = host_seconds();
  mark.host_late = mark.host_time - looked_;
  looked_ = mark.host_time;
  if (awaited_ > 0) {
    const LaunchMark& before = stream_.marks.back();
    mark.launches = before.launches + launched_[awaited_ % kRing];
    mark.device_seconds = before.device_seconds + device_.seconds_between(markers_[(awaited_ - 1) % kRing], marker);
  }
  stream_.marks.push_back(mark);
  ++awaited_;
  return true;
}

void LaunchStreamer::rest(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  fill();
}

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

ObserverThread::~ObserverThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ObserverThread::begin(const std::vector<std::shared_ptr<Observer>>& observers) {
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

void ObserverThread::end() {
  std::unique_lock lock(mutex_);
  active_ = false;
  changed_.wait(lock, [this] { return !busy_; });
  if (!fault_.empty()) throw ObserverError(fault_observer_, fault_);
}

void ObserverThread::cancel() {
  std::unique_lock lock(mutex_);
  active_ = false;
  changed_.wait(lock, [this] { return !busy_; });
  fault_.clear();
}

void ObserverThread::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return active_ || stop_; });
    if (stop_) return;
    busy_ = true;
    const std::vector<Observer*> observers = observers_;
    lock.unlock();
    std::string faulty, message;
    for (Observer* observer : observers) {
      try {
        observer->during();
      } catch (const std::exception& error) {
        faulty = observer->name();
        message = error.what();
      }
    }
    lock.lock();
    busy_ = false;
    if (!message.empty()) {
      fault_observer_ = faulty;
      fault_ = message;
      active_ = false;
    }
    changed_.notify_all();
    // An observer that returns immediately must not occupy a core that the launches need.
    if (active_) changed_.wait_for(lock, std::chrono::microseconds(100));
  }
}

Observation::Observers Observation::of(ObserverPhase phase) const {
  Observers found;
  for (const auto& observer : observers_)
    if (observer->phase() == phase) found.push_back(observer);
  return found;
}

void Observation::register_configuration(const ObservedConfiguration& configuration) {
  call(observers_, [&](Observer& o) { o.register_configuration(configuration); });
}

RepetitionHooks Observation::hooks(ObserverPhase phase) {
  const auto watching = of(phase);
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

void Observation::single_launches(Device& device, Workload& workload, std::size_t count,
                                  const std::function<void()>& prepare) {
  const RepetitionHooks around = hooks(ObserverPhase::launches);
  for (std::size_t i = 0; i < count; ++i) {
    prepare();
    device.synchronise();
    around.before_start();
    workload.launch(1);
    around.after_start();
    device.synchronise();
    around.after_finish();
  }
}

namespace {

double mark_period_for(const std::vector<std::shared_ptr<Observer>>& observers) {
  double period = 0;
  for (const auto& observer : observers) {
    const double wanted = observer->wanted_mark_period();
    if (wanted > 0 && (period == 0 || wanted < period)) period = wanted;
  }
  return period > 0 ? period : 0.01;
}

}  // namespace

LaunchStream Observation::stream(Device& device, Workload& workload, double round_seconds, double limit) {
  const auto watching = of(ObserverPhase::stream);
  LaunchStreamer streamer(device, workload, mark_period_for(watching), round_seconds);
  const LaunchStream& stream = streamer.stream();
  call(watching, [](Observer& o) { o.before_start(); });
  streamer.begin();
  call(watching, [](Observer& o) { o.after_start(); });
  during_.begin(watching);
  const auto wants_more = [&] {
    if (stream.marks.back().host_time - stream.queued_at >= limit) return false;
    bool more = false;
    call(watching, [&](Observer& o) { more = o.wants_more(stream) || more; });
    return more;
  };
  bool more = true;
  double pause = 0;
  while (streamer.next_mark()) {
    if (stream.marks.size() < 2) continue;
    more = more && wants_more();
    if (!more) continue;
    if (pause == 0) call(watching, [&](Observer& o) { pause = std::max(pause, o.wanted_pause()); });
    if (pause == 0) {
      streamer.launch_chunk();
    } else if (streamer.drained()) {
      streamer.rest(pause);
      pause = 0;
    }
  }
  device.synchronise();
  during_.end();
  call(watching, [](Observer& o) { o.after_finish(); });
  call(watching, [&](Observer& o) { o.finished(stream); });
  return stream;
}

void Observation::own_passes(Device& device, Workload& workload, const std::function<void()>& prepare) {
  for (const auto& observer : of(ObserverPhase::own)) {
    const Observers alone{observer};
    for (int pass = 0;; ++pass) {
      int passes = 0;
      call(alone, [&](Observer& o) { passes = o.passes(); });
      if (pass >= passes) break;
      prepare();
      device.synchronise();
      call(alone, [&](Observer& o) { o.begin_pass(pass); });
      workload.launch(1);
      device.synchronise();
      call(alone, [&](Observer& o) { o.end_pass(pass); });
    }
  }
}

void Observation::collect(Measurement& measurement, bool gave_up) {
  const auto warn = [&](const std::string& warning) {
    auto& warnings = measurement.warnings;
    if (std::ranges::find(warnings, warning) == warnings.end()) warnings.push_back(warning);
  };
  const auto take = [&](Observer& o) {
    const bool own = o.phase() == ObserverPhase::own;
    for (auto& [name, quantity] : o.results()) {
      if (own && measurement.quantities.contains(name))
        warn(fmt::format("observer {}: {} is measured already; its value is left out", o.name(), name));
      else
        measurement.quantities[name] = quantity;
    }
    for (const auto& warning : o.warnings()) warn(warning);
    std::string message;
    const Status verdict = o.verdict(message);
    if (verdict != Status::ok && (measurement.status == Status::ok || !usable(verdict))) {
      measurement.status = verdict;
      if (!message.empty()) measurement.message = message;
    }
  };
  for (const auto& observer : observers_) {
    const ObserverPhase phase = observer->phase();
    if (phase == ObserverPhase::repetitions || (phase != ObserverPhase::own && !gave_up)) call({observer}, take);
  }
  if (!gave_up) call(of(ObserverPhase::own), take);
}

}  // namespace ergotune
