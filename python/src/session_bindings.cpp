// Tuning from Python: live (workers, or in this process where callables take part), replayed, simulated.
#include <atomic>
#include <csignal>
#include <cstring>
#include <set>

#include "bindings.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/base/statistics.hpp"
#include "ergotune/device/device.hpp"
#include "ergotune/evaluate/live.hpp"
#include "ergotune/evaluate/replay.hpp"
#include "ergotune/evaluate/simulated.hpp"
#include "ergotune/problem/device_profile.hpp"
#include "ergotune/search/objective.hpp"
#include "ergotune/tune/session.hpp"

namespace ergotune::python {
namespace {

// -- callables ----------------------------------------------------------------------------------------------------

/// A Python observer. Kernel Tuner's get_results() and ours are the same: a dict of numbers or lists of readings.
class PythonObserver : public Observer {
 public:
  explicit PythonObserver(py::object object)
      : object_(keep(object)), name_(py::str(py::type::of(object).attr("__name__"))) {}
  std::string name() const override { return name_; }
  void register_configuration(const ObservedConfiguration& configuration) override {
    py::gil_scoped_acquire gil;
    if (!py::hasattr(*object_, "register_configuration")) return;
    py::dict values;
    for (std::size_t i = 0; i < configuration.names->size(); ++i)
      values[py::str((*configuration.names)[i])] = from_value((*configuration.values)[i]);
    object_->attr("register_configuration")(values);
  }
  void before_start() override { call("before_start"); }
  void after_start() override { call("after_start"); }
  void during() override { call("during"); }
  void after_finish() override { call("after_finish"); }
  std::map<std::string, Quantity> results() override {
    py::gil_scoped_acquire gil;
    std::map<std::string, Quantity> quantities;
    const py::dict results = object_->attr("get_results")();
    for (const auto& [key, value] : results) {
      Quantity q;
      q.method = "observer " + name_;
      q.n = 1;
      if (py::isinstance<py::sequence>(value) || py::isinstance<py::array>(value)) {
        RunningStatistics statistics;
        for (const auto& item : value)
          if (py::isinstance<py::float_>(item) || py::isinstance<py::int_>(item) || py::hasattr(item, "item"))
            statistics.add(to_value(item).as_real());
        if (statistics.count() == 0) continue;
        q.value = statistics.mean();
        q.standard_error = statistics.standard_error();
        q.n = static_cast<std::int64_t>(statistics.count());
      } else {
        q.value = to_value(value).as_real();
      }
      quantities[py::str(key).cast<std::string>()] = q;
    }
    return quantities;
  }

