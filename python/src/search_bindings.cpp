// Strategies through ask and tell, and a user's own written in Python.
#include "bindings.hpp"
#include "ergotune/search/strategy.hpp"

namespace ergotune::python {
namespace {

/// A Python object with ask(count) -> [index] and tell(index, values, ok), as a strategy.
class PythonStrategy : public Strategy {
 public:
  PythonStrategy(std::string name, py::object object) : name_(std::move(name)), object_(keep(std::move(object))) {}
  std::string name() const override { return name_; }
  std::vector<ConfigurationIndex> ask(std::size_t count) override {
    py::gil_scoped_acquire gil;
    return object_->attr("ask")(count).cast<std::vector<ConfigurationIndex>>();
  }
  void tell(ConfigurationIndex index, const Outcome& outcome) override {
    py::gil_scoped_acquire gil;
    object_->attr("tell")(index, outcome.values, outcome.ok);
  }

 private:
  std::string name_;
  std::shared_ptr<py::object> object_;
};

/// Keeps the space alive that its strategy points into.
struct HeldStrategy {
  std::shared_ptr<SearchSpace> space;
  std::unique_ptr<Strategy> strategy;
};

}  // namespace

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
             return HeldStrategy{std::move(space), std::move(strategy)};
           }),
           py::arg("name"), py::arg("space"), py::arg("seed") = 1, py::arg("budget") = 0, py::arg("objectives") = 1,
           py::arg("options") = py::dict())
      .def_property_readonly("name", [](const HeldStrategy& s) { return s.strategy->name(); })
      .def_property_readonly("explanation", [](const HeldStrategy& s) { return s.strategy->explanation(); })
      .def("ask", [](HeldStrategy& s, std::size_t count) { return s.strategy->ask(count); }, py::arg("count") = 1,
           py::call_guard<py::gil_scoped_release>(), "Up to `count` indices; empty when finished.")
      .def("tell",
           [](HeldStrategy& s, ConfigurationIndex index, py::object values, bool ok) {
             Outcome outcome;
             outcome.ok = ok;
             if (py::isinstance<py::float_>(values) || py::isinstance<py::int_>(values))
               outcome.values = {values.cast<double>()};
             else if (!values.is_none())
               outcome.values = values.cast<std::vector<double>>();
             py::gil_scoped_release released;
             s.strategy->tell(index, outcome);
           },
           py::arg("index"), py::arg("values"), py::arg("ok") = true, "Values are minimised.");
  module.def(
      "register_strategy",
      [](const std::string& name, py::function factory, const std::string& summary) {
        StrategyDescription description;
        description.name = name;
        description.summary = summary;
        description.multi_objective = true;
        description.make = [name, held = keep(factory)](const StrategyContext& context) -> std::unique_ptr<Strategy> {
          py::gil_scoped_acquire gil;
          // the space outlives the strategy: a session holds both
          auto space = py::cast(const_cast<SearchSpace*>(context.space), py::return_value_policy::reference);
          py::dict options;
          for (const auto& [key, value] : context.options) options[py::str(key)] = from_value(value);
          return std::make_unique<PythonStrategy>(name, (*held)(space, context.seed, options));
        };
        register_strategy(std::move(description));
      },
      py::arg("name"), py::arg("factory"), py::arg("summary") = "",
      "Adds a strategy: factory(space, seed, options) gives an object with ask(count) and tell(index, values, ok).");
  module.def("strategies", [] {
    py::dict all;
    for (const auto& s : strategies()) all[py::str(s.name)] = s.summary;
    return all;
  });
}

}  // namespace ergotune::python
