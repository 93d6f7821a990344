#include "ergotune/measure/runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "kernel/configure.hpp"
#include "measure/compare.hpp"
#include "measure/kernel_buffers.hpp"
#include "measure/observation.hpp"
#include "measure/reference.hpp"
#include "measure/timing.hpp"

namespace ergotune {

MeasureOptions MeasureOptions::from(const TuneDefaults& defaults) {
  MeasureOptions options;
  if (defaults.precision) options.precision = *defaults.precision;
  if (defaults.warm_up) options.warm_up = *defaults.warm_up;
  if (defaults.min_repeats) options.min_repeats = *defaults.min_repeats;
  if (defaults.max_repeats) options.max_repeats = *defaults.max_repeats;
  if (defaults.cold_cache) options.cold_cache = *defaults.cold_cache;
  return options;
}

struct Runner::State {
  Device& device;
  const Problem& problem;
  MeasureOptions options;
  Constants constants;
  KernelBuffers buffers;
  Timer timer;
  Observation observation;
  Verifier verifier;
  std::vector<std::string> names;
  std::optional<ExpectedOutputs> expected;
  std::map<std::size_t, std::vector<std::byte>>
      actual;  ///< kept between configurations: no allocation per run
  bool inputs_suspect = false;
  bool healthy = true;

  State(Device& d, const Problem& p, MeasureOptions o)
      : device(d),
        problem(p),
        options(std::move(o)),
        constants(p.constants_for(d.info().name, d.info().properties)),
        buffers(d, p.kernel().arguments, constants),
        timer(device, options) {
    for (const Parameter& parameter : problem.parameters) names.push_back(parameter.name);
    if (!wants_verification()) return;
    expected = expected_outputs(problem, device, buffers);
    if (!expected && !options.reference_file.empty()) expected = load_outputs(options.reference_file);
  }

  bool wants_verification() const {
    return options.verify && problem.verification.kind != Verification::Kind::none &&
           !buffers.outputs().empty();
  }

