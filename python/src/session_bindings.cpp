// Binds tuning by the same path as the command: target, store, ledger, session. With Python callables, everything is
// measured in this process.
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "bindings.hpp"
#include "ergotune/error.hpp"
#include "hooks.hpp"
#include "measure/calibration/calibration.hpp"
#include "measure/observers/observer_registry.hpp"
#include "power/guardian/guardian.hpp"
#include "problem/checks.hpp"
#include "problem/tables/setting_table.hpp"
#include "report/power_study.hpp"
#include "report/result_document.hpp"
#include "report/size_sweep.hpp"
#include "tune/plans/device_model.hpp"
#include "tune/plans/plan.hpp"
#ifdef ERGOTUNE_EXTENSION_PROGRAM
#include "program/program_search.hpp"
#endif
#ifdef ERGOTUNE_EXTENSION_TEMPERATURE
#include "temperature/temperature.hpp"
#endif

namespace ergotune::python {
namespace {

// -- settings -----------------------------------------------------------------------------------------------------

template <class T>
void take(const py::dict& settings, const char* name, T& into) {
  if (!settings.contains(name) || settings[name].is_none()) return;
  try {
    into = settings[name].cast<T>();
  } catch (const py::cast_error&) {
    throw py::type_error(std::string(name) + " cannot be " + py::repr(settings[name]).cast<std::string>());
  }
}

template <class T>
T setting(const py::dict& settings, const char* name, T otherwise) {
  take(settings, name, otherwise);
  return otherwise;
}

/// Adds Kernel Tuner's implied restriction: the product of the block sizes must not exceed the device's maximum.
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

GivenValue given_by(const py::handle& object) {
  if (py::isinstance<py::dict>(object)) return to_values(object.cast<py::dict>());
  if (!py::isinstance<py::list>(object) && !py::isinstance<py::tuple>(object)) return to_value(object);
  std::vector<Value> values;
  for (const auto& item : object) values.push_back(to_value(item));
  return values;
}

/// Adds observers requested by name to the problem; returns the observer objects.
py::list take_named(const py::list& observers, Problem& problem) {
  py::list objects;
  for (const auto& observer : observers) {
    if (py::isinstance<py::str>(observer)) {
      ask_for_observer(problem.observers, observer.cast<std::string>());
      continue;
    }
    for (const char* hook : {"before_start", "after_start", "during", "after_finish", "get_results"})
      if (!py::hasattr(observer, hook))
        throw py::type_error("an observer is a name, or an object with the hooks of ergotune.Observer; " +
                             py::repr(observer).cast<std::string>() + " has no " + hook);
    objects.append(observer);
  }
  check_observers(problem.observers);
  return objects;
}

SetupOptions setup_of(const ProblemFile& problem, const py::dict& settings, const py::object& verify,
                      const py::list& observers) {
  SetupOptions options;
  options.run = problem.run;
  options.resume = setting<bool>(settings, "resume", true);
  options.take_over = setting<bool>(settings, "take_over", false);
  options.in_process = setting<bool>(settings, "in_process", false);
  options.announce = [](const std::string& wording) {
    py::gil_scoped_acquire gil;
    py::print("ergotune:", wording, py::arg("file") = py::module_::import("sys").attr("stderr"),
              py::arg("flush") = true);
  };
  if (options.run.device.empty()) options.run.device = problem.device_of_external_memory();
  take(settings, "worker_command", options.worker_command);
  take(settings, "energy", options.energy);
  take(settings, "metric_names", options.further_metrics);
  for (const auto& r : problem.restrictions)
    if (r.function) options.space_threads = 1;  // the GIL allows one thread at a time anyway
  const auto names = setting<std::vector<std::string>>(settings, "max_threads_restriction", {});
  if (!names.empty()) {
    options.adapt = [names](Problem& changed, const Constants& properties) {
      const auto most = properties.find("device.max_threads_per_block");
      if (most != properties.end()) restrict_block_size(changed, names, most->second.as_integer());
    };
  }
  options.verifier = python_verifier(verify, settings);
  for (const auto& observer : observers) options.observers.push_back(python_observer(observer.cast<py::object>()));
  return options;
}

SessionOptions session_options(const RunConfig& run, const py::dict& settings) {
  SessionOptions options = SessionOptions::from(run);
  take(settings, "evaluations", options.budget.evaluations);
  if (settings.contains("seconds") && !settings["seconds"].is_none()) {
    take(settings, "seconds", options.budget.seconds);
    if (!(options.budget.seconds > 0))
      throw UserError("seconds has to be more than 0; without it there is no limit of time");
  }
  return options;
}

std::function<void(const SessionProgress&)> python_progress(const py::object& progress) {
  if (progress.is_none()) return {};
  return [held = keep(progress)](const SessionProgress& p) {
    py::gil_scoped_acquire gil;
    (*held)(p.evaluated + p.resumed, p.total, p.best ? py::object(py::float_(*p.best)) : py::object(py::none()),
            p.seconds_left ? py::object(py::float_(*p.seconds_left)) : py::object(py::none()), p.phase, p.resumed);
  };
}

/// Extends `progress` to call taken(configuration, measurement) for each new result, failures included.
std::function<void(const SessionProgress&)> and_taken(std::function<void(const SessionProgress&)> progress,
                                                      const py::object& taken, const PreparedSession& prepared) {
  if (taken.is_none()) return progress;
  return [progress = std::move(progress), held = keep(taken), &prepared](const SessionProgress& p) {
    if (p.last) {
      const SearchSpace* space = prepared.space.get();
      py::gil_scoped_acquire gil;
      (*held)(named(space->parameters(), space->configuration(p.last->index)), to_dict(p.last->measurement));
    }
    if (progress) progress(p);
  };
}

// -- results ------------------------------------------------------------------------------------------------------

/// Lets Ctrl-C end the session cleanly. Python's handler is restored after the last of the sessions that overlap in
/// threads.
class InterruptGuard {
 public:
  InterruptGuard() {
    if (running_++ > 0) return;
    interrupted = false;
    struct sigaction action {};
    action.sa_handler = [](int) {
      interrupted = true;
      InterruptibleCall::interrupt();
    };
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptGuard() {
    if (--running_ == 0) sigaction(SIGINT, &before_, nullptr);
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  static inline int running_ = 0;  // changed with the GIL held
  static inline struct sigaction before_ {};
};

/// Before the session begins (while waiting for nodes, or fitting a model), Ctrl-C raises Python's own exception.
PreparedSession prepare(Problem problem, const SetupOptions& setup) {
  try {
    const py::gil_scoped_release released;
    return prepare_session(std::move(problem), setup);
  } catch (const Error& error) {
    raise_interruption();
    if (!interrupted) throw;
    PyErr_SetString(PyExc_KeyboardInterrupt, error.what());
    throw py::error_already_set();
  }
}

/// The document of `ergotune tune --json`, with all rows that the session knows.
py::dict result_dict(const PreparedSession& prepared, const TunedSession& tuned) {
  py::dict out = from_json(result_document(tuned));
  add_rows(out, tuned.ranked);
  out["evaluator"] = prepared.evaluator->description();
  out["interrupted"] = interrupted.load();
  return out;
}

/// Issues a Python warning for clocks that a session could not restore, after the session has ended.
struct RestoreWarning {
  ~RestoreWarning() {
    for (const RestoreReport& report : take_failed_restores())
      if (PyErr_WarnEx(PyExc_RuntimeWarning, description_of(report).c_str(), 1) != 0) PyErr_WriteUnraisable(Py_None);
  }
};

py::dict tune(ProblemFile problem, const py::dict& settings, const py::object& verify, const py::list& observers,
              const py::object& metrics, const py::object& progress, const py::object& taken) {
  const RestoreWarning put_back;  // destroyed after the session
  for (const auto& [name, text] : setting<std::map<std::string, std::string>>(settings, "metric_expressions", {})) {
    std::erase_if(problem.metrics, [&, &name = name](const Metric& metric) { return metric.name == name; });
    problem.metrics.push_back({name, Expression::parse(text), {}});
  }
  adapt_problem(problem, settings);
  const py::list objects = take_named(observers, problem);
  SetupOptions setup = setup_of(problem, settings, verify, objects);
  SessionOptions options = session_options(problem.run, settings);
  options.interrupted = setup.interrupted = &interrupted;
  PreparedSession prepared;
  std::optional<TunedSession> tuned;
  const InterruptGuard guard;
  prepared = prepare(std::move(problem), setup);
  remember_space(prepared.space);
  if (prepared.with_clocks)
    prepared.with_clocks = [again = prepared.with_clocks](const std::vector<double>& clocks) {
      py::gil_scoped_acquire gil;
      PreparedSession wider = again(clocks);
      remember_space(wider.space);
      return wider;
    };
  const bool quiet = setting<bool>(settings, "quiet", true);
  py::module_::import("ergotune._session").attr("_print_notes")(prepared.notes, quiet);
  options.progress = and_taken(python_progress(progress), taken, prepared);
  options.further_metrics = python_metrics(metrics, prepared.space->parameters());
  {
    py::gil_scoped_release released;
    tuned = tune_session(prepared, options);
  }
  raise_interruption();
  py::dict result = result_dict(prepared, *tuned);
  result["printed"] = quiet ? 0 : tuned->notes.size();
  return result;
}

py::dict run_plans(ProblemFile problem, const py::dict& settings, std::string plans, const py::object& progress) {
  const RestoreWarning put_back;  // destroyed after the session
  adapt_problem(problem, settings);
  if (plans.empty()) plans = problem.run.plan.empty() ? "all" : problem.run.plan;
  SetupOptions setup = setup_of(problem, settings, py::none(), py::list());
  const std::string added = prepare_for_plans(problem, setup, plans);
  SessionOptions options = session_options(problem.run, settings);
  options.interrupted = setup.interrupted = &interrupted;
  const auto reported = python_progress(progress);
  PreparedSession prepared;
  PlanComparison comparison;
  const InterruptGuard guard;
  prepared = prepare(std::move(problem), setup);
  if (!added.empty()) prepared.notes.push_back(added);
  {
    py::gil_scoped_release released;
    comparison = ergotune::run_plans(prepared, plans, options, reported);
  }
  return from_json(plans_document(prepared, comparison));
}

/// make_document() for work that Ctrl-C ends, and that may change clocks, which are restored before this returns.
template <class Work>
py::object document_of_run(Work work) {
  const RestoreWarning put_back;  // destroyed last
  const InterruptGuard guard;
  const py::object document = make_document(std::move(work));
  raise_interruption();
  return document;
}

/// Wraps the callable that receives messages of lengthy steps.
std::function<void(const std::string&)> python_tell(const py::object& tell) {
  if (tell.is_none()) return {};
  return [held = keep(tell)](const std::string& line) {
    py::gil_scoped_acquire gil;
    (*held)(line);
  };
}

/// The document of `ergotune tune --set NAME=VALUE,VALUE --json`.
py::object tune_sizes(const ProblemFile& problem, const py::dict& settings, const std::vector<py::dict>& sizes,
                      std::size_t leaves, bool worst_case, const std::string& tree, const py::object& progress) {
  if (!tree.empty()) require_tree_ending(tree);
  std::vector<SizedProblem> all;
  for (const py::dict& constants : sizes) {
    SizedProblem& size = all.emplace_back(SizedProblem{to_constants(constants), problem, {}, {}});
    set_constants(size.problem, size.size);
    adapt_problem(size.problem, settings);
    size.setup = setup_of(size.problem, settings, py::none(), py::list());
    size.options = session_options(size.problem.run, settings);
    size.options.interrupted = size.setup.interrupted = &interrupted;
    size.options.progress = python_progress(progress);
  }
  return document_of_run([&] {
    const SizeSweep sweep = sweep_sizes(std::move(all), leaves, worst_case, [](const SizedProblem& size) {
      PreparedSession prepared = prepare_session(size.problem, size.setup);
      return tune_session(prepared, size.options);
    });
    if (!sweep.has_answer()) throw Error(sweep.why_no_answer());
    if (!tree.empty()) write_tree(sweep, tree);
    return sweep_document(sweep);
  });
}

/// The document of `ergotune model --json`: from the recorded samples in `from`, or from a sweep on the device if it is
/// empty.
py::object model(const std::string& from, const py::dict& settings, double share, const std::string& figure,
                 const py::object& tell) {
  DeviceModelOptions options;
  std::string store;
  take(settings, "device", options.setup.run.device);
  take(settings, "sensors", options.setup.run.sensors);
  take(settings, "controls", options.setup.run.controls);
  take(settings, "seed", options.setup.run.seed);
  take(settings, "store", store);
  options.setup.run.store = store;
  take(settings, "worker_command", options.setup.worker_command);
  options.setup.resume = setting<bool>(settings, "resume", true);
  take(settings, "clocks", options.sampling.count);
  options.sampling.adaptive = !setting<bool>(settings, "spaced", false);
  const bool kept = setting<bool>(settings, "keep", true) && !options.setup.run.device.starts_with("sim:");
  options.interrupted = options.setup.interrupted = &interrupted;
  options.notify = options.setup.notify = python_tell(tell);
  return document_of_run([&] {
    PowerStudy study;
    if (!from.empty()) {
      study = study_power(load_power_samples(from), share);
    } else {
      DeviceModel measured = measure_device_model(options);
      if (kept && measured.model.usable) store_device_model(measured);
      study = study_power(std::move(measured.sampling), std::move(measured.model), share);
    }
    if (!figure.empty() && !study.sampling.samples.empty()) write_named_file(figure, to_svg({power_chart(study)}));
    return power_document(study);
  });
}

/// The document of `ergotune trace --json`.
py::object trace(ProblemFile problem, const py::dict& settings, const py::list& observers,
                 const std::string& configuration, double before, double seconds, double after, const std::string& csv,
                 const std::string& figure, const py::object& tell) {
  adapt_problem(problem, settings);
  (void)take_named(observers, problem);
  SetupOptions setup = setup_of(problem, settings, py::none(), py::list());
  setup.interrupted = &interrupted;
  setup.notify = python_tell(tell);
  TraceRequest request;
  request.configuration = configuration;
  request.csv = csv;
  request.before = before;
  request.seconds = seconds;
  request.after = after;
  return document_of_run([&] {
    const RecordedTrace recorded = record_trace(std::move(problem), std::move(setup), request);
    if (!recorded.trace)
      throw Error(std::string("no trace: ") + to_string(recorded.measurement.status) + ": " +
                  recorded.measurement.message);
    if (!figure.empty()) write_named_file(figure, to_svg({trace_chart(recorded)}));
    return trace_document(recorded);
  });
}

/// The document of `ergotune calibrate --json`.
py::object calibrate(const std::string& sensor, const std::string& device, const std::string& meter, bool kept,
                     const py::object& tell) {
  const auto reported = python_tell(tell);
  return make_document([&] {
    const Calibration found = calibrate_sensor(sensor, device, meter, reported);
    if (kept) store_calibration(found);
    return nlohmann::ordered_json::parse(to_json(found));
  });
}

#ifdef ERGOTUNE_EXTENSION_PROGRAM
/// The document of `ergotune program --json`.
py::object program(const std::vector<std::string>& command, const py::dict& settings, const py::object& tell) {
  ProgramSearch search;
  search.command = command;
  take(settings, "control", search.control);
  take(settings, "sensors", search.setup.run.sensors);
  take(settings, "max_slowdown", search.options.max_slowdown);
  take(settings, "settings", search.options.most);
  take(settings, "precision", search.setup.run.precision);
  take(settings, "max_seconds", search.setup.run.max_seconds);
  take(settings, "time_limit", search.time_limit);
  take(settings, "wisdom", search.wisdom);
  search.setup.run.store = setting<std::string>(settings, "store", {});
  search.setup.resume = setting<bool>(settings, "resume", true);
  take(settings, "take_over", search.setup.take_over);
  take(settings, "worker_command", search.setup.worker_command);
  search.setup.interrupted = &interrupted;
  search.setup.notify = search.setup.announce = python_tell(tell);
  return document_of_run([&] { return program_document(search_program(std::move(search))); });
}
#endif

#ifdef ERGOTUNE_EXTENSION_TEMPERATURE
py::object temperature(ProblemFile problem, const py::dict& settings, TemperatureOptions options) {
  adapt_problem(problem, settings);
  const SetupOptions setup = setup_of(problem, settings, py::none(), py::list());
  options.interrupted = &interrupted;
  return document_of_run(
      [&] { return temperature_document(run_temperature(std::move(problem), setup, options), options); });
}
#endif

}  // namespace

void add_rows(py::dict& out, const RankedResults& ranked) {
  const ResultSet& results = ranked.results;
  py::list configurations, measurements, confirmed;
  for (const StoredRow& row : results.rows) {
    confirmed.append(row.rounds);
    configurations.append(named(results.parameters, row.configuration));
    measurements.append(to_dict(row.measurement));
  }
  out["configurations"] = configurations;
  out["measurements"] = measurements;
  out["confirmed"] = confirmed;
  py::dict metric_units;
  for (const Metric& metric : results.metrics) metric_units[py::str(metric.name)] = metric.unit;
  out["metric_units"] = metric_units;
  out["best_row"] = ranked.best.empty() ? py::object(py::none()) : py::int_(ranked.best.front());
  out["default_row"] = ranked.default_row ? py::object(py::int_(*ranked.default_row)) : py::object(py::none());
  out["parameter_names"] = names_of(results.parameters);
}

void adapt_problem(ProblemFile& problem, const py::dict& given) {
  for (const Setting& row : setting_table()) {
    const py::str name(row.name.data(), row.name.size());
    if (!given.contains(name) || given[name].is_none()) continue;
    GivenValue value;
    try {
      value = given_by(given[name]);
    } catch (const py::type_error&) {
      throw py::type_error(std::string(row.name) + " cannot be " + py::repr(given[name]).cast<std::string>());
    }
    give(problem.run, row, value, std::string(row.name));
  }
  check_settings(problem.run);
  check_problem(problem);
  use_objective_of_settings(problem);
  // Kernel Tuner's option for an exact number of samples.
  if (const int iterations = setting<int>(given, "iterations", 0); iterations > 0)
    problem.run.min_repeats = problem.run.max_repeats = iterations;
}

void bind_tuning(py::module_& module) {
  module.def("tune", &tune);
  module.def("run_plans", &run_plans);
  module.def("tune_sizes", &tune_sizes);
#ifdef ERGOTUNE_EXTENSION_PROGRAM
  module.def("program", &program);
#endif
  module.def("model", &model);
  module.def("trace", &trace);
  module.def("calibrate", &calibrate);
#ifdef ERGOTUNE_EXTENSION_TEMPERATURE
  module.def("temperature", [](const ProblemFile& problem, const py::dict& settings, const std::string& configuration,
                               std::size_t runs, double seconds, double rest, std::size_t every,
                               std::optional<double> at, const std::string& csv, const std::string& figure, bool keep) {
    return temperature(problem, settings,
                       {.configuration = configuration,
                        .runs = runs,
                        .every = every,
                        .seconds = seconds,
                        .rest = rest,
                        .at = at,
                        .dry = !keep,
                        .csv = csv,
                        .figure = figure});
  });
#endif
  module.def("settings", [] {
    py::list list;
    for (const Setting& row : setting_table()) {
      py::dict entry;
      entry["name"] = py::str(row.name.data(), row.name.size());
      entry["help"] = py::str(row.help.data(), row.help.size());
      entry["default"] = default_text(row);
      entry["unit"] = py::str(row.unit.data(), row.unit.size());
      entry["determines_results"] = row.determines_results();
      list.append(entry);
    }
    return list;
  });
}

}  // namespace ergotune::python
