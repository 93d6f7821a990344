#include "capture/inject/gpu/gpu_tuned.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <sstream>

#include "base/clock_switch.hpp"
#include "base/kernel_source/signature.hpp"
#include "capture/inject/gpu/gpu_functions.hpp"
#include "capture/inject/session.hpp"

namespace ergotune::inject::gpu {
namespace {

/// What the command answered for one kind of launch of one kernel in one context: leave it, or this instead.
struct TunedLaunch {
  // asked with
  LaunchShape requested;
  std::size_t requested_shared = 0;
  // answered; written before `state` says so
  enum class State { left, unverified, used };
  std::atomic<State> state{State::left};
  std::string kernel, description;
  Replacement replacement;
  Tolerances tolerances;
  KernelClock clock;
  std::mutex verifying;
  int attempts = 0;
  std::atomic<std::uint64_t> launches{0};
};

using State = TunedLaunch::State;

/// A program that never launches twice alike is not worth asking for each.
constexpr std::size_t kMostShapes = 64;
/// Launches that changed nothing, and so verified nothing.
constexpr int kMostAttempts = 8;

using Key = std::pair<Handle, Handle>;  // function and context
struct Known {
  std::shared_mutex mutex;
  std::map<Key, std::vector<std::shared_ptr<TunedLaunch>>> launches;
};
Known& known() {
  static Known* const all = new Known;
  return *all;
}

/// Calls of ours do not end another thread's recording of a graph.
class Relaxed {
 public:
  Relaxed() { exchange(); }
  ~Relaxed() { exchange(); }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  void exchange() {
    if (const auto function = Driver::get().cuThreadExchangeStreamCaptureMode) (void)function(&mode_);
  }
  int mode_ = 2;
};

bool is_recording(Handle stream) {
  int status = 0;
  const auto query = Driver::get().cuStreamIsCapturing;
  return !query || query(stream, &status) != 0 || status != 0;
}

std::string device_name() {
  char name[256] = {};
  int device = 0;
  const Driver& driver = Driver::get();
  return driver.cuCtxGetDevice(&device) == 0 && driver.cuDeviceGetName(name, sizeof name - 1, device) == 0 ? name : "";
}

/// Loads what the answer holds; empty, or why it cannot be launched.
std::string load(TunedLaunch& tuned, const Answer& answer, Handle own) {
  const Driver& driver = Driver::get();
  Handle module = nullptr;
  if (const int failed = driver.cuModuleLoadDataEx(&module, answer.code.c_str(), 0, nullptr, nullptr); failed != 0)
    return "its code cannot be loaded (" + std::to_string(failed) + ")";
  Handle& found = tuned.replacement.function;
  if (const int failed = driver.cuModuleGetFunction(&found, module, answer.function.c_str()); failed != 0)
    return "it has no kernel of that name (" + std::to_string(failed) + ")";
  Functions::get().loaded(module, std::string_view(answer.code));
  Functions::get().found(module, found, answer.function.c_str());
  if (parameters_of(found) != parameters_of(own)) return "it has other arguments";
  constexpr unsigned kAlwaysAllowed = 48 << 10;
  constexpr int kDynamicShared = 8;
  if (tuned.replacement.shared_bytes > kAlwaysAllowed &&
      driver.cuFuncSetAttribute(found, kDynamicShared, static_cast<int>(tuned.replacement.shared_bytes)) != 0)
    return "it needs more shared memory than there is";
  std::istringstream attributes(answer.options);
  char equals = 0;
  for (int attribute = 0, value = 0; attributes >> attribute >> equals >> value;)
    if (driver.cuFuncSetAttribute(found, attribute, value) != 0)
      return "the driver does not set its attribute " + std::to_string(attribute);
  return {};
}

void report(TunedLaunch& tuned) {
  const std::uint64_t launches = tuned.launches.exchange(0);
  if (launches == 0) return;
  unsigned grid[3], block[3];
  std::copy_n(tuned.replacement.grid.begin(), 3, grid);
  std::copy_n(tuned.replacement.block.begin(), 3, block);
  Session::get().send(
      {"used", tuned.kernel, tuned.description, description_of(shape_of(grid, block)), std::to_string(launches)});
}

/// Reports to the command how often each was launched since the last report.
void report_tuned() {
  const std::shared_lock lock(known().mutex);
  for (const auto& [key, of_function] : known().launches)
    for (const auto& tuned : of_function) report(*tuned);
}

void ask(TunedLaunch& tuned, const Call& call) {
  static const int registered = std::atexit([] {
    try {
      report_tuned();
    } catch (...) {
    }
  });
  (void)registered;
  const std::string symbol = Functions::get().symbol_of(call.function);
  if (symbol.empty()) return;
  tuned.kernel = kernel_source::display_name(kernel_source::demangled(symbol));
  const auto answer = ask_for_launch(tuned.kernel, Functions::get().identity_of(call.function, symbol), "",
                                     device_name(), call.shape, call.shared_bytes);
  if (!answer) return;
  tuned.clock = answer->clock;
  if (!answer->use) return;
  tuned.description = answer->description;
  for (std::size_t d = 0; d < 3; ++d) {
    tuned.replacement.grid[d] = static_cast<unsigned>(answer->shape.global[d] / answer->shape.block[d]);
    tuned.replacement.block[d] = static_cast<unsigned>(answer->shape.block[d]);
  }
  tuned.replacement.shared_bytes = static_cast<unsigned>(answer->shared_bytes);
  tuned.tolerances = {answer->absolute_tolerance, answer->relative_tolerance, answer->types};
  const std::string failure = load(tuned, *answer, call.function);
  if (failure.empty())
    tuned.state = State::unverified;
  else
    Session::get().send({"failed", tuned.kernel, tuned.description, failure});
}

/// Has the command change the clock for this kernel, where that pays, when the stream gets to it.
void follow_clock(const TunedLaunch& tuned, Handle stream) {
  const KernelClock& clock = tuned.clock;
  const auto call_in_stream = Driver::get().cuLaunchHostFunc;
  if (clock.mhz <= 0 || !call_in_stream) return;
  // Never destroyed: a stream may still reach a point that uses it.
  static auto* const follower = new ClockFollower(clock.common_mhz, clock.latency, [](double mhz) {
    quietly([mhz] { Session::get().send({"clock", std::to_string(mhz)}); });
  });
  if (!follower->differs(clock.mhz) || is_recording(stream) || !follower->queued(clock.mhz, clock.seconds)) return;
  const auto reached = [](void* kernel_clock) {
    const std::unique_ptr<KernelClock> own(static_cast<KernelClock*>(kernel_clock));
    follower->reached(own->mhz, own->seconds);
  };
  auto kept = std::make_unique<KernelClock>(clock);
  if (call_in_stream(stream, reached, kept.get()) == 0) (void)kept.release();
}

std::shared_ptr<TunedLaunch> find(const Call& call, Handle context) {
  const std::shared_lock lock(known().mutex);
  const auto of_function = known().launches.find({call.function, context});
  if (of_function == known().launches.end()) return nullptr;
  for (const auto& one : of_function->second)
    if (one->requested_shared == call.shared_bytes && one->requested.global == call.shape.global &&
        one->requested.block == call.shape.block)
      return one;
  static const auto left = std::make_shared<TunedLaunch>();
  return of_function->second.size() >= kMostShapes ? left : nullptr;
}

/// Null where another thread asks for the same.
std::shared_ptr<TunedLaunch> add(const Call& call, Handle context) {
  auto tuned = std::make_shared<TunedLaunch>();
  tuned->requested = call.shape;
  tuned->requested_shared = call.shared_bytes;
  const std::lock_guard lock(known().mutex);
  auto& of_function = known().launches[{call.function, context}];
  for (const auto& one : of_function)
    if (one->requested_shared == call.shared_bytes && one->requested.global == call.shape.global &&
        one->requested.block == call.shape.block)
      return nullptr;
  of_function.push_back(tuned);
  return tuned;
}

/// The program's own launch's code, or nullopt where it was not launched.
std::optional<int> launch_both(const Call& call, TunedLaunch& tuned, LaunchKernel* driver, OwnLaunch own) {
  using Verdict = Verification::Verdict;
  const std::unique_lock lock(tuned.verifying, std::try_to_lock);
  if (!lock || tuned.state != State::unverified) return std::nullopt;
  const Relaxed relaxed;
  Verification verification = verify(call, tuned.replacement, tuned.tolerances, driver, own);
  if (verification.verdict == Verdict::unchanged && ++tuned.attempts < kMostAttempts) return verification.own;
  if (verification.verdict == Verdict::unchanged)
    verification.reason = "its launches changed no memory, so that it cannot be verified";
  tuned.state = verification.verdict == Verdict::same ? State::used : State::left;
  if (tuned.state == State::left) Session::get().send({"failed", tuned.kernel, tuned.description, verification.reason});
  return verification.own;
}

bool is_able(const Driver& driver) {
  return driver.cuMemAlloc_v2 && driver.cuMemFree_v2 && driver.cuMemcpyDtoDAsync_v2 && driver.cuMemcpyDtoHAsync_v2 &&
         driver.cuMemcpyHtoDAsync_v2 && driver.cuStreamSynchronize && driver.cuModuleLoadDataEx &&
         driver.cuModuleGetFunction && driver.cuFuncSetAttribute && driver.cuCtxGetDevice && driver.cuDeviceGetName &&
         driver.cuCtxGetCurrent;
}

}  // namespace

std::optional<int> launch_tuned(const Call& call, LaunchKernel* driver, OwnLaunch own) {
  static const bool able = is_able(Driver::get());
  Handle context = nullptr;
  if (!able || Driver::get().cuCtxGetCurrent(&context) != 0 || !context) return std::nullopt;
  std::shared_ptr<TunedLaunch> tuned = find(call, context);
  if (!tuned) {
    if (is_recording(call.stream) || call.shape.global[0] * call.shape.global[1] * call.shape.global[2] == 0)
      return std::nullopt;
    tuned = add(call, context);
    if (!tuned) return std::nullopt;
    const Relaxed relaxed;
    ask(*tuned, call);
  }
  follow_clock(*tuned, call.stream);
  if (tuned->state == State::unverified && !is_recording(call.stream)) return launch_both(call, *tuned, driver, own);
  if (tuned->state != State::used) return std::nullopt;
  void* packed[] = {reinterpret_cast<void*>(1), const_cast<std::byte*>(call.packed), reinterpret_cast<void*>(2),
                    const_cast<std::size_t*>(&call.packed_bytes), nullptr};
  const int code = tuned->replacement.launch(driver, call.stream, call.parameters, call.packed ? packed : nullptr);
  if (code == 0) {
    ++tuned->launches;
    return code;
  }
  tuned->state = State::left;
  Session::get().send({"failed", tuned->kernel, tuned->description, "it could not be launched"});
  return std::nullopt;
}

std::optional<Replacement> verified_for(const Call& call) {
  Handle context = nullptr;
  const auto query = Driver::get().cuCtxGetCurrent;
  if (!query || query(&context) != 0) return std::nullopt;
  const std::shared_ptr<TunedLaunch> tuned = find(call, context);
  if (!tuned || tuned->state != State::used) return std::nullopt;
  ++tuned->launches;
  return tuned->replacement;
}

void forget_tuned(Handle function) {
  const std::lock_guard lock(known().mutex);
  std::erase_if(known().launches, [&](const auto& one) {
    if (function && one.first.first != function) return false;
    for (const auto& tuned : one.second) report(*tuned);
    return true;
  });
}

}  // namespace ergotune::inject::gpu
