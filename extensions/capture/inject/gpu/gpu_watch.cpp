#include "capture/inject/gpu/gpu_watch.hpp"

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "capture/inject/gpu/gpu_capture.hpp"
#include "capture/inject/gpu/gpu_functions.hpp"
#include "capture/inject/gpu/gpu_timing.hpp"
#include "capture/inject/session.hpp"

namespace ergotune::inject::gpu {
namespace {

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
