// Strategies through ask and tell, and a user's own written in Python.
#include "bindings.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/search/strategy.hpp"

namespace ergotune::python {
namespace {

/// A Python object with ask(count) -> [index] and tell(index, values, ok), as a strategy.
class PythonStrategy : public Strategy {
 public:
  PythonStrategy(std::string name, py::object object, std::uint64_t space_size)
      : name_(std::move(name)), object_(keep(std::move(object))), space_size_(space_size) {}
  std::string name() const override { return name_; }
  std::vector<ConfigurationIndex> ask(std::size_t count) override {
    py::gil_scoped_acquire gil;
    const py::object asked = object_->attr("ask")(count);
    std::vector<ConfigurationIndex> indices;
    for (const auto& item : asked) {
      const auto index = item.cast<long long>();
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
  std::string name_;
  std::shared_ptr<py::object> object_;
  std::uint64_t space_size_;
};

/// The spaces that this module's sessions search, so that a strategy in Python holds what it was given.
std::map<const SearchSpace*, std::weak_ptr<const SearchSpace>> known_spaces;  // used with the GIL held

py::object held_space(const SearchSpace* space) {
  if (const auto found = known_spaces.find(space); found != known_spaces.end())
    if (auto shared = found->second.lock()) return py::cast(std::const_pointer_cast<SearchSpace>(shared));
  // a part of a space (a plan's stage): the strategy gets one of its own
  std::vector<Configuration> list;
  for (std::uint64_t i = 0; i < space->size(); ++i) list.push_back(space->configuration(i));
  return py::cast(std::make_shared<SearchSpace>(SearchSpace::from_configurations(space->parameters(), list)));
}

/// Keeps the space alive that its strategy points into.
struct HeldStrategy {
  std::shared_ptr<SearchSpace> space;
  std::unique_ptr<Strategy> strategy;
  std::size_t objectives = 1;
};

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
             if (index >= s.space->size())
               throw py::index_error("the space has " + std::to_string(s.space->size()) + " configurations");
             if (outcome.ok && outcome.values.size() != s.objectives)
               throw py::value_error("tell() needs " + std::to_string(s.objectives) + " values, one per objective, not " +
                                     std::to_string(outcome.values.size()));
             py::gil_scoped_release released;
             s.strategy->tell(index, outcome);
           },
           py::arg("index"), py::arg("values"), py::arg("ok") = true, "Values are minimised.");
  module.def(
      "register_strategy",
      [](const std::string& name, py::function factory, const std::string& summary, const py::dict& options) {
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
      py::arg("name"), py::arg("factory"), py::arg("summary") = "",
      py::arg("options") = py::dict(),
      "Adds a strategy: factory(space, seed, options) gives an object with ask(count) and tell(index, values, ok). "
      "`options`: those it takes, with their defaults.");
  module.def("strategies", [] {
    py::dict all;
    for (const auto& s : strategies()) all[py::str(s.name)] = s.summary;
    return all;
  });
}

}  // namespace ergotune::python
