#include "program/program_runner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/process/environment.hpp"
#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "evaluate/live/machine_fault.hpp"
#include "measure/energy/energy_plausible.hpp"
#include "measure/timing/timing.hpp"

namespace ergotune {
namespace {

namespace fs = std::filesystem;

fs::path builds_folder(const LiveOptions& options, const fs::path& temporary) {
  if (!options.use_cache) return temporary / "builds";
  if (!options.cache_folder.empty()) return options.cache_folder / "builds";
  const fs::path own = user_folder("XDG_CACHE_HOME", ".cache");
  return own.empty() ? temporary / "builds" : own / "builds";
}

/// `set` if it differs from the kernels' default, else the default for programs.
template <class T>
T or_default(T set, T kernel_default, T program_default) {
  return set == kernel_default ? program_default : set;
}

bool fail(Measurement& result, Status status, std::string message) {
  result.status = status;
  result.message = std::move(message);
  return false;
}

template <class Samples>
std::vector<TimeSpan> spans_of(const Samples& samples) {
  std::vector<TimeSpan> spans;
  for (const auto& sample : samples) spans.push_back(sample.span);
  return spans;
}

}  // namespace

EnergyOfRuns energy_of_runs(const std::vector<SensorTrace>& traces, const std::vector<TimeSpan>& spans,
                            std::size_t runs) {
  EnergyOfRuns out;
  std::vector<double> joules(spans.size(), 0.0);
  double edges = 0, lasting = 0;
  std::string sensors;
  for (const SensorTrace& trace : traces) {
    const std::vector<SpanEnergy> seen = energy_over(trace, spans);
    double sum = 0, seconds = 0, edge = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (!seen[i].why_not.empty()) {
        out.why_not = fmt::format("{}: {}", trace.info.id, seen[i].why_not);
        return out;
      }
      joules[i] += seen[i].joules;
      sum += seen[i].joules;
      seconds += spans[i].length();
      edge += seen[i].edge_error;
    }
    edges = std::hypot(edges, edge / static_cast<double>(spans.size()));
    // Errors that are common to all samples, for the share of one sensor.
    const double watts = seconds > 0 ? sum / seconds : 0;
    lasting = std::hypot(lasting, std::hypot(trace.info.repeatability, calibration_error(trace.info, watts)) * sum /
                                      static_cast<double>(spans.size()));
    sensors += (sensors.empty() ? "" : ",") + trace.info.id;
  }
  std::vector<double> powers;
  for (std::size_t i = 0; i < spans.size(); ++i) powers.push_back(joules[i] / spans[i].length());
  const TimeEstimate energy = estimate_time(joules), power = estimate_time(powers);
  const double count = std::sqrt(static_cast<double>(spans.size())), each = static_cast<double>(runs);
  // The scatter is estimated from few samples; the sensor's uncertainty is known.
  const auto scatter_or = [](const TimeEstimate& e, double edge) {
    return e.standard_error > edge ? ErrorEstimate{e.standard_error, e.degrees} : ErrorEstimate{edge};
  };
  const ErrorEstimate terms[] = {scatter_or(energy, edges / count), {lasting}};
  const auto [error, degrees] = combined_error(terms);
  const auto n = static_cast<std::int64_t>(spans.size() * runs);
  const std::string method = runs > 1 ? fmt::format("trimmed mean over runs, {} each", runs) : "trimmed mean over runs";
  out.energy = {energy.value / each, error / each, n, method, sensors, Provenance::measured, degrees};
  const double relative = energy.value > 0 ? std::hypot(std::max(0.0, edges / count), lasting) / energy.value : 0;
  const ErrorEstimate of_power = scatter_or(power, relative * power.value);
  out.power = {power.value, of_power.standard_error, n, method, sensors, Provenance::measured, of_power.degrees};
  if (energy.count < 2 || !(energy.value > 0)) {
    out.why_not = "one run alone gives no error";
    return out;
  }
  out.relative_half_width = out.energy.half_width() / out.energy.value;
  return out;
}

/// State of the configuration that is being measured.
struct ProgramRunner::Here {
  ProgramTemplates texts;
  SupervisedRun command;
  Measurement result;
  std::vector<Sample> samples;
  std::size_t runs_per_sample = 1;
  double spent = 0;
  double disturbed = 0;  ///< share of the time in which sensors and clocks were read, by which the run may have been
                         ///< prolonged
  bool gave_up = false;
  int left_behind = 0;
};

