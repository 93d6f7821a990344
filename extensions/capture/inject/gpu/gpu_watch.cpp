// A program's launches, listed or captured, and how long they take: by a pair of events around each, where no kernel is
// named.
#include "capture/inject/gpu/gpu_hooks.hpp"

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "capture/inject/gpu/gpu_capture.hpp"

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

/// An event before the launch; null where none is taken.
Handle start_timing(Handle stream) {
  if (!wants_times()) return nullptr;
  int capturing = 0;  // events would become part of the graph
  if (Driver::get().cuStreamIsCapturing &&
      (Driver::get().cuStreamIsCapturing(stream, &capturing) != 0 || capturing != 0))
    return nullptr;
  return recorded(stream);
}

/// Takes the times of launches that have ended.
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

/// Records an event behind the launch.
void stop_timing(const std::shared_ptr<KernelLog::Entry>& entry, Handle started, Handle stream) {
  if (!started) return;
  const Handle stop = recorded(stream);
  if (!stop) return destroy(started);
  if (pending().add({started, stop}, entry, entry->launches == 1) % 64 == 0) collect_times();
}

/// A launch between its two callbacks.
struct InFlight {
  std::shared_ptr<KernelLog::Entry> entry;
  std::optional<GpuCapture> capture;
  Handle started = nullptr, stream = nullptr;
};
thread_local std::optional<InFlight> in_flight;

std::shared_ptr<KernelLog::Entry> entry_of(Handle function, const std::string& symbol) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::pair<Handle, std::string>, std::shared_ptr<KernelLog::Entry>>;
  const std::lock_guard lock(mutex);
  auto& entry = (*known)[{function, symbol}];
  if (!entry) {
    const kernel_source::Demangled name = kernel_source::demangled(symbol);
    entry =
        KernelLog::get().entry(kernel_source::display_name(name), Functions::get().identity_of(function, symbol), "");
    entry->also = {name.name, symbol};
  }
  return entry;
}

}  // namespace

void before_launch(const Call& call) {
  if (call.symbol.empty() || !call.function) return;
  in_flight.emplace();
  in_flight->entry = entry_of(call.function, call.symbol);
  in_flight->stream = call.stream;
  KernelLog& log = KernelLog::get();
  const bool first = in_flight->entry->launches == 0;
  const std::uint64_t launch =
      log.count(*in_flight->entry, call.shape, first ? description_of(arguments_of(call)) : std::string());
  if (log.claims(*in_flight->entry, launch)) {
    try {
      in_flight->capture.emplace(call);
    } catch (const std::exception& error) {
      log.refuse(*in_flight->entry, error.what());
      log.unclaim_all();
    }
  }
  in_flight->started = start_timing(call.stream);
}

void after_launch(int code) {
  if (!in_flight) return;
  InFlight launch = std::move(*in_flight);
  in_flight.reset();
  KernelLog& log = KernelLog::get();
  stop_timing(launch.entry, launch.started, launch.stream);
  if (launch.capture && code == 0 &&
      !log.keep(*launch.entry, [&](const std::string& folder) { return launch.capture->finish(folder); }))
    log.unclaim_all();
  log.report(false);
}

int watch_launch(Call& call, OwnLaunch own) noexcept {
  if (Session::get().wants(CaptureRequest::Mode::nothing)) return own();
  try {
    static const int registered = std::atexit(end_watch);
    (void)registered;
    call.symbol = Functions::get().symbol_of(call.function);
    before_launch(call);
  } catch (...) {
  }
  const int code = own();
  try {
    after_launch(code);
  } catch (...) {
  }
  return code;
}

void end_watch() noexcept {
  const Busy guard;
  try {
    collect_times();
    KernelLog::get().report(true);
  } catch (...) {
  }
}

}  // namespace ergotune::inject::gpu
