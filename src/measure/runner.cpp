#include "measure/runner.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.hpp"
#include "device/decorator.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "kernel/configure.hpp"
#include "measure/allocation_limits.hpp"
#include "measure/buffers/problem_buffers.hpp"
#include "measure/code_restrictions.hpp"
#include "measure/energy/clock_watch.hpp"
#include "measure/observers/observation.hpp"
#include "measure/observers/observer_registry.hpp"
#include "measure/timing/loaded_iteration.hpp"
#include "measure/timing/timing.hpp"
#include "measure/verify/kernel_checks.hpp"
#include "measure/verify/output_check.hpp"
#include "power/controls/control.hpp"

namespace ergotune {

MeasureOptions MeasureOptions::from(const RunConfig& settings) {
  MeasureOptions options;
  static_cast<MeasureSettings&>(options) = settings;
  // The stream must last for the requested durations.
  options.stream_seconds_limit =
      std::max({options.stream_seconds_limit, settings.energy_seconds + 1, settings.reference_seconds + 1});
  return options;
}

struct Runner::State {
  Device& device;
  const Problem& problem;
  MeasureOptions options;
  Constants constants;
  DeviceChecksum checksums;
  ProblemBuffers buffers;
  OutputCheck outputs;
  KernelChecks kernel_checks;
  Timer timer;
  InputReset reset;
  bool own_output_differs = false;  ///< a launch takes another time on what an earlier one has left
  Observation observation;
  ClockWatch watch;
  std::vector<std::string> observer_names;
  std::vector<std::string> parameter_names, notes;
  bool inputs_suspect = false;
  double clock_patience = 3;              ///< s to wait for a change of the clock, until the usual time is known
  bool blocks_missed = false;             ///< of what a function allocates, in the first launch
  double load_seconds = 0, load_end = 0;  ///< of the last load without a pause; host time
  bool healthy = true;

  State(Device& d, const Problem& p, MeasureOptions o)
      : device(d),
        problem(p),
        options(std::move(o)),
        constants(p.constants_for(d.info().name, d.info().properties)),
        checksums(d),
        buffers(d, argument_lists(p), constants, nullptr, swapped_buffers(p)),
        outputs(p, d, buffers, options),
        kernel_checks(p, d, buffers, constants),
        timer(device, options, &checksums) {
    if (options.verify) buffers.watch_inputs(checksums);
    for (const Parameter& parameter : problem.parameters) parameter_names.push_back(parameter.name);
    for (const ObserverSpec& spec : problem.observers) add(make_observer(spec, {device.info(), options, &notes}));
  }

  void add(std::shared_ptr<Observer> observer) {
    observer_names.push_back(observer->name());
    observation.add(std::move(observer));
  }

