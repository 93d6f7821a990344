// Binds strategies through ask and tell, and strategies written in Python.
#include <chrono>
#include <limits>

#include "bindings.hpp"
#include "ergotune/error.hpp"
#include "ergotune/strategy.hpp"

namespace ergotune::python {
namespace {

/// A strategy implemented by a Python object with ask(count) -> [index] and tell(index, values, ok).
class PythonStrategy : public Strategy {
 public:
  PythonStrategy(std::string name, py::object object, std::uint64_t space_size)
      : name_(std::move(name)), object_(keep(std::move(object))), space_size_(space_size) {}
  std::string name() const override { return name_; }
  std::vector<ConfigurationIndex> ask(std::size_t count) override {
    py::gil_scoped_acquire gil;
    const py::object requested = object_->attr("ask")(count);
    std::vector<ConfigurationIndex> indices;
    for (const auto& item : requested) {
      const long long index =
          PyLong_Check(item.ptr()) || PyIndex_Check(item.ptr()) ? PyNumber_AsSsize_t(item.ptr(), nullptr) : kNoIndex;
      if (index == kNoIndex)
        throw UserError("strategy \"" + name_ + "\" asked for " + py::repr(item).cast<std::string>() +
                        ": ask() gives a list of indices of configurations, whole numbers");
      if (index < 0 || static_cast<std::uint64_t>(index) >= space_size_)
        throw UserError("strategy \"" + name_ + "\" asked for configuration " + std::to_string(index) +
                        "; the space has " + std::to_string(space_size_) + ", from 0 on");
      indices.push_back(static_cast<ConfigurationIndex>(index));
    }
    return indices;
  }
  void tell(ConfigurationIndex index, const Outcome& outcome) override {
    py::gil_scoped_acquire gil;
    object_->attr("tell")(index, outcome.values, outcome.ok);
  }