 private:
  void call(const char* hook) {
    py::gil_scoped_acquire gil;
    object_->attr(hook)();
  }
  std::shared_ptr<py::object> object_;
  std::string name_;
};

py::array array_of(const Argument& argument, std::span<const std::byte> bytes) {
  const py::array out(py::dtype(to_string(argument.type)), bytes.size() / size_of(argument.type));
  std::memcpy(const_cast<void*>(out.data()), bytes.data(), bytes.size());
  return out;
}

/// verify(actual, expected): dicts of arrays by argument name; expected is empty where there is no reference.
Verifier python_verifier(const py::function& function) {
  return [held = keep(function)](const std::vector<OutputView>& outputs, std::string& message, double&) {
    py::gil_scoped_acquire gil;
    py::dict actual, expected;
    for (const auto& output : outputs) {
      actual[py::str(output.argument->name)] = array_of(*output.argument, output.actual);
      if (!output.expected.empty())
        expected[py::str(output.argument->name)] = array_of(*output.argument, output.expected);
    }
    try {
      const bool right = py::bool_((*held)(actual, expected)).cast<bool>();
      if (!right) message = "the verification function says no";
      return right;
    } catch (py::error_already_set& error) {
      message = std::string("the verification function raised ") + error.what();
      return false;
    }
  };
}

/// Adds metrics worked out in Python before anything else sees a result, and keeps every result in order.
class PythonMetrics : public Evaluator {
 public:
  PythonMetrics(std::unique_ptr<Evaluator> inner, const SearchSpace& space, py::object function)
      : inner_(std::move(inner)), space_(space), function_(function.is_none() ? nullptr : keep(function)) {}
  std::string description() const override { return inner_->description(); }
  Provenance provenance() const override { return inner_->provenance(); }
  std::size_t capacity() const override { return inner_->capacity(); }
  void submit(EvaluationRequest request) override { inner_->submit(std::move(request)); }
  std::size_t pending() const override { return inner_->pending(); }
  void cancel() override { inner_->cancel(); }
  void set_journal(RunJournal* journal) override { inner_->set_journal(journal); }
  std::optional<EvaluationResult> wait(double seconds) override {
    auto result = inner_->wait(seconds);
    if (!result) return result;
    if (function_ && usable(result->measurement.status)) {
      py::gil_scoped_acquire gil;
      const py::dict metrics = (*function_)(named(space_.parameters(), space_.configuration(result->index)),
                                            to_dict(result->measurement));
      for (const auto& [name, value] : metrics)
        result->measurement.metrics[py::str(name).cast<std::string>()] = to_value(value).as_real();
    }
    results_.push_back(*result);
    return result;
  }
  const std::vector<EvaluationResult>& results() const { return results_; }