ProgramRunner::ProgramRunner(const Problem& problem, const Constants& constants, const LiveOptions& options,
                             std::vector<std::string> supervisor, std::vector<std::unique_ptr<Sensor>> sensors)
    : problem_(problem),
      program_(*problem.program),
      constants_(constants),
      options_(options),
      precision_(or_default(options.measure.precision, MeasureSettings().precision, kProgramPrecision)),
      time_limit_(program_.time_limit > 0 ? program_.time_limit : options.time_limit),
      beside_(folder_of_problem(problem.file)),
      output_(temporary_.path() / "stdout"),
      patterns_(program_),
      supervisor_(std::move(supervisor)),
      builds_(program_, builds_folder(options, temporary_.path()), beside_, options.compile_time_limit),
      recorder_(std::move(sensors)) {
  if (!program_.build.empty() && options.use_cache) builds_.prune();
}

double ProgramRunner::most_seconds() const {
  const double seconds = or_default(options_.measure.max_seconds, MeasureSettings().max_seconds, kProgramSeconds);
  return recorder_.sensors().empty() ? seconds : std::max(seconds, options_.energy_seconds);
}

/// Prepares everything that depends on the configuration: build, files, command.
bool ProgramRunner::prepare(Here& here) {
  here.texts.set_folder("folder", beside_);
  fs::path folder = beside_;
  if (!program_.build.empty()) {
    const BuildOutcome built = builds_.build(here.texts, supervisor_, stopping_);
    here.result.compile_seconds = built.seconds;
    if (built.status != Status::ok) return fail(here.result, built.status, built.message);
    folder = built.folder;
    here.texts.set_folder("build", built.folder);
  }
  const fs::path run = temporary_.path() / "run";
  std::error_code error;
  fs::remove_all(run, error);
  fs::create_directories(run, error);
  if (error) throw UserError(fmt::format("{}: {}", run.string(), error.message()));
  here.texts.set_folder("run", run);
  here.texts.write(program_.files, run);
  if (program_.folder) folder = beside_ / here.texts.text(*program_.folder);
  here.command.arguments = here.texts.texts(program_.command);
  here.command.environment = here.texts.texts(program_.environment);
  here.command.folder = folder.string();
  here.command.time_limit = time_limit_;
  here.command.kept_bytes = 4u << 20;
  return true;
}

SupervisedResult ProgramRunner::run_once(Here& here) {
  SupervisedResult result = supervisor_.run(here.command);
  here.left_behind = std::max(here.left_behind, static_cast<int>(result.left_behind));
  return result;
}

/// Runs the program once; its complete standard output is stored if the check needs it.
SupervisedResult ProgramRunner::run_first(bool checked, Here& here) {
  const bool compared = program_.compare && here.texts.text(program_.compare->file).empty();
  if (checked && (compared || !program_.check_command.empty())) here.command.whole_out = output_.string();
  SupervisedResult result = run_once(here);
  here.command.whole_out.clear();
  if (!result.not_whole.empty())
    throw UserError(fmt::format(
        "the program's output cannot be kept ({}); make room, or set TMPDIR to a place that has", result.not_whole));
  return result;
}

/// Sets the status if the run failed; returns whether it succeeded.
bool ProgramRunner::judge(const SupervisedResult& result, Here& here) const {
  const auto with_output = [&](std::string message) {
    const std::string description = output_tail(result.out, result.err);
    return description.empty() ? message : message + ":\n" + description;
  };
  if (!result.not_started.empty())
    return fail(here.result, Status::launch_error, "the program cannot be started: " + result.not_started);
  if (result.stopped) return fail(here.result, Status::timeout, "ended with the session");
  if (result.timed_out)
    return fail(here.result, Status::timeout, with_output(fmt::format("ended after {:g} s (time_limit)", time_limit_)));
  if (result.signal != 0)
    return fail(here.result, Status::runtime_error,
                with_output(fmt::format("ended by signal {} ({})", result.signal, ::strsignal(result.signal))));
  if (result.exit_code == 0) return true;
  const auto found = program_.exit_status.find(result.exit_code);
  if (found == program_.exit_status.end()) {
    const std::string full = full_disk_message(output_tail(result.out, result.err), "the program");
    if (!full.empty()) throw UserError(full, program_.place);
  }
  const Status status = found == program_.exit_status.end()
                            ? Status::runtime_error
                            : status_from(found->second).value_or(Status::runtime_error);
  if (status == Status::ok) return true;
  return fail(here.result, status, with_output(fmt::format("exit code {}", result.exit_code)));
}