 private:
  static constexpr long long kNoIndex = std::numeric_limits<long long>::min();
  std::string name_;
  std::shared_ptr<py::object> object_;
  std::uint64_t space_size_;
};

/// The spaces that this module's sessions search, so that a Python strategy receives the space object of its session.
std::map<const SearchSpace*, std::weak_ptr<const SearchSpace>> known_spaces;  // access requires the GIL

py::object held_space(const SearchSpace* space) {
  if (const auto found = known_spaces.find(space); found != known_spaces.end())
    if (auto shared = found->second.lock()) return py::cast(std::const_pointer_cast<SearchSpace>(shared));
  // a part of a space (a plan's stage): the strategy gets a new space object
  std::vector<Configuration> list;
  for (std::uint64_t i = 0; i < space->size(); ++i) list.push_back(space->configuration(i));
  return py::cast(std::make_shared<SearchSpace>(SearchSpace::from_configurations(space->parameters(), list)));
}

/// A strategy and the space to which it refers.
struct HeldStrategy {
  std::shared_ptr<SearchSpace> space;
  std::unique_ptr<Strategy> strategy;
  std::size_t objectives = 1;
};

using Seconds = std::chrono::duration<double>;

/// Accepts a number, or several.
std::vector<double> numbers_of(const py::object& given) {
  try {
    if (PyNumber_Check(given.ptr()) && !py::isinstance<py::sequence>(given) && !py::isinstance<py::array>(given))
      return {given.cast<double>()};
    return given.cast<std::vector<double>>();
  } catch (const py::cast_error&) {
    throw py::type_error("a configuration's value is a number, or a list with one for each objective, not " +
                         py::repr(given).cast<std::string>());
  }
}

/// The outcome that a callable returned for a configuration: a number or several, False for a failure; nullopt (None)
/// ends the run.
std::optional<Outcome> outcome_of(const py::object& given, std::size_t objectives) {
  if (given.is_none()) return std::nullopt;
  Outcome outcome;
  outcome.ok = given.ptr() != Py_False;
  if (outcome.ok) outcome.values = numbers_of(given);
  if (outcome.ok && outcome.values.size() != objectives)
    throw py::value_error("evaluate() gave " + std::to_string(outcome.values.size()) + " values for " +
                          std::to_string(objectives) + " objectives");
  return outcome;
}

/// Looks up a configuration in `known`, which holds (value, row), and appends the row to `rows`; nullopt if it is
/// unknown.
std::optional<Outcome> known_outcome(const py::object& known, const py::tuple& configuration, const py::object& rows) {
  if (known.is_none()) return std::nullopt;
  PyObject* pair = PyDict_GetItemWithError(known.ptr(), configuration.ptr());
  if (!pair && PyErr_Occurred()) throw py::error_already_set();
  if (!pair) return std::nullopt;
  if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) throw py::type_error("known: values are (cost, row)");
  if (PyList_Append(rows.ptr(), PyTuple_GET_ITEM(pair, 1)) != 0) throw py::error_already_set();
  Outcome outcome;
  outcome.ok = true;
  outcome.values = {py::handle(PyTuple_GET_ITEM(pair, 0)).cast<double>()};
  return outcome;
}

/// Runs a strategy until `evaluations` are done or either side ends it; returns the strategy's own time (s). Parameter
/// values are converted to Python once, since the conversion dominates the time of a simulation.
double run_strategy(HeldStrategy& held, const py::function& evaluate, std::uint64_t evaluations,
                    const py::object& known, const py::object& rows) {
  if (!known.is_none() && (!PyDict_Check(known.ptr()) || !PyList_Check(rows.ptr()) || held.objectives != 1))
    throw py::type_error("known must be a dict and rows a list, and the objective one");
  const auto& parameters = held.space->parameters();
  std::vector<std::vector<py::object>> values(parameters.size());
  for (std::size_t p = 0; p < parameters.size(); ++p)
    for (const auto& value : parameters[p].values) values[p].push_back(from_value(value));
  std::vector<std::uint32_t> positions(parameters.size());
  Seconds spent{0};
  const auto timed = [&](const auto& step) {
    const auto started = std::chrono::steady_clock::now();
    step();
    spent += std::chrono::steady_clock::now() - started;
  };
  for (std::uint64_t done = 0; done < evaluations;) {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    std::vector<ConfigurationIndex> requested;
    timed([&] { requested = held.strategy->ask(1); });
    if (requested.empty()) break;
    for (const ConfigurationIndex index : requested) {
      held.space->values_at(index, positions);
      py::tuple configuration(parameters.size());
      for (std::size_t p = 0; p < parameters.size(); ++p) configuration[p] = values[p][positions[p]];
      auto outcome = known_outcome(known, configuration, rows);
      if (!outcome) outcome = outcome_of(evaluate(index, std::move(configuration)), held.objectives);
      if (!outcome) return spent.count();
      timed([&] { held.strategy->tell(index, *outcome); });
      ++done;
    }
  }
  return spent.count();
}

/// Binds registration of strategies written in Python.
void bind_own_strategies(py::module_& module) {
  module.def(
      "register_strategy",
      [](const std::string& name, py::function factory, const std::string& summary, const py::dict& options,
         bool replace) {
        for (const StrategyDescription& known : strategies())
          if (known.name == name && !replace)
            throw UserError("there is a strategy \"" + name + "\" already; replace=True puts another in its place");
        StrategyDescription description;
        description.name = name;
        description.summary = summary;
        description.multi_objective = true;
        for (const auto& [option, value] : to_values(options)) description.options.push_back({option, "", value, {}});
        description.make = [name, held = keep(factory)](const StrategyContext& context) -> std::unique_ptr<Strategy> {
          py::gil_scoped_acquire gil;
          py::dict options;
          for (const auto& [key, value] : context.options) options[py::str(key)] = from_value(value);
          return std::make_unique<PythonStrategy>(name, (*held)(held_space(context.space), context.seed, options),
                                                  context.space->size());
        };
        register_strategy(std::move(description));
      },
      py::arg("name"), py::arg("factory"), py::arg("summary") = "", py::arg("options") = py::dict(),
      py::arg("replace") = false,
      "Adds a strategy: factory(space, seed, options) gives an object with ask(count) and tell(index, values, ok).\n\n"
      "ask() gives up to `count` indices of the space, none when it has finished; tell() gets what became of each, "
      "among them the\n"
      "default configuration, which is measured first, and what a store knows already. Values are minimised.\n\n"
      "Parameters\n----------\noptions : dict\n    Those it takes, with their defaults.\n"
      "replace : bool\n    Whether it may take the place of a strategy of this name, which is a UserError otherwise.");
  module.def("strategies", [] {
    py::dict all;
    for (const auto& s : strategies()) all[py::str(s.name)] = s.summary;
    return all;
  });
}

}  // namespace