  void run(const Configuration& configuration, std::span<const Binary> binaries, const RunOptions& run,
           Measurement& result);
  double first_round(LoadedIteration& round);
  bool check(LoadedIteration& round, const Configuration& configuration, bool reference_only, Measurement& result);
  bool verify(LoadedIteration& round, bool reference_only, Measurement& result);
  bool race(LoadedIteration& round);
  double warm_up(LoadedIteration& round, double expected_seconds);
  double choose_reset(Workload& workload, bool must);
  TimingResult time(Workload& workload, double expected_seconds, const RunOptions& run);
  bool note_time(const TimingResult& timing, Measurement& result) const;
  void observe(Workload& workload, const TimingResult& timing, const RunOptions& run, Measurement& result);
  void run_watched(Workload& workload, std::size_t looks, double least, double most);
  double settle(Workload& workload, double expected_seconds, double seconds);
  void look_for_blocks(Workload& workload);
  void wait_for_clock(Workload& workload, const RunOptions& run, Measurement& result);
};

constexpr double kLongestLook = 0.2;  // s, for the blocks that a function allocates

/// Runs the first iteration of a configuration; if the device rejects a launch, the error names the kernel.
double Runner::State::first_round(LoadedIteration& round) {
  std::optional<AllocationLimits> limits;
  if (options.sets_allocation_limits) limits.emplace();
  try {
    const double seconds = timer.once(round.workload());
    blocks_missed = limits && limits->missed() && seconds < kLongestLook;
    return seconds;
  } catch (const DeviceError& error) {
    if (error.fault() == DeviceFault::runtime || error.fault() == DeviceFault::timeout) throw;
    throw DeviceError(error.fault(), with_kernel_name(round.last_kernel(), error.what()), error.native_code());
  }
}

/// Number of iterations to verify for concurrent kernels, whose races may not show in the first one.
constexpr int kConcurrentChecks = 3;

/// Verifies the outputs of an iteration. For concurrent kernels, the first correct outputs are taken from an iteration
/// in sequence.
bool Runner::State::verify(LoadedIteration& round, bool reference_only, Measurement& result) {
  if (!round.concurrent()) return outputs.verify(result, reference_only);
  if (!outputs.has_all_references()) {
    buffers.restore();
    timer.once(round.in_sequence());
    if (!outputs.verify(result, reference_only)) return false;
    if (reference_only) return true;
    buffers.restore();
    timer.once(round.workload());
  }
  for (int i = 0; i < kConcurrentChecks; ++i) {
    if (i > 0) {
      buffers.restore();
      timer.once(round.workload());
    }
    result.message.clear();
    if (outputs.verify(result, reference_only)) continue;
    if (race(round))
      result.message = "a race: in sequence the same kernels are right, side by side they are not; " + result.message;
    return false;
  }
  return true;
}

/// Verifies single kernels first: outputs of a wrong kernel must not become expected outputs.
bool Runner::State::check(LoadedIteration& round, const Configuration& configuration, bool reference_only,
                          Measurement& result) {
  if (!options.verify || !kernel_checks.wanted()) return !outputs.wanted() || verify(round, reference_only, result);
  if (!kernel_checks.verify(round, configuration, result)) return false;
  if (!outputs.wanted()) return outputs.memory_intact(result);
  const Quantity of_kernels = result.quantities["error"];
  buffers.restore();
  timer.once(round.workload());
  const bool right = verify(round, reference_only, result);
  Quantity& error = result.quantities["error"];
  if (of_kernels.value > error.value || error.n == 0) error = of_kernels;
  return right;
}

/// Returns true if the kernels are correct when they run one after the other.
bool Runner::State::race(LoadedIteration& round) {
  Measurement alone;
  buffers.restore(true);
  timer.once(round.in_sequence());
  return outputs.verify(alone, false);
}

/// Returns the expected time of an iteration in s.
double Runner::State::warm_up(LoadedIteration& round, double expected_seconds) {
  Workload& workload = round.workload();
  reset = {};
  own_output_differs = false;
  if (buffers.has_in_out() || round.changes_own_inputs())
    reset.apply = [this, &round] {
      buffers.restore();
      round.reset_own_inputs();
    };
  if (reset.apply) reset.apply();
  // where inputs change, the launches that choose_reset() compares are warm-ups, too
  for (int i = reset.apply ? 1 : 0; i < options.warm_up; ++i) expected_seconds = timer.once(workload);
  // A single launch of a very short kernel does not predict the time of many launches.
  if (reset.apply && options.warm_up > 0) return choose_reset(workload, round.needs_reset());
  if (expected_seconds < options.min_sample_seconds && options.warm_up > 0)
    expected_seconds = std::min(expected_seconds, timer.once(workload));
  return expected_seconds;
}

/// Inputs are reset before each launch where a launch takes another time on what an earlier one has left (a sort does),
/// where that costs no more than the launch, and where they `must` be. Returns the expected time of an iteration in s.
double Runner::State::choose_reset(Workload& workload, bool must) {
  constexpr int kTries = 5;
  constexpr double kEnough = 0.02, kDiffers = 1.5;  // kEnough: s
  double fresh = 1e300, again = 1e300, resetting = 1e300, spent = 0;
  for (int i = 0; i < kTries && (i < 2 || spent < kEnough) && (i == 0 || spent < 10 * kEnough); ++i) {
    const double began = host_seconds();
    reset.apply();
    device.synchronise();
    resetting = std::min(resetting, host_seconds() - began);
    fresh = std::min(fresh, timer.once(workload));
    again = std::min(again, timer.once(workload));
    spent = fresh * (i + 1);
  }
  own_output_differs = std::max(fresh, again) > kDiffers * std::min(fresh, again);
  reset.before_each = must || own_output_differs || (fresh >= options.min_sample_seconds && resetting <= fresh);
  return reset.before_each ? fresh : again;
}

TimingResult Runner::State::time(Workload& workload, double expected_seconds, const RunOptions& run) {
  const double give_up_above = run.objective_quantity == "time" ? run.give_up_above : 1e300;
  if (!observation.wants(ObserverPhase::repetitions))
    return timer.measure(workload, expected_seconds, give_up_above, reset, nullptr);
  const RepetitionHooks hooks = observation.repetition_hooks();
  return timer.measure(workload, expected_seconds, give_up_above, reset, &hooks);
}

/// Returns false if the time is not positive.
bool Runner::State::note_time(const TimingResult& timing, Measurement& result) const {
  Quantity time;
  time.value = timing.estimate.value;
  time.standard_error = timing.estimate.standard_error;
  time.n = static_cast<std::int64_t>(timing.estimate.count);
  time.degrees = timing.estimate.degrees;
  time.method = device.info().backend == "host" ? "trimmed mean by the host clock" : "trimmed mean of device events";
  if (timing.launches_per_sample > 1) time.method += fmt::format(", {} launches each", timing.launches_per_sample);
  if (options.cold_cache) time.method += ", cold cache";
  if (reset.before_each) time.method += ", inputs reset before each launch";
  if (timing.overhead > 0)
    time.method += fmt::format(", less {:.1f} us of each sample for the events", 1e6 * timing.overhead);
  result.quantities["time"] = time;
  if (timing.gave_up) {
    result.warnings.push_back("stopped early: its interval lies above the best so far");
  } else if (!timing.converged) {
    result.status = Status::not_converged;
    result.message =
        fmt::format("the 95 % interval of the time is +-{:.3g} % after {} samples; {:.3g} % was asked",
                    100 * timing.estimate.relative_half_width, timing.samples.size(), 100 * options.precision);
  }
  if (timing.estimate.value > 0) return true;
  result.status = Status::runtime_error;
  result.message = "the device reported a launch time of zero";
  return false;
}

/// What comes after the time measurement: single launches, the stream, phases of observers' own.
void Runner::State::observe(Workload& workload, const TimingResult& timing, const RunOptions& run,
                            Measurement& result) {
  if (observation.empty()) return;
  const bool screened = timing.estimate.value > run.energy_up_to;
  if (screened) result.warnings.push_back("only its time was measured");
  const bool watches = !timing.gave_up && !screened;
  if (watches) {
    const double seconds = timing.estimate.value;
    const auto prepare = [this] {
      if (reset.apply) reset.apply();
      if (options.cold_cache) timer.flush();
    };
    // Data that restoring leaves in the caches is written back first, so that it is not attributed to the kernel. If
    // iterations may follow each other without restoring, one of them then brings the caches to their usual state.
    const auto prepare_own = [this, &workload] {
      if (reset.apply) reset.apply();
      buffers.restore(true);
      if (options.cold_cache) return timer.flush();
      if (timer.sweep() && !reset.apply) workload.launch(1);
    };
    if (observation.wants(ObserverPhase::launches)) {
      // As many launches as there were samples, if they fit into the time limit of the samples.
      const auto fitting = static_cast<std::size_t>(std::max(3.0, options.max_seconds / seconds));
      observation.single_launches(device, workload, std::min(timing.samples.size(), fitting), prepare);
    }
    if (observation.wants(ObserverPhase::stream)) {
      if (own_output_differs)
        result.warnings.push_back(
            "its energy is that of launches on what earlier ones have left, which take another time "
            "than launches on the inputs");
      observation.stream(device, workload, seconds, options.stream_seconds_limit);
    }
    if (observation.wants(ObserverPhase::own)) observation.own_passes(device, workload, prepare_own);
  }
  observation.collect(result, !watches);
}

/// Runs iterations until the largest block that a function allocates is seen, for a short while.
void Runner::State::look_for_blocks(Workload& workload) {
  const double begin = host_seconds();
  AllocationLimits limits;
  do {
    limits.raise();
    timer.once(workload);
  } while (limits.missed() && host_seconds() - begin < kLongestLook);
}

/// Runs iterations for at least `least` s, until the GPU's state has been read `looks` times or `most` s have passed.
void Runner::State::run_watched(Workload& workload, std::size_t looks, double least, double most) {
  const double begin = host_seconds();
  for (double since = 0; since < least || (watch.looks() < looks && since < most); since = host_seconds() - begin)
    timer.once(workload);
}

/// Runs iterations until the GPU has been under load for `seconds`; a load that ended shortly before counts for up to
/// half of them. They follow each other without pauses, in which the GPU would cool and clock up again. Returns the
/// host time when the load began.
double Runner::State::settle(Workload& workload, double expected_seconds, double seconds) {
  constexpr double kBatch = 5e-3;  // s between waits
  const double begin = host_seconds();
  if (device.info().is_cpu) return begin;
  const double before = std::max(0.0, load_seconds - (begin - load_end));
  const double needed = std::max(0.5 * seconds, seconds - before);
  const auto launches = static_cast<std::size_t>(std::clamp(kBatch / std::max(expected_seconds, 1e-9), 1.0, 1000.0));
  while (host_seconds() - begin < needed) {
    workload.launch(launches);
    device.synchronise();
  }
  return begin;
}

/// Runs iterations until the GPU runs at the requested clock: a change takes time, and some GPUs change only under
/// load. A GPU that is held down for another reason never reaches it.
void Runner::State::wait_for_clock(Workload& workload, const RunOptions& run, Measurement& result) {
  if (!watch.watching() || run.requested_clock_mhz <= 0) return;
  constexpr double kUsual = 0.5;  // s; 0.2 s and less were seen on several generations
  const double begin = host_seconds();
  bool seen_otherwise = false;
  while (host_seconds() - begin < clock_patience) {
    const DeviceState state = watch.look();
    if (!state.core_clock_mhz) return;
    if (same_clock(run.requested_clock_mhz, *state.core_clock_mhz, run.clock_tolerance)) {
      if (seen_otherwise && run.set_at > 0)
        result.quantities["clock_latency"] = {host_seconds() - run.set_at,  0,  1,
                                              "device monitor, under load", {}, Provenance::measured};
      if (seen_otherwise) clock_patience = std::max(kUsual, 2 * (host_seconds() - begin));
      return;
    }
    if (held_by_power_limit(state)) return;
    seen_otherwise = true;
    timer.once(workload);
  }
  clock_patience = kUsual;
}

void Runner::State::run(const Configuration& configuration, std::span<const Binary> binaries, const RunOptions& run,
                        Measurement& result) {
  const double started = host_seconds();
  LoadedIteration round(device, problem, constants, buffers, configuration, binaries);
  round.note_resources(result);
  if (run.resources_only) return;
  if (const auto broken =
          broken_code_restriction(problem, problem.parameters, configuration, constants, result.quantities)) {
    result.status = Status::unsupported;
    result.message = *broken;
    return;
  }

  ObservedConfiguration observed;
  observed.names = &parameter_names;
  observed.values = &configuration;
  observed.give_up_above = run.give_up_above;
  observed.objective_quantity = run.objective_quantity;
  for (const WorkloadStep& step : round.kernels().steps()) observed.iteration_launches += step.launches;
  if (!run.reference_only) observation.register_configuration(observed);

  // The first iteration is the one that is verified; later ones may rely on correct kernels.
  buffers.restore(inputs_suspect);
  inputs_suspect = false;
  watch.open(run.watched);
  if (run.state_only) {
    watch.begin();
    run_watched(round.workload(), 5, 0.25, 1);  // some states of a GPU appear only under load
    watch.end();
    return watch.note(result, 0, run.clock_tolerance, true);
  }
  if (!run.reference_only) outputs.expect(configuration);
  const double first_seconds = first_round(round);
  if (outputs.wanted() || kernel_checks.wanted()) {
    const bool right = check(round, configuration, run.reference_only, result);
    result.verify_seconds = host_seconds() - started;
    inputs_suspect = !right;
    if (!right) return;
  }
  if (run.reference_only) return;
  constexpr double kLongestExtraLaunch = 2;  // s
  if (outputs.wanted() && first_seconds < kLongestExtraLaunch) {
    const auto iterate = [&] {
      round.reset_own_inputs();
      timer.once(round.workload());
    };
    if (!outputs.check_access(iterate, result)) {
      inputs_suspect = true;
      return;
    }
  }
  const auto known_before = result.quantities;

  if (blocks_missed) look_for_blocks(round.workload());
  observed.expected_launch_seconds = warm_up(round, first_seconds);
  observation.register_configuration(observed);
  const double load_begin = settle(round.workload(), observed.expected_launch_seconds, run.settle_seconds);
  wait_for_clock(round.workload(), run, result);
  watch.begin();
  TimingResult timing = time(round.workload(), observed.expected_launch_seconds, run);
  load_end = host_seconds();
  load_seconds = load_end - load_begin;
  if (!note_time(timing, result)) return;
  constexpr double kNotable = 2e-4, kRemembered = 50;  // s, ratio
  if (device.info().backend == "host" && first_seconds > std::max(kNotable, kRemembered * timing.estimate.value))
    result.warnings.push_back(fmt::format(
        "its first call took over {:.0f} times as long as later ones, which are timed: does the function keep "
        "results between calls?",
        kRemembered));
  if (problem.has_named_kernels() && !timing.gave_up) {
    if (reset.apply) reset.apply();
    measure_kernel_times(device, round, problem, std::min(options.max_seconds, kKernelTimesSeconds), result);
  }
  // A short kernel ends before the GPU's state was read.
  if (watch.watching()) run_watched(round.workload(), 4, 0, 0.15 - timing.estimate.value);
  observe(round.workload(), timing, run, result);
  watch.end();
  watch.note(result, run.requested_clock_mhz, run.clock_tolerance);
  result.times = std::move(timing.samples);
  // A later launch may write where the first did not; the next configuration must not be blamed for it.
  if (outputs.wanted() && !outputs.memory_intact(result)) {
    result.quantities = known_before;
    result.times.clear();
  }
}

Runner::Runner(Device& device, const Problem& problem, MeasureOptions options)
    : state_(std::make_unique<State>(device, problem, std::move(options))) {}
Runner::~Runner() = default;

void Runner::add_observer(std::shared_ptr<Observer> observer) { state_->add(std::move(observer)); }
bool Runner::observes(const std::string& name) const {
  const auto& names = state_->observer_names;
  return std::ranges::find(names, name) != names.end();
}
const std::vector<std::string>& Runner::notes() const { return state_->notes; }
void Runner::set_verifier(Verifier verifier) { state_->outputs.set_verifier(std::move(verifier)); }

CompileJob Runner::compile_job(const Configuration& configuration, std::size_t kernel) const {
  return make_compile_job(state_->problem, state_->problem.kernels.at(kernel), state_->device.info(), state_->constants,
                          configuration);
}

bool Runner::has_reference() const { return state_->outputs.has_reference(); }
bool Runner::healthy() const { return state_->healthy; }

namespace {

Status status_of(DeviceFault fault) {
  switch (fault) {
    case DeviceFault::compile:
      return Status::compile_error;
    case DeviceFault::launch:
    case DeviceFault::out_of_memory:
      return Status::launch_error;
    case DeviceFault::timeout:
      return Status::timeout;
    case DeviceFault::unsupported:
      return Status::unsupported;
    case DeviceFault::runtime:
      return Status::runtime_error;
  }
  return Status::runtime_error;
}

}  // namespace

Measurement Runner::run(const Configuration& configuration, std::span<const Binary> binaries,
                        const RunOptions& options) {
  Measurement result;
  const auto fail = [&](Status status, const std::string& message) {
    result.status = status;
    result.message = message;
    result.quantities.erase("time");
  };
  const double started = host_seconds();
  try {
    state_->run(configuration, binaries, options, result);
  } catch (const DeviceError& error) {
    const bool memory = error.fault() == DeviceFault::out_of_memory;
    fail(status_of(error.fault()), memory ? fmt::format("out of memory: {}", error.what()) : error.what());
    state_->inputs_suspect = true;
    // After a fault inside a kernel, the context is lost on CUDA and cannot be trusted elsewhere.
    if (error.fault() == DeviceFault::runtime || error.fault() == DeviceFault::timeout) state_->healthy = false;
  } catch (const WrongOutputs& error) {
    fail(Status::wrong_result, error.what());
  } catch (const UserError& error) {
    // An expression cannot be evaluated for this configuration: a failure of the configuration, not of the session.
    fail(Status::launch_error, error.what());
  } catch (const std::bad_alloc&) {
    fail(Status::launch_error, "out of memory on the host");
  } catch (const std::exception& error) {
    fail(Status::runtime_error, error.what());
    state_->inputs_suspect = true;
  }
  state_->observation.cancel();
  state_->watch.end();
  result.finished_at = wall_seconds();
  // All time except verification counts as measuring, including loading and unloading by the driver.
  result.measure_seconds = host_seconds() - started - result.verify_seconds;
  return result;
}

}  // namespace ergotune