bool ProgramRunner::check_file(Here& here) const {
  const ProgramComparison& compare = *program_.compare;
  const std::string name = here.texts.text(compare.file);
  const auto actual = read_file(name.empty() ? output_ : fs::path(here.command.folder) / name, std::string::npos);
  if (!actual) return fail(here.result, Status::wrong_result, fmt::format("it left no file {}", name));
  const auto expected = read_file(compare.reference, std::string::npos);
  if (!expected)
    throw UserError(fmt::format("the reference {} cannot be read any more", compare.reference.string()),
                    program_.place);
  const std::string description =
      difference(*actual, *expected, compare.absolute_tolerance, compare.relative_tolerance);
  if (description.empty()) return true;
  return fail(here.result, Status::wrong_result,
              fmt::format("{} differs from {}: {}", name.empty() ? "the output" : name,
                          compare.reference.filename().string(), description));
}

/// Checks the output; returns whether it is correct.
bool ProgramRunner::check(const SupervisedResult& result, Here& here) {
  if (!patterns_.right(result.out, result.err)) {
    const std::string description = output_tail(result.out, result.err);
    return fail(here.result, Status::wrong_result,
                fmt::format("no line of the output matches '{}' (check){}", program_.check_pattern,
                            description.empty() ? "" : ":\n" + description));
  }
  if (program_.compare && !check_file(here)) return false;
  if (program_.check_command.empty()) return true;
  SupervisedRun run = here.command;
  run.arguments = here.texts.texts(program_.check_command);
  const fs::path seen = temporary_.path() / "run" / "stdout";
  std::error_code error;
  fs::rename(output_, seen, error);
  if (error)
    throw UserError(fmt::format("the output for the check, {}: {}", seen.string(), error.message()), program_.place);
  const SupervisedResult checked = supervisor_.run(run);
  if (checked.ok()) return true;
  const std::string description = output_tail(checked.out, checked.err);
  const std::string command = fmt::format("{}", fmt::join(run.arguments, " "));
  if (!checked.not_started.empty())
    throw UserError(fmt::format("the check cannot be started: {}", checked.not_started), program_.place);
  return fail(here.result, Status::wrong_result,
              fmt::format("the check ({}) {}{}", command,
                          checked.timed_out     ? fmt::format("took more than {:g} s", time_limit_)
                          : checked.signal != 0 ? fmt::format("ended by signal {}", checked.signal)
                                                : fmt::format("ended with exit code {}", checked.exit_code),
                          description.empty() ? "" : ":\n" + description));
}

namespace {

/// Why the time in the program's output cannot be the time of a run that took `seconds`; empty if it can. Rounding
/// makes a number at most twice as large.
std::string impossible_time(const std::map<std::string, double>& numbers, double seconds) {
  const auto time = numbers.find("time");
  if (time == numbers.end() || time->second <= 2 * seconds) return {};
  return fmt::format(
      "the output reports a time of {:g} s, but the run took {:.3g} s from start to end: the quantity \"time\" is in s "
      "(\"energy\" in J). For a program that prints milliseconds, read them under another name, as in output = {{ "
      "loop_ms = '...' }}, convert them with [metrics] loop = {{ expression = \"loop_ms / 1000\", unit = \"s\" }}, and "
      "use objective = \"loop\"",
      time->second, seconds);
}

}  // namespace

/// Takes a sample of several consecutive runs if one is too short for the sensors.
bool ProgramRunner::take_sample(std::size_t runs, Here& here) {
  Sample sample;
  double seconds = 0;
  struct Beside {
    SensorRecorder& recorder;
    explicit Beside(SensorRecorder& r) : recorder(r) { recorder.set_program_runs(true); }
    ~Beside() { recorder.set_program_runs(false); }
  };
  std::optional<Beside> beside(recorder_);
  for (std::size_t i = 0; i < runs; ++i) {
    const SupervisedResult result = run_once(here);
    if (!judge(result, here)) return false;
    std::map<std::string, double> numbers;
    if (const std::string missing = patterns_.read(result.out, result.err, numbers); !missing.empty())
      return fail(here.result, Status::wrong_result, missing);
    if (const std::string reason = impossible_time(numbers, result.end - result.begin); !reason.empty())
      return fail(here.result, Status::wrong_result, reason);
    if (i == 0) sample.span.from = result.begin;
    sample.span.to = result.end;
    seconds += result.end - result.begin;
    sample.cpu_seconds += result.cpu_seconds / static_cast<double>(runs);
    sample.peak_bytes = std::max(sample.peak_bytes, result.peak_bytes);
    for (const auto& [name, value] : numbers) sample.numbers[name] += value / static_cast<double>(runs);
  }
  beside.reset();
  recorder_.wait(sample.span.to);
  sample.time = seconds / static_cast<double>(runs);
  here.spent += seconds;
  here.samples.push_back(std::move(sample));
  return true;
}