 private:
  std::unique_ptr<Evaluator> inner_;
  const SearchSpace& space_;
  std::shared_ptr<py::object> function_;
  std::vector<EvaluationResult> results_;
};

// -- settings -----------------------------------------------------------------------------------------------------

template <class T>
T setting(const py::dict& settings, const char* name, T otherwise) {
  if (!settings.contains(name) || settings[name].is_none()) return otherwise;
  return settings[name].cast<T>();
}

/// The evaluator for a device id, the problem (execution parameters resolved) and its space.
struct Prepared {
  Problem problem;
  Constants constants;
  std::string device_name;
  std::unique_ptr<SearchSpace> space;
  std::unique_ptr<Evaluator> evaluator;
};

/// Kernel Tuner's implied restriction: the product of the block sizes is at most what the device takes.
void restrict_block_size(Problem& problem, const std::vector<std::string>& names, std::int64_t most) {
  std::string product;
  for (const auto& name : names)
    for (const auto& parameter : problem.parameters)
      if (parameter.name == name) product += (product.empty() ? "" : " * ") + name;
  if (product.empty() || most <= 0) return;
  Restriction restriction;
  restriction.expression = Expression::parse(product + " <= " + std::to_string(most));
  restriction.name = "threads per block";
  restriction.restriction_class = RestrictionClass::device_limit;
  problem.restrictions.push_back(std::move(restriction));
}

Prepared prepare(Problem problem, const py::dict& settings, const py::object& verify, const py::list& observers) {
  Prepared out;
  const auto device = setting<std::string>(settings, "device", problem.defaults.device.value_or(""));
  const auto block_names = setting<std::vector<std::string>>(settings, "max_threads_restriction", {});
  if (const auto precision = setting<double>(settings, "precision", 0); precision > 0) problem.defaults.precision = precision;
  if (const int iterations = setting<int>(settings, "iterations", 0); iterations > 0) {
    problem.defaults.min_repeats = iterations;
    problem.defaults.max_repeats = iterations;
  }
  if (device.rfind("replay:", 0) == 0) {
    const std::filesystem::path file = device.substr(7);
    auto recording = std::make_shared<const Recording>(load_recording(file));
    out.device_name = recording->device;
    out.space = std::make_unique<SearchSpace>(space_of(*recording));
    out.problem = problem_of(*recording);
    out.evaluator = make_replay(recording, *out.space);
    return out;
  }
  if (device.rfind("sim:", 0) == 0) {
    const auto profile = load_device_profile(device.substr(4));
    resolve_execution_parameters(problem, profile);
    out.device_name = profile.name;
    out.constants = problem.constants_for(profile.name, profile.properties);
    out.space = std::make_unique<SearchSpace>(problem.build_space(out.constants));
    out.evaluator = make_simulated(profile, problem, *out.space);
    out.problem = std::move(problem);
    return out;
  }
  auto options = LiveOptions::from(problem.defaults);
  options.device = device;
  options.jobs = setting<int>(settings, "jobs", options.jobs);
  options.time_limit = setting<double>(settings, "time_limit", options.time_limit);
  options.worker_command = setting<std::vector<std::string>>(settings, "worker_command", {});
  options.use_cache = setting<bool>(settings, "use_cache", true);
  options.sensors = setting<std::vector<std::string>>(settings, "sensors", options.sensors);
  options.energy = setting<bool>(settings, "energy", options.energy);
  const auto objective = Objective::parse({.text = setting<std::string>(settings, "objective", problem.objective.text)},
                                          problem.metrics);
  if (objective.needs("energy")) options.energy = true;
  const LiveDevice* live = nullptr;
  if (!verify.is_none() || !observers.empty() || setting<bool>(settings, "in_process", false)) {
    auto evaluator = std::make_unique<InProcessEvaluator>(problem, options);
    if (!verify.is_none()) evaluator->runner().set_verifier(python_verifier(verify.cast<py::function>()));
    for (const auto& observer : observers)
      evaluator->runner().add_observer(std::make_shared<PythonObserver>(observer.cast<py::object>()));
    live = evaluator.get();
    out.evaluator = std::move(evaluator);
  } else {
    py::gil_scoped_release released;
    auto evaluator = std::make_unique<LiveEvaluator>(problem, options);
    live = evaluator.get();
    out.evaluator = std::move(evaluator);
  }
  const auto& info = live->device();
  out.device_name = info.name;
  out.constants = problem.constants_for(info.name, info.properties);
  if (const auto most = info.properties.find("device.max_threads_per_block"); most != info.properties.end())
    restrict_block_size(problem, block_names, most->second.as_integer());
  SpaceOptions space_options;
  for (const auto& r : problem.restrictions)
    if (r.function) space_options.threads = 1;  // the GIL lets one thread in at a time anyway
  {
    py::gil_scoped_release released;
    out.space = std::make_unique<SearchSpace>(problem.build_space(out.constants, space_options));
  }
  out.problem = std::move(problem);
  return out;
}

py::dict result_of(const SearchSpace& space, const EvaluationResult& result) {
  py::dict out;
  out["configuration"] = named(space.parameters(), space.configuration(result.index));
  out["measurement"] = to_dict(result.measurement);
  return out;
}

std::atomic<bool> interrupted{false};

/// Ctrl-C ends the session cleanly; Python's own handler is back afterwards.
class InterruptGuard {
 public:
  InterruptGuard() {
    interrupted = false;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

py::dict tune(const Problem& problem, const py::dict& settings, const py::object& verify, const py::list& observers,
              const py::object& metrics, const py::object& progress) {
  Prepared prepared = prepare(problem, settings, verify, observers);
  const auto& space = *prepared.space;
  if (space.empty()) throw UserError("the search space is empty: " + space.why_empty());
  auto objective_text = setting<std::string>(settings, "objective", prepared.problem.objective.text);
  // metrics worked out in Python are objectives by their names too
  std::vector<Metric> known = prepared.problem.metrics;
  for (const auto& name : setting<std::vector<std::string>>(settings, "metric_names", {}))
    known.push_back({name, Expression::constant(0), ""});
  Objective objective = Objective::parse({.text = objective_text}, known);
  PythonMetrics evaluator(std::move(prepared.evaluator), space, metrics);

  SessionOptions options;
  options.strategy = setting<std::string>(settings, "strategy", prepared.problem.defaults.strategy.value_or("auto"));
  options.strategy_options = to_values(setting<py::dict>(settings, "strategy_options", py::dict()));
  options.seed = setting<std::uint64_t>(settings, "seed", prepared.problem.defaults.seed.value_or(1));
  if (const auto text = setting<std::string>(settings, "budget", prepared.problem.defaults.budget.value_or("")); !text.empty())
    options.budget = Budget::parse(text);
  options.budget.evaluations = setting<std::uint64_t>(settings, "evaluations", options.budget.evaluations);
  options.budget.seconds = setting<double>(settings, "seconds", options.budget.seconds);
  options.confirm = setting<bool>(settings, "confirm", true);
  options.early_stop = setting<bool>(settings, "early_stop", false);
  options.problem = &prepared.problem;
  options.constants = prepared.constants;
  options.interrupted = &interrupted;
  if (!progress.is_none()) {
    options.progress = [held = keep(progress)](const SessionProgress& p) {
      py::gil_scoped_acquire gil;
      (*held)(p.evaluated, p.total, p.best ? py::object(py::float_(*p.best)) : py::object(py::none()),
              p.seconds_left ? py::object(py::float_(*p.seconds_left)) : py::object(py::none()), p.phase);
    };
  }
  SessionResult result;
  {
    const InterruptGuard guard;
    py::gil_scoped_release released;
    result = run_session(space, objective, evaluator, nullptr, 0, options);
  }

  py::dict out;
  py::list configurations, measurements, best, names;
  std::set<ConfigurationIndex> listed;
  for (const auto& r : evaluator.results()) {
    if (!listed.insert(r.index).second) continue;  // measured again to confirm the best: best[] has those means
    configurations.append(named(space.parameters(), space.configuration(r.index)));
    measurements.append(to_dict(r.measurement));
  }
  for (const auto& r : result.best) best.append(result_of(space, r));
  for (const auto& p : space.parameters()) names.append(p.name);
  out["problem"] = prepared.problem.name;
  out["device"] = prepared.device_name;
  out["evaluator"] = evaluator.description();
  out["provenance"] = to_string(evaluator.provenance());
  out["objective"] = objective.name();
  out["direction"] = objective.direction() == Direction::maximise ? "max" : "min";
  out["parameter_names"] = names;
  out["configurations"] = configurations;
  out["measurements"] = measurements;
  out["best"] = best;
  out["space_size"] = space.size();
  out["evaluated"] = result.evaluated;
  out["resumed"] = result.resumed;
  out["seconds"] = result.seconds;
  out["tuner_seconds"] = result.tuner_seconds;
  out["strategy"] = result.strategy;
  out["explanation"] = result.explanation;
  out["stopped_because"] = result.stopped_because;
  out["probability_best"] = result.probability_best ? py::object(py::float_(*result.probability_best)) : py::object(py::none());
  out["interrupted"] = interrupted.load();
  return out;
}

py::dict to_dict(const DeviceInfo& info) {
  py::dict out, properties;
  for (const auto& [name, value] : info.properties) properties[py::str(name)] = from_value(value);
  out["id"] = info.id;
  out["name"] = info.name;
  out["uuid"] = info.uuid.empty() ? py::object(py::none()) : py::str(info.uuid);
  out["backend"] = info.backend;
  out["properties"] = properties;
  return out;
}

}  // namespace

void bind_session(py::module_& module) {
  module.def("tune", &tune, py::arg("problem"), py::arg("settings"), py::arg("verify") = py::none(),
             py::arg("observers") = py::list(), py::arg("metrics") = py::none(), py::arg("progress") = py::none());
  module.def("devices", [] {
    std::vector<DeviceInfo> found;
    {
      py::gil_scoped_release released;
      found = list_devices();
    }
    py::list list;
    for (const auto& info : found) list.append(to_dict(info));
    return list;
  });
}

}  // namespace ergotune::python
