// Binds measuring parts of an iteration separately, and attribution of time and energy to kernels.
#include <nlohmann/json.hpp>

#include "analysis/apart.hpp"
#include "bindings.hpp"
#include "ergotune/error.hpp"
#include "tune/session/measure_one.hpp"

namespace ergotune::python {
namespace {

Measurement measure(const Problem& problem, const SetupOptions& setup,
                    const std::map<std::string, Value>& configuration) {
  PreparedSession prepared = prepare_session(problem, setup);
  const auto index = index_of_values(prepared, configuration);
  if (!index) throw UserError("the configuration is not in the search space of " + problem.name);
  return measure_one(prepared, *index).measurement;
}

SetupOptions setup_for_one(ProblemFile& problem, const py::dict& settings) {
  adapt_problem(problem, settings);
  SetupOptions setup;
  setup.run = problem.run;
  setup.run.jobs = 1;
  if (settings.contains("worker_command"))
    setup.worker_command = settings["worker_command"].cast<std::vector<std::string>>();
  return setup;
}

py::dict measure_configuration(ProblemFile problem, const py::dict& settings, const py::dict& configuration) {
  const SetupOptions setup = setup_for_one(problem, settings);
  const std::map<std::string, Value> values = to_values(configuration);
  Measurement measurement;
  {
    py::gil_scoped_release released;
    measurement = measure(problem, setup, values);
  }
  return to_dict(measurement);
}

py::dict measure_apart(const ProblemFile& given, const py::dict& settings, const py::dict& configuration,
                       const std::optional<std::string>& attributed) {
  ProblemFile problem = given;
  const SetupOptions setup = setup_for_one(problem, settings);
  const std::map<std::string, Value> values = to_values(configuration);
  std::optional<AttributionMethod> method;
  if (attributed) method = attribution_method(*attributed);
  const std::vector<IterationVariant> rounds = iteration_variants(problem, method);
  std::vector<Measurement> measurements;
  {
    py::gil_scoped_release released;
    for (const IterationVariant& round : rounds) measurements.push_back(measure(round.problem, setup, values));
  }
  py::list told;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    py::dict round = to_dict(measurements[i]);
    round["round"] = rounds[i].name;
    told.append(round);
  }
  py::dict result;
  result["rounds"] = told;
  if (method)
    result["attribution"] = from_json(attribution_document(attribute(problem, *method, rounds, measurements)));
  return result;
}

}  // namespace

void bind_apart(py::module_& module) {
  module.def("measure", &measure_configuration, py::arg("problem"), py::arg("settings"), py::arg("configuration"));
  module.def("measure_apart", &measure_apart, py::arg("problem"), py::arg("settings"), py::arg("configuration"),
             py::arg("attribute"));
}

}  // namespace ergotune::python