void remember_space(const std::shared_ptr<const SearchSpace>& space) {
  std::erase_if(known_spaces, [](const auto& entry) { return entry.second.expired(); });
  known_spaces[space.get()] = space;
}

void bind_search(py::module_& module) {
  py::class_<HeldStrategy>(module, "Strategy", "Decides which configuration comes next: ask and tell.")
      .def(py::init([](const std::string& name, std::shared_ptr<SearchSpace> space, std::uint64_t seed,
                       std::uint64_t budget, std::size_t objectives, const py::dict& options) {
             StrategyContext context;
             context.space = space.get();
             context.seed = seed;
             context.budget = budget;
             context.objectives = objectives;
             context.options = to_values(options);
             auto strategy = make_strategy(name, context);
             return HeldStrategy{std::move(space), std::move(strategy), objectives};
           }),
           py::arg("name"), py::arg("space"), py::arg("seed") = 1, py::arg("budget") = 0, py::arg("objectives") = 1,
           py::arg("options") = py::dict())
      .def_property_readonly("name", [](const HeldStrategy& s) { return s.strategy->name(); })
      .def_property_readonly("explanation", [](const HeldStrategy& s) { return s.strategy->explanation(); })
      .def(
          "ask", [](HeldStrategy& s, std::size_t count) { return s.strategy->ask(count); }, py::arg("count") = 1,
          py::call_guard<py::gil_scoped_release>(), "Up to `count` indices; empty when finished.")
      .def(
          "tell",
          [](HeldStrategy& s, ConfigurationIndex index, py::object values, bool ok) {
            Outcome outcome;
            outcome.ok = ok;
            if (!values.is_none()) outcome.values = numbers_of(values);
            if (index >= s.space->size())
              throw py::index_error("the space has " + std::to_string(s.space->size()) + " configurations");
            if (outcome.ok && outcome.values.size() != s.objectives)
              throw py::value_error("tell() needs " + std::to_string(s.objectives) +
                                    " values, one per objective, not " + std::to_string(outcome.values.size()));
            py::gil_scoped_release released;
            s.strategy->tell(index, outcome);
          },
          py::arg("index"), py::arg("values"), py::arg("ok") = true, "Values are minimised.")
      .def("run", &run_strategy, py::arg("evaluate"), py::arg("evaluations"), py::arg("known") = py::none(),
           py::arg("rows") = py::none(),
           "Runs the whole search: ask and tell in a loop.\n\nParameters\n----------\n"
           "evaluate : function(index, values)\n    Gives what is minimised (a float, or one per objective), False for "
           "a\n"
           "    failure, None to end. `values` is a tuple in the order of the space's parameters.\n"
           "evaluations : int\n    How many at most.\n"
           "known : dict or None\n    By `values`: (what is minimised, a row). What stands there is appended to the "
           "list `rows`,\n"
           "    and evaluate is not called.\n\n"
           "Returns\n-------\nfloat\n    The strategy's own time in s.");
  bind_own_strategies(module);
}

}  // namespace ergotune::python
