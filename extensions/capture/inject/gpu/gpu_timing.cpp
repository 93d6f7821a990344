#include "capture/inject/gpu/gpu_timing.hpp"

#include "capture/inject/pending_times.hpp"
#include "capture/inject/session.hpp"

namespace ergotune::inject::gpu {
namespace {

/// Events before a launch and behind it.
using Pair = std::pair<Handle, Handle>;
PendingTimes<Pair>& pending() {
  static auto* const all = new PendingTimes<Pair>;
  return *all;
}

bool wants_times() {
  const Driver& driver = Driver::get();
  return driver.cuEventCreate && driver.cuEventRecord && driver.cuEventQuery && driver.cuEventElapsedTime &&
         driver.cuEventDestroy_v2 && Session::get().wants_times();
}

void destroy(Handle event) {
  if (event) (void)Driver::get().cuEventDestroy_v2(event);
}

Handle recorded(Handle stream) {
  Handle event = nullptr;
  if (Driver::get().cuEventCreate(&event, 0) != 0) return nullptr;
  if (Driver::get().cuEventRecord(event, stream) == 0) return event;
  destroy(event);
  return nullptr;
}

}  // namespace

Handle start_timing(Handle stream) {
  if (!wants_times()) return nullptr;
  int capturing = 0;  // events would become part of the graph
  if (Driver::get().cuStreamIsCapturing &&
      (Driver::get().cuStreamIsCapturing(stream, &capturing) != 0 || capturing != 0))
    return nullptr;
  return recorded(stream);
}

void stop_timing(const std::shared_ptr<KernelLog::Entry>& entry, Handle started, Handle stream) {
  if (!started) return;
  const Handle stop = recorded(stream);
  if (!stop) return destroy(started);
  if (pending().add({started, stop}, entry, entry->launches == 1) % 64 == 0) collect_times();
}

void collect_times() {
  const Driver& driver = Driver::get();
  const auto take = [&](const Pair& events) {
    float milliseconds = 0;
    const bool known = driver.cuEventElapsedTime(&milliseconds, events.first, events.second) == 0;
    destroy(events.first);
    destroy(events.second);
    return known && milliseconds > 0 ? milliseconds * 1e6 : 0.0;
  };
  pending().collect([&](const Pair& events) { return driver.cuEventQuery(events.second) == 0; }, take);
}

}  // namespace ergotune::inject::gpu
