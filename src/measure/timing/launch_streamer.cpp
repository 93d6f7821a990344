#include "measure/timing/launch_streamer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

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

}  // namespace ergotune