double ProgramRunner::reading_period(double run_seconds) const {
  double period = std::clamp(run_seconds / 500, 1e-3, 0.02);
  for (const auto& sensor : recorder_.sensors())
    if (const double update = sensor->info().update_period; update > 0)
      period = std::min(period, std::max(update / 4, 1e-3));
  return period;
}

std::size_t ProgramRunner::runs_per_sample(double run_seconds) const {
  double shortest = 0;
  for (const auto& sensor : recorder_.sensors()) shortest = std::max(shortest, shortest_span(sensor->info()));
  return static_cast<std::size_t>(std::clamp(std::ceil(shortest / std::max(run_seconds, 1e-4)), 1.0, 1000.0));
}

/// The program's own values of a quantity, by sample; empty if its output has none.
std::vector<double> ProgramRunner::numbers_of(const std::vector<Sample>& samples, const std::string& name) {
  std::vector<double> numbers;
  for (const Sample& sample : samples)
    if (const auto found = sample.numbers.find(name); found != sample.numbers.end()) numbers.push_back(found->second);
  return numbers;
}

/// The quantity `time` by sample: the program's own if its output has it.
std::vector<double> ProgramRunner::times_of(const std::vector<Sample>& samples) {
  std::vector<double> times = numbers_of(samples, "time");
  if (!times.empty()) return times;
  for (const Sample& sample : samples) times.push_back(sample.time);
  return times;
}

/// The larger of the relative half-widths of the 95 % intervals of time and energy.
double ProgramRunner::relative_error(const Here& here) const {
  double error = estimate_time(times_of(here.samples)).relative_half_width;
  // The program's own energy takes precedence over that of our sensors.
  if (const auto own = numbers_of(here.samples, "energy"); !own.empty())
    return std::max(error, estimate_time(own).relative_half_width);
  if (recorder_.sensors().empty()) return error;
  const EnergyOfRuns energy = energy_of_runs(recorder_.traces(), spans_of(here.samples), here.runs_per_sample);
  if (energy.why_not.empty()) error = std::max(error, energy.relative_half_width);
  return error;
}

bool ProgramRunner::enough(const RunOptions& options, Here& here) {
  const std::size_t count = here.samples.size();
  const double each = here.spent / static_cast<double>(count);
  const auto least = static_cast<std::size_t>(
      std::max(2, or_default(options_.measure.min_repeats, MeasureSettings().min_repeats, kProgramRepeats)));
  // Long runs vary little: fewer are needed.
  const std::size_t wanted =
      each * static_cast<double>(least) > most_seconds() ? std::min<std::size_t>(least, 3) : least;
  if (count < wanted) return false;
  if (relative_error(here) <= precision_) return true;
  if (options.objective_quantity == "time" && options.give_up_above < 1e300) {
    const TimeEstimate time = estimate_time(times_of(here.samples));
    here.gave_up = time.value * (1 - time.relative_half_width) > options.give_up_above;
    if (here.gave_up) return true;
  }
  if (has_outlier(times_of(here.samples))) return false;
  return here.spent >= most_seconds() || count >= static_cast<std::size_t>(std::max(options_.measure.max_repeats, 2));
}

void ProgramRunner::take_samples(double first_seconds, const RunOptions& options, Here& here) {
  here.runs_per_sample = runs_per_sample(first_seconds);
  recorder_.begin(reading_period(first_seconds));
  recorder_.wait(host_seconds());
  // Six readings per run detect a reduced clock; each reading disturbs the program.
  watch_.begin(std::clamp(first_seconds / 6, 0.015, 0.5));
  do {
    if (!take_sample(here.runs_per_sample, here)) break;
  } while (!enough(options, here));
  watch_.end();
  recorder_.end();
  if (here.spent > 0) here.disturbed = (recorder_.seconds_during_program() + watch_.seconds_reading()) / here.spent;
}

