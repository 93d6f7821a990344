// Tuning from Python, by the same path as the command: target, store, ledger, session. Callables make it measure in
// this process.
#include <atomic>
#include <csignal>

#include "bindings.hpp"
#include "device_share_values.hpp"
#include "ergotune/error.hpp"
#include "hooks.hpp"
#include "measure/observers/observer_registry.hpp"
#include "power/guardian/guardian.hpp"
#include "problem/check.hpp"
#include "problem/tables/setting_table.hpp"
#include "tune/plans/plan.hpp"
#include "tune/session/session_setup.hpp"

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

GivenValue given_by(const py::handle& object) {
  if (py::isinstance<py::dict>(object)) return to_values(object.cast<py::dict>());
  if (!py::isinstance<py::list>(object) && !py::isinstance<py::tuple>(object)) return to_value(object);
  std::vector<Value> values;
  for (const auto& item : object) values.push_back(to_value(item));
  return values;
}

/// Observers asked for by name; the objects among them are for open_evaluator.
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

SetupOptions setup_of(const Problem& problem, const py::dict& settings, const py::object& verify,
                      const py::list& observers) {
  SetupOptions options = SetupOptions::from(problem);
  options.resume = setting<bool>(settings, "resume", true);
  options.take_over = setting<bool>(settings, "take_over", false);
  options.in_process = setting<bool>(settings, "in_process", false);
  options.announce = [](const std::string& words) {
    py::gil_scoped_acquire gil;
    py::print("ergotune:", words, py::arg("file") = py::module_::import("sys").attr("stderr"), py::arg("flush") = true);
  };
  LiveOptions& live = options.live;
  if (options.device.empty()) options.device = problem.device_of_foreign_memory();
  take(settings, "worker_command", live.worker_command);
  take(settings, "energy", live.energy);
  take(settings, "metric_names", options.further_metrics);
  for (const auto& r : problem.restrictions)
    if (r.function) options.space_threads = 1;  // the GIL lets one thread in at a time anyway
  const auto names = setting<std::vector<std::string>>(settings, "max_threads_restriction", {});
  if (!names.empty()) {
    options.adapt = [names](Problem& changed, const Constants& properties) {
      const auto most = properties.find("device.max_threads_per_block");
      if (most != properties.end()) restrict_block_size(changed, names, most->second.as_integer());
    };
  }
  if (!verify.is_none()) options.verifier = python_verifier(verify.cast<py::function>());
  for (const auto& observer : observers) options.observers.push_back(python_observer(observer.cast<py::object>()));
  return options;
}

SessionOptions session_options(const Problem& problem, const py::dict& settings) {
  SessionOptions options = SessionOptions::from(problem.settings);
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
    (*held)(p.evaluated, p.total, p.best ? py::object(py::float_(*p.best)) : py::object(py::none()),
            p.seconds_left ? py::object(py::float_(*p.seconds_left)) : py::object(py::none()), p.phase);
  };
}

/// Each new result, failures among it, as it comes: taken(configuration, measurement).
std::function<void(const SessionProgress&)> and_taken(std::function<void(const SessionProgress&)> progress,
                                                      const py::object& taken,
                                                      std::shared_ptr<const SearchSpace> space) {
  if (taken.is_none()) return progress;
  return [progress = std::move(progress), held = keep(taken), space = std::move(space)](const SessionProgress& p) {
    if (p.last) {
      py::gil_scoped_acquire gil;
      (*held)(named(space->parameters(), space->configuration(p.last->index)), to_dict(p.last->measurement));
    }
    if (progress) progress(p);
  };
}

// -- results ------------------------------------------------------------------------------------------------------

template <class T>
py::object or_none(const std::optional<T>& value) {
  return value ? py::cast(*value) : py::object(py::none());
}