  void run(const Configuration& configuration, const Binary& binary, const RunOptions& run,
           Measurement& result);
  bool verify(Measurement& result, bool reference_only);
  bool compare_outputs(Measurement& result);
  void observe(LoadedKernel& kernel, const TimingResult& timing, Measurement& result);
};

bool Runner::State::compare_outputs(Measurement& result) {
  double error = 0;
  if (verifier) {
    std::vector<OutputView> views;
    for (const std::size_t i : buffers.outputs()) {
      OutputView view;
      view.argument = &problem.kernel().arguments[i];
      view.actual = actual[i];
      if (expected && expected->contains(i)) view.expected = expected->at(i);
      views.push_back(view);
    }
    std::string message;
    const bool right = verifier(views, message, error);
    result.quantities["error"] = {
        error, 0, 1, "verification by the user's function", {}, Provenance::measured};
    if (!right)
      result.message = message.empty() ? "the user's verification says the outputs are wrong" : message;
    return right;
  }
  for (const auto& [position, contents] : *expected) {
    const Argument& argument = problem.kernel().arguments[position];
    const Comparison found =
        compare(argument.type, actual[position], contents, problem.verification.absolute_tolerance,
                problem.verification.relative_tolerance);
    error = std::max(error, found.error);
    if (!found.equal) {
      result.message = fmt::format("{}output \"{}\": {}", result.message.empty() ? "" : result.message + "; ",
                                   argument.name, found.message);
    }
  }
  if (std::isfinite(error)) {
    result.quantities["error"] = {
        error, 0, 1, "largest relative error of the outputs", {}, Provenance::measured};
  }
  return result.message.empty();
}

bool Runner::State::verify(Measurement& result, bool reference_only) {
  for (const std::size_t i : buffers.outputs()) buffers.read(i, actual[i]);
  if (!verifier && !expected) {
    if (problem.verification.kind != Verification::Kind::first_correct) return true;
    expected = ExpectedOutputs(actual.begin(), actual.end());
    if (!options.reference_file.empty()) save_outputs(*expected, options.reference_file);
  }
  if (reference_only) return true;
  if (compare_outputs(result)) return true;
  result.status = Status::wrong_result;
  inputs_suspect = true;
  return false;
}

void Runner::State::observe(LoadedKernel& kernel, const TimingResult& timing, Measurement& result) {
  if (observation.empty()) return;
  if (observation.wants_stream() && !timing.gave_up) {
    const LaunchStream stream =
        observation.stream(device, kernel, timing.estimate.value, options.stream_seconds_limit);
    (void)stream;
  }
  if (!(timing.gave_up && observation.wants_stream())) observation.collect(result);
}

void Runner::State::run(const Configuration& configuration, const Binary& binary, const RunOptions& run,
                        Measurement& result) {
  const double started = host_seconds();
  const ConfigurationScope scope_of(problem.parameters, configuration, constants);
  const Scope scope = scope_of.scope();
  const LaunchGeometry geometry = make_geometry(problem.kernel().launch, scope);
  const std::unique_ptr<LoadedKernel> kernel = device.load(binary);
  kernel->bind(geometry, buffers.arguments(scope));
  const LoadedKernel::Resources resources = kernel->resources();
  const auto note_resource = [&](const char* name, int value) {
    if (value >= 0)
      result.quantities[name] = {static_cast<double>(value), 0, 1, "compiled code", {}, Provenance::measured};
  };
  note_resource("registers", resources.registers);
  note_resource("shared_bytes", resources.shared_bytes);
  note_resource("local_bytes", resources.local_bytes);

  ObservedConfiguration observed;
  observed.names = &names;
  observed.values = &configuration;
  observed.give_up_above = run.give_up_above;
  observed.objective_quantity = run.objective_quantity;
  if (!observation.empty() && !run.reference_only) observation.register_configuration(observed);

  // The launch that is verified is the first of all: what comes after it may rely on a kernel that works.
  buffers.restore(inputs_suspect);
  inputs_suspect = false;
  double expected_seconds = timer.once(*kernel);
  if (wants_verification() || verifier) {
    const bool right = verify(result, run.reference_only);
    result.verify_seconds = host_seconds() - started;
    if (!right) return;
  }
  if (run.reference_only) return;

  const bool restore = buffers.has_in_out();
  if (restore) buffers.restore();
  for (int i = 0; i < options.warm_up; ++i) expected_seconds = timer.once(*kernel);
  // One launch of a very short kernel says little about how long many of them take.
  if (expected_seconds < options.min_sample_seconds && options.warm_up > 0) {
    expected_seconds = std::min(expected_seconds, timer.once(*kernel));
  }
  observed.expected_launch_seconds = expected_seconds;
  RepetitionHooks hooks;
  const bool watched = observation.wants_repetitions();
  if (!observation.empty()) {
    observation.register_configuration(observed);
    hooks = observation.repetition_hooks();
  }
  const std::function<void()> between = [this] { buffers.restore(); };
  const bool races_on_time = run.objective_quantity == "time";
  TimingResult timing =
      timer.measure(*kernel, expected_seconds, races_on_time ? run.give_up_above : 1e300,
                    restore ? between : std::function<void()>(), watched ? &hooks : nullptr);
  Quantity time;
  time.value = timing.estimate.value;
  time.standard_error = timing.estimate.standard_error;
  time.n = static_cast<std::int64_t>(timing.estimate.count);
  time.method =
      timing.launches_per_sample > 1
          ? fmt::format("trimmed mean of device events, {} launches each", timing.launches_per_sample)
          : "trimmed mean of device events";
  if (options.cold_cache) time.method += ", cold cache";
  result.quantities["time"] = time;
  if (timing.gave_up) {
    result.warnings.push_back("stopped early: its interval lies above the best so far");
  } else if (!timing.converged) {
    result.status = Status::not_converged;
    result.message = fmt::format(
        "the 95 % interval of the time is +-{:.2g} % after {} samples; {:.2g} % was asked",
        100 * timing.estimate.relative_half_width, timing.samples.size(), 100 * options.precision);
  }
  if (!(timing.estimate.value > 0)) {
    result.status = Status::runtime_error;
    result.message = "the device reported a launch time of zero";
    return;
  }
  result.times = std::move(timing.samples);
  observe(*kernel, timing, result);
}

Runner::Runner(Device& device, const Problem& problem, MeasureOptions options)
    : state_(std::make_unique<State>(device, problem, std::move(options))) {}
Runner::~Runner() = default;

void Runner::add_observer(std::shared_ptr<Observer> observer) {
  state_->observation.add(std::move(observer));
}
void Runner::set_verifier(Verifier verifier) { state_->verifier = std::move(verifier); }

CompileJob Runner::compile_job(const Configuration& configuration) const {
  return make_compile_job(state_->problem, state_->problem.kernel(), state_->device.info(), state_->constants,
                          configuration);
}

bool Runner::has_reference() const { return state_->expected.has_value() || !state_->wants_verification(); }
bool Runner::healthy() const { return state_->healthy; }

Measurement Runner::run(const Configuration& configuration, const Binary& binary, const RunOptions& options) {
  Measurement result;
  const auto fail = [&](Status status, const std::string& message) {
    result.status = status;
    result.message = message;
    result.quantities.erase("time");
  };
  const double started = host_seconds();
  try {
    state_->run(configuration, binary, options, result);
  } catch (const DeviceError& error) {
    switch (error.fault()) {
      case DeviceFault::compile:
        fail(Status::compile_error, error.what());
        break;
      case DeviceFault::launch:
        fail(Status::launch_error, error.what());
        break;
      case DeviceFault::out_of_memory:
        fail(Status::launch_error, fmt::format("out of memory: {}", error.what()));
        break;
      case DeviceFault::timeout:
        fail(Status::timeout, error.what());
        break;
      case DeviceFault::unsupported:
        fail(Status::unsupported, error.what());
        break;
      case DeviceFault::runtime:
        fail(Status::runtime_error, error.what());
        break;
    }
    state_->inputs_suspect = true;
    // After a fault inside a kernel the context is lost on CUDA, and cannot be trusted elsewhere.
    if (error.fault() == DeviceFault::runtime || error.fault() == DeviceFault::timeout)
      state_->healthy = false;
  } catch (const UserError& error) {
    // The configuration meets an expression that has no value for it: its own failure, not the whole run's.
    fail(Status::launch_error, error.what());
  } catch (const std::bad_alloc&) {
    fail(Status::launch_error, "out of memory on the host");
  } catch (const std::exception& error) {
    fail(Status::runtime_error, error.what());
    state_->inputs_suspect = true;
  }
  state_->observation.cancel();
  result.finished_at = wall_seconds();
  // Loading and unloading are the driver's time, not ours: all that is not verification counts as measuring.
  result.measure_seconds = host_seconds() - started - result.verify_seconds;
  return result;
}

}  // namespace ergotune
