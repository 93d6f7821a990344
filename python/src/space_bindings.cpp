// Binds search spaces as sequences of configurations.
#include <nlohmann/json.hpp>

#include "api/compile_check.hpp"
#include "bindings.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "ergotune/space.hpp"

namespace ergotune::python {
namespace {

Neighbourhood neighbourhood_from(const std::string& name) {
  if (name == "hamming") return Neighbourhood::hamming;
  if (name == "adjacent") return Neighbourhood::adjacent;
  if (name == "strictly_adjacent") return Neighbourhood::strictly_adjacent;
  throw UserError("unknown neighbourhood \"" + name + "\"" +
                  suggestion(name, {"hamming", "adjacent", "strictly_adjacent"}));
}

std::uint64_t checked(const SearchSpace& space, std::int64_t index) {
  const auto size = static_cast<std::int64_t>(space.size());
  if (index < 0) index += size;
  if (index < 0 || index >= size) throw py::index_error("the space has " + std::to_string(size) + " configurations");
  return static_cast<std::uint64_t>(index);
}

std::shared_ptr<SearchSpace> build(const ProblemFile& problem, const py::dict& constants,
                                   std::uint64_t materialise_limit, const std::string& device) {
  const DeviceLimits limits = device.empty() ? DeviceLimits{} : limits_of(problem, device);
  auto all = limits.name.empty() ? problem.constants : problem.constants_for(limits.name, limits.properties);
  for (const auto& [name, value] : to_constants(constants)) all[name] = value;
  SpaceOptions options;
  options.materialise_limit = materialise_limit;
  // a callable restriction acquires the GIL; several threads would only wait for it
  for (const auto& r : problem.restrictions)
    if (r.function) options.threads = 1;
  py::gil_scoped_release released;
  return std::make_shared<SearchSpace>(problem.build_space(all, options));
}

/// "device", "device_id", "compiled" and "notes" as in the document of `ergotune space --compile N --json`.
py::object compile_check(const ProblemFile& problem, const std::string& device, std::uint64_t count,
                         std::uint64_t seed) {
  return make_document([&]() -> nlohmann::ordered_json {
    const DeviceLimits limits = limits_of(problem, device);
    const SearchSpace space = problem.build_space(problem.constants_for(limits.name, limits.properties));
    if (space.empty()) throw UserError(space.why_empty());
    const CompileCheck check = check_compiling(problem, space, device, limits, count, seed);
    return {{"device", check.device.name},
            {"device_id", check.device.id},
            {"valid", space.size()},
            {"compiled", compiled_document(space, check)},
            {"notes", check.notes}};
  });
}

py::list effects_of(const SearchSpace& space) {
  py::list effects;
  for (const auto& e : space.explain()) {
    py::dict row;
    row["label"] = e.label;
    row["removed_alone"] = e.removed_alone;
    row["removed_only_by_it"] = e.removed_only_by_it;
    row["redundant"] = e.redundant;
    effects.append(row);
  }
  return effects;
}

/// Pickles names with values, and all configurations: restrictions that are callables are not transferred.
py::tuple pickled(const SearchSpace& space) {
  py::list parameters, configurations;
  for (const auto& parameter : space.parameters()) {
    py::list values;
    for (const auto& value : parameter.values) values.append(from_value(value));
    parameters.append(py::make_tuple(parameter.name, values));
  }
  for (std::uint64_t i = 0; i < space.size(); ++i) {
    py::list row;
    for (const auto& value : space.configuration(i)) row.append(from_value(value));
    configurations.append(py::tuple(row));
  }
  return py::make_tuple(parameters, configurations);
}

std::shared_ptr<SearchSpace> unpickled(const py::tuple& state) {
  std::vector<Parameter> parameters;
  for (const auto& item : state[0]) {
    const auto pair = item.cast<py::tuple>();
    Parameter parameter;
    parameter.name = pair[0].cast<std::string>();
    for (const auto& value : pair[1]) parameter.values.push_back(to_value(value));
    parameters.push_back(std::move(parameter));
  }
  std::vector<Configuration> list;
  for (const auto& row : state[1]) list.push_back(to_configuration(parameters, row));
  return std::make_shared<SearchSpace>(SearchSpace::from_configurations(std::move(parameters), list));
}

py::array positions(const SearchSpace& space) {
  const auto width = space.dimensions();
  py::array_t<std::uint32_t> out({static_cast<py::ssize_t>(space.size()), static_cast<py::ssize_t>(width)});
  std::uint32_t* row = out.mutable_data();
  py::gil_scoped_release released;
  for (std::uint64_t i = 0; i < space.size(); ++i, row += width) space.values_at(i, {row, width});
  return out;
}

using SpaceClass = py::class_<SearchSpace, std::shared_ptr<SearchSpace>>;

/// Binds the sequence interface.
void bind_sequence(SpaceClass& space) {
  space.def("__len__", &SearchSpace::size)
      .def("__getitem__", [](const SearchSpace& s,
                             std::int64_t index) { return named(s.parameters(), s.configuration(checked(s, index))); })
      .def("__getitem__",
           [](const SearchSpace& s, const py::slice& slice) {
             py::ssize_t start = 0, stop = 0, step = 0, count = 0;
             if (!slice.compute(static_cast<py::ssize_t>(s.size()), &start, &stop, &step, &count))
               throw py::error_already_set();
             py::list list;
             for (; count > 0; --count, start += step)
               list.append(named(s.parameters(), s.configuration(static_cast<std::uint64_t>(start))));
             return list;
           })
      .def("__contains__",
           [](const SearchSpace& s, py::handle configuration) {
             try {
               return s.index_of(to_configuration(s.parameters(), configuration)).has_value();
             } catch (const UserError&) {
               return false;  // the tuple has too few values
             }
           })
      .def(
          "index_of",
          [](const SearchSpace& s, py::handle configuration) {
            return s.index_of(to_configuration(s.parameters(), configuration));
          },
          py::arg("configuration"), "The configuration's index, or None when it is not in the space.")
      .def("positions", &positions,
           "An array of shape (size, parameters): where each value stands in values(name). A row per configuration.");
}

/// Binds the operations that strategies use.
void bind_moves(SpaceClass& space) {
  space
      .def(
          "sample",
          [](const SearchSpace& s, std::size_t count, std::uint64_t seed) {
            Random random(seed);
            return s.sample_distinct(count, random);
          },
          py::arg("count"), py::arg("seed") = 1, "Indices of different configurations, uniformly random.")
      .def(
          "latin_hypercube",
          [](const SearchSpace& s, std::size_t count, std::uint64_t seed) {
            Random random(seed);
            return s.latin_hypercube(count, random);
          },
          py::arg("count"), py::arg("seed") = 1,
          "Indices of configurations that cover the values of every parameter evenly.")
      .def(
          "neighbours",
          [](const SearchSpace& s, std::int64_t index, const std::string& kind) {
            std::vector<ConfigurationIndex> out;
            s.neighbours(checked(s, index), neighbourhood_from(kind), out);
            return out;
          },
          py::arg("index"), py::arg("kind") = "hamming",
          "Indices of configurations close to one: \"hamming\", one parameter has another value; \"adjacent\", each "
          "has its value or one next to it;\n\"strictly_adjacent\", one has a value next to its own.");
}

}  // namespace

void bind_space(py::module_& module) {
  SpaceClass space(module, "SearchSpace",
                   "All configurations that meet the restrictions, numbered in lexicographic order.");
  space
      .def(py::init(&build), py::arg("problem"), py::arg("constants") = py::dict(), py::arg("materialise_limit") = 0,
           py::arg("device") = "")
      .def(py::init([](const std::filesystem::path& file, const py::dict& constants, std::uint64_t materialise_limit,
                       const std::string& device) {
             return build(load_problem(file), constants, materialise_limit, device);
           }),
           py::arg("problem"), py::arg("constants") = py::dict(), py::arg("materialise_limit") = 0,
           py::arg("device") = "")
      .def_property_readonly("parameter_names", [](const SearchSpace& s) { return names_of(s.parameters()); })
      .def_property_readonly("cartesian_size", &SearchSpace::cartesian_size)
      .def_property_readonly("materialised", &SearchSpace::materialised)
      .def_property_readonly("memory_bytes", &SearchSpace::memory_bytes)
      .def_property_readonly("build_seconds", &SearchSpace::build_seconds)
      .def(
          "values",
          [](const SearchSpace& s, const std::string& name) {
            const auto index = s.parameter_index(name);
            if (!index) throw UserError("no parameter \"" + name + "\"");
            py::list values;
            for (const auto& v : s.parameters()[*index].values) values.append(from_value(v));
            return values;
          },
          py::arg("name"), "Every value a parameter takes.")
      .def(py::pickle(&pickled, &unpickled))
      .def("why_empty", &SearchSpace::why_empty, "Which restrictions leave no configuration.")
      .def("explain", &effects_of,
           "What each restriction removes: dicts with label, removed_alone (configurations of the whole product), "
           "removed_only_by_it,\nand redundant.");
  module.def("compile_check", &compile_check, py::arg("problem"), py::arg("device"), py::arg("count"), py::arg("seed"));
  bind_sequence(space);
  bind_moves(space);
}

}  // namespace ergotune::python