void ProgramRunner::note_times(Here& here) const {
  std::vector<double> times, cpu;
  double peak = 0;
  std::map<std::string, std::vector<double>> numbers;
  for (const Sample& sample : here.samples) {
    times.push_back(sample.time);
    cpu.push_back(sample.cpu_seconds);
    peak = std::max(peak, static_cast<double>(sample.peak_bytes));
    for (const auto& [name, value] : sample.numbers) numbers[name].push_back(value);
  }
  const auto runs = static_cast<std::int64_t>(here.samples.size() * here.runs_per_sample);
  const auto note = [&](const std::string& name, const std::vector<double>& values, const char* method) {
    const TimeEstimate estimate = estimate_time(values);
    Quantity& quantity = here.result.quantities[name];
    quantity = {estimate.value, estimate.standard_error, runs, method, {}, Provenance::measured, estimate.degrees};
    if (name == "time")
      quantity.standard_error = std::hypot(quantity.standard_error, here.disturbed * quantity.value / 2);
  };
  note("time", times, "trimmed mean of runs, host clock");
  note("cpu_time", cpu, "trimmed mean of runs, resource usage");
  here.result.quantities["peak_memory"] = {peak, 0, runs, "resource usage", {}, Provenance::measured};
  for (const auto& [name, values] : numbers) note(name, values, "read from the output");
  here.result.times = times_of(here.samples);
}

void ProgramRunner::note_energy(Here& here) const {
  if (recorder_.sensors().empty()) return;
  const EnergyOfRuns energy = energy_of_runs(recorder_.traces(), spans_of(here.samples), here.runs_per_sample);
  const bool own = here.result.quantities.contains("energy"), wide = energy.relative_half_width > kWidestInterval;
  if (own && (wide || !energy.why_not.empty())) return;
  if (!energy.why_not.empty()) {
    fail(here.result, Status::unsupported, energy.why_not);
    return;
  }
  if (wide) {
    fail(here.result, Status::unsupported,
         fmt::format("the energy is known to +-{:.0f} % only: runs are too short for {}, or too few",
                     100 * energy.relative_half_width, energy.energy.sensor));
    return;
  }
  here.result.quantities.try_emplace("energy", energy.energy);
  here.result.quantities.try_emplace("power", energy.power);
}

Measurement ProgramRunner::run(const Configuration& configuration, const RunOptions& options) {
  stopping_ = false;
  supervisor_.forget_stop();
  Here here{ProgramTemplates(constants_, problem_.parameters, configuration), {}, {}, {}, 1, 0, 0, false, 0};
  Measurement& result = here.result;
  const auto finish = [&]() -> Measurement {
    if (here.left_behind > 0)
      result.warnings.push_back(fmt::format("it left {} process{} behind, which {} ended", here.left_behind,
                                            here.left_behind == 1 ? "" : "es", here.left_behind == 1 ? "was" : "were"));
    result.finished_at = wall_seconds();
    return std::move(result);
  };
  try {
    if (options.resources_only || !prepare(here)) return finish();
    watch_.open(options.watched);
    if (options.state_only) watch_.begin();
    const double begun = host_seconds();
    const bool checked = options_.measure.verify && !options.state_only;
    const SupervisedResult first = run_first(checked, here);
    watch_.end();
    if (!judge(first, here)) return finish();
    if (options.state_only) {
      watch_.note(result, 0, options.clock_tolerance, true);
      return finish();
    }
    if (checked && !check(first, here)) return finish();
    result.verify_seconds = host_seconds() - begun;
    for (int i = 1; i < options_.measure.warm_up; ++i) (void)run_once(here);
    const double before = host_seconds();
    take_samples(first.end - first.begin, options, here);
    result.measure_seconds = host_seconds() - before;
    if (!usable(result.status) || here.samples.empty()) return finish();
    const double error = relative_error(here);
    note_times(here);
    if (here.gave_up) {
      result.warnings.push_back("stopped early: its interval lies above the best so far");
    } else if (error > precision_) {
      fail(result, Status::not_converged,
           fmt::format("the 95 % interval is +-{:.2g} % after {} runs; {:.2g} % was asked", 100 * error,
                       here.samples.size() * here.runs_per_sample, 100 * precision_));
    }
    note_energy(here);
    watch_.note(result, options.requested_clock_mhz, options.clock_tolerance);
  } catch (const UserError&) {
    throw;
  } catch (const NoProcess& error) {
    throw UserError(
        fmt::format("no program can be started ({}): where the limit of processes or descriptors is reached (ulimit "
                    "-u, -n), or memory is short, no configuration can help that, so nothing was stored for it",
                    error.what()));
  } catch (const Error& error) {
    fail(result, Status::runtime_error, error.what());
  }
  return finish();
}

}  // namespace ergotune