/// Ctrl-C ends the session cleanly; Python's own handler is back after the last of the sessions that overlap in
/// threads.
class InterruptGuard {
 public:
  InterruptGuard() {
    if (running_++ > 0) return;
    interrupted = false;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptGuard() {
    if (--running_ == 0) sigaction(SIGINT, &before_, nullptr);
  }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  static inline int running_ = 0;  // made and destroyed with the GIL held
  static inline struct sigaction before_ {};
};

/// Ctrl-C before there is a session (no node has come yet, a model is being fitted) is Python's own exception.
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

void add_session(py::dict& out, const PreparedSession& prepared) {
  out["problem"] = prepared.problem.name;
  out["device"] = prepared.device.name;
  out["device_id"] = prepared.device.id;
  out["evaluator"] = prepared.evaluator->description();
  out["provenance"] = to_string(prepared.evaluator->provenance());
  out["objective"] = prepared.objective->name();
  out["direction"] = prepared.objective->direction() == Direction::maximise ? "max" : "min";
  out["space_size"] = prepared.space->size();
  out["notes"] = prepared.notes;
  out["store"] = prepared.store ? py::object(py::str(prepared.store->file().string())) : py::object(py::none());
  out["session"] = prepared.store ? py::object(py::int_(prepared.store_session)) : py::object(py::none());
  py::list names;
  for (const auto& p : prepared.space->parameters()) names.append(p.name);
  out["parameter_names"] = names;
  out["interrupted"] = interrupted.load();
}

/// importance_document() as Python has it.
py::dict importance_dict(const std::vector<Parameter>& parameters, const Importance& importance) {
  py::list shares, ruled_out;
  for (const auto& share : importance.shares) {
    py::list names;
    for (const std::size_t p : share.parameters) names.append(parameters[p].name);
    shares.append(py::dict(py::arg("parameters") = names, py::arg("share") = share.share, py::arg("low") = share.low,
                           py::arg("high") = share.high));
  }
  for (const auto& out : importance.ruled_out)
    ruled_out.append(py::dict(py::arg("parameter") = parameters[out.parameter].name,
                              py::arg("value") = out.value.to_string(), py::arg("tried") = out.tried));
  return py::dict(py::arg("provenance") = "modelled", py::arg("shares") = shares, py::arg("ruled_out") = ruled_out);
}

py::dict result_dict(const PreparedSession& prepared, const Ledger& ledger, const SessionResult& result) {
  const auto& space = *prepared.space;
  py::dict out;
  add_session(out, prepared);
  py::list configurations, measurements, best;
  for (const ConfigurationIndex index : ledger.order()) {
    configurations.append(named(space.parameters(), space.configuration(index)));
    measurements.append(to_dict(ledger.find(index)->measurement));
  }
  for (const ConfigurationResult& entry : result.best) {
    py::dict row;
    row["configuration"] = named(space.parameters(), space.configuration(entry.index));
    row["measurement"] = to_dict(entry.measurement);
    row["objective"] = or_none(prepared.objective->value(entry.measurement));
    row["confirmation_repeats"] = entry.rounds;
    if (!entry.board.empty()) row["board"] = entry.board;
    best.append(row);
  }
  out["configurations"] = configurations;
  out["measurements"] = measurements;
  out["best"] = best;
  out["boards"] = device_share_list(result);
  out["evaluated"] = result.evaluated;
  out["resumed"] = result.resumed;
  out["seconds"] = result.seconds;
  out["tuner_seconds"] = result.tuner_seconds;
  out["strategy"] = result.strategy;
  out["explanation"] = result.explanation;
  out["stopped_because"] = result.stopped_because;
  out["confirmation_repeats"] = result.confirmation_repeats;
  out["probability_best"] = or_none(result.probability_best);
  out["expected_loss"] = or_none(result.expected_loss);
  if (const Repeats& repeats = result.search_repeats; repeats.n > 0)
    out["search_repeats"] = py::dict(py::arg("factor") = repeats.factor, py::arg("deviation") = repeats.deviation,
                                     py::arg("n") = repeats.n);
  out["importance"] = importance_dict(space.parameters(), result.importance);
  return out;
}

/// Clocks that a session could not put back are a warning of Python's, once the session has ended.
struct RestoreWarning {
  ~RestoreWarning() {
    for (const RestoreReport& report : take_failed_restores())
      if (PyErr_WarnEx(PyExc_RuntimeWarning, words_of(report).c_str(), 1) != 0) PyErr_WriteUnraisable(Py_None);
  }
};

py::dict tune(Problem problem, const py::dict& settings, const py::object& verify, const py::list& observers,
              const py::object& metrics, const py::object& progress, const py::object& taken) {
  const RestoreWarning put_back;  // ends after the session
  adapt_problem(problem, settings);
  const py::list objects = take_named(observers, problem);
  SetupOptions setup = setup_of(problem, settings, verify, objects);
  SessionOptions options = session_options(problem, settings);
  options.interrupted = setup.interrupted = &interrupted;
  PreparedSession prepared;
  std::unique_ptr<Ledger> ledger;
  SessionResult result;
  const InterruptGuard guard;
  prepared = prepare(std::move(problem), setup);
  remember_space(prepared.space);
  options.progress = and_taken(python_progress(progress), taken, prepared.space);
  options.further_metrics = python_metrics(metrics, prepared.space->parameters());
  {
    py::gil_scoped_release released;
    ledger = prepared.open_ledger(options.retry, options.interrupted, options.further_metrics, options.budget.seconds);
    result = run_session(prepared, *ledger, options);
  }
  raise_interruption();
  return result_dict(prepared, *ledger, result);
}

py::dict plan_dict(const PreparedSession& prepared, const PlanResult& result) {
  const auto point = [&](const std::optional<PlanPoint>& found) -> py::object {
    if (!found) return py::none();
    py::dict row;
    row["configuration"] = named(prepared.space->parameters(), found->configuration);
    row["measurement"] = to_dict(found->measurement);
    return row;
  };
  py::dict out;
  out["plan"] = result.plan;
  out["summary"] = result.summary;
  out["best"] = point(result.best);
  out["why_not"] = result.why_not;
  out["notes"] = result.notes;
  out["confirmation_repeats"] = result.confirmation_repeats;
  out["probability_best"] = or_none(result.probability_best);
  out["expected_loss"] = or_none(result.expected_loss);
  out["asked"] = result.asked;
  out["evaluated"] = result.evaluated;
  out["known"] = result.known;
  out["seconds"] = result.seconds;
  out["above_optimum_percent"] = or_none(result.above_optimum_percent);
  out["ridge_mhz"] = result.model && result.model->found ? py::object(py::float_(result.model->ridge_mhz.value))
                                                         : py::object(py::none());
  out["model_range_mhz"] = result.model_range
                               ? py::object(py::make_tuple(result.model_range->low_mhz, result.model_range->high_mhz))
                               : py::object(py::none());
  py::list stages;
  for (const StageResult& stage : result.stages) {
    py::dict row;
    row["stage"] = stage.name;
    row["objective"] = stage.objective;
    row["strategy"] = stage.strategy;
    row["space"] = stage.space;
    row["asked"] = stage.asked;
    row["evaluated"] = stage.evaluated;
    row["best"] = point(stage.best);
    py::list settings;
    for (const PlanPoint& setting : stage.by_setting) settings.append(point(setting));
    row["by_setting"] = settings;
    stages.append(row);
  }
  out["stages"] = stages;
  return out;
}

py::dict run_plans(Problem problem, const py::dict& settings, std::string plans, const py::object& progress) {
  const RestoreWarning put_back;  // ends after the session
  adapt_problem(problem, settings);
  if (plans.empty()) plans = problem.settings.plan.empty() ? "all" : problem.settings.plan;
  SetupOptions setup = setup_of(problem, settings, py::none(), py::list());
  const std::string added = prepare_for_plans(problem, setup, plans);
  SessionOptions options = session_options(problem, settings);
  options.interrupted = setup.interrupted = &interrupted;
  const auto told = python_progress(progress);
  PreparedSession prepared;
  PlanComparison comparison;
  const InterruptGuard guard;
  prepared = prepare(std::move(problem), setup);
  if (!added.empty()) prepared.notes.push_back(added);
  {
    py::gil_scoped_release released;
    comparison = ergotune::run_plans(prepared, plans, options, told);
  }
  py::dict out;
  add_session(out, prepared);
  out["optimum_energy"] = or_none(comparison.optimum);
  py::list list;
  for (const PlanResult& result : comparison.plans) list.append(plan_dict(prepared, result));
  out["plans"] = list;
  return out;
}

}  // namespace

void adapt_problem(Problem& problem, const py::dict& given) {
  for (const Setting& row : setting_table()) {
    const py::str name(row.name.data(), row.name.size());
    if (!given.contains(name) || given[name].is_none()) continue;
    GivenValue value;
    try {
      value = given_by(given[name]);
    } catch (const py::type_error&) {
      throw py::type_error(std::string(row.name) + " cannot be " + py::repr(given[name]).cast<std::string>());
    }
    give(problem.settings, row, value, std::string(row.name));
  }
  check_settings(problem.settings);
  check_problem(problem);
  if (!problem.settings.objective.empty()) problem.objective = {.text = problem.settings.objective};
  // Kernel Tuner's word for exactly so many samples.
  if (const int iterations = setting<int>(given, "iterations", 0); iterations > 0)
    problem.settings.min_repeats = problem.settings.max_repeats = iterations;
}

void bind_tuning(py::module_& module) {
  module.def("tune", &tune, py::arg("problem"), py::arg("settings"), py::arg("verify") = py::none(),
             py::arg("observers") = py::list(), py::arg("metrics") = py::none(), py::arg("progress") = py::none(),
             py::arg("taken") = py::none());
  module.def("run_plans", &run_plans, py::arg("problem"), py::arg("settings"), py::arg("plans"),
             py::arg("progress") = py::none());
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
