// Binds problems with several kernels: named kernels, the steps of an iteration, online tuning of iterations that an
// application runs, and parts of an iteration measured separately.
#include <nlohmann/json.hpp>

#include "analysis/apart.hpp"
#include "bindings.hpp"
#include "ergotune/error.hpp"
#include "hooks.hpp"
#include "problem/document/problem_document.hpp"
#include "problem/steps.hpp"
#include "tune/online/online.hpp"
#include "tune/session/single_configuration.hpp"

namespace ergotune::python {
namespace {

void use_buffer(ProblemFile& problem, const std::string& name, const std::string& access) {
  std::vector<std::string> known;
  for (const Kernel& kernel : problem.kernels) {
    for (const Argument& argument : kernel.arguments) {
      if (argument.kind != Argument::Kind::buffer) continue;
      known.push_back(argument.name);
      if (argument.name != name) continue;
      Argument shared = argument;
      shared.access = access_from(access);
      problem.kernels.back().arguments.push_back(std::move(shared));
      return;
    }
  }
  throw UserError("no kernel before has a buffer \"" + name + "\"" + suggestion(name, known));
}

/// Sets the reference with which the outputs of the last kernel's first launch are compared.
void verify_kernel(ProblemFile& problem, const std::string& function, const std::string& source,
                   const std::string& language, std::optional<double> absolute, double relative, bool per_configuration,
                   const std::vector<std::string>& options) {
  Kernel& kernel = problem.kernels.back();
  if (kernel.name.empty())
    throw UserError("verify_kernel is for a kernel among several (add_kernel); a single one is verified as a whole");
  auto verification = std::make_shared<Verification>();
  auto reference = std::make_shared<Kernel>();
  reference->name = kernel.name;
  reference->function = Template::parse(function);
  reference->launch = kernel.launch;
  reference->arguments = kernel.arguments;
  const Language spoken = language_from(language);
  KernelSource text;
  text.language = spoken;
  text.text = source;
  reference->sources.push_back(std::move(text));
  for (const std::string& option : options) reference->options[""].push_back(Template::parse(option));
  const bool on_host = spoken == Language::c || spoken == Language::cpp || spoken == Language::fortran;
  verification->kind = on_host ? Verification::Kind::host_function : Verification::Kind::kernel;
  verification->reference = std::move(reference);
  verification->absolute_tolerance = absolute;
  verification->relative_tolerance = relative;
  verification->per_configuration = per_configuration;
  kernel.verification = std::move(verification);
}

constexpr const char* kAddExecutionParameter =
    "What is set on the device for a configuration, as [execution] in a problem file (the page \"Clocks and power "
    "limits\").\n\n"
    "Parameters\n----------\nname : {'core_clock_mhz', 'memory_clock_mhz', 'power_limit_w'}\n"
    "values : str, int, list or dict\n    \"all\" that the device has, \"model\" (those that the power model "
    "suggests), a count of\n"
    "    equidistant ones, a list (MHz, W), or {\"from\": 900, \"to\": 1400, \"step\": 50}.";

py::dict round_dict(const Session& session, const OnlineIteration& round) {
  const auto& space = session.space();
  py::dict out;
  out["number"] = round.number;
  out["seconds"] = round.seconds;
  out["device_seconds"] = round.device_seconds;
  out["configuration"] = named(space.parameters(), space.configuration(round.configuration));
  out["tried"] =
      round.tried ? py::object(named(space.parameters(), space.configuration(*round.tried))) : py::object(py::none());
  out["settled"] = round.settled;
  return out;
}

void bind_session(py::module_& module) {
  py::class_<Session>(module, "Session", "Rounds of a workload that an application runs, tuned on the way.")
      .def(py::init([](const ProblemFile& problem, const py::dict& settings, double bound, bool own_rounds) {
             if (!(bound >= 0))
               throw UserError("bound is a share of the rounds' time, such as 0.05, not " + std::to_string(bound));
             ProblemFile adapted = problem;
             adapt_problem(adapted, settings);
             SetupOptions setup;
             setup.run = adapted.run;
             if (settings.contains("worker_command"))
               setup.worker_command = settings["worker_command"].cast<std::vector<std::string>>();
             OnlineOptions options;
             options.bound = bound;
             options.own_rounds = own_rounds;
             options.session = SessionOptions::from(adapted.run);
             py::gil_scoped_release released;
             return std::make_unique<Session>(std::move(adapted), std::move(setup), std::move(options));
           }),
           py::arg("problem"), py::arg("settings"), py::arg("bound"), py::arg("own_rounds") = false)
      .def(
          "next_round",
          [](Session& session) {
            OnlineIteration round;
            {
              py::gil_scoped_release released;
              round = session.next_round();
            }
            return round_dict(session, round);
          },
          "Runs a round and waits for it: a dict with number, seconds, device_seconds, configuration, tried, settled.")
      .def(
          "read_bytes",
          [](const Session& session, const std::string& name) {
            std::string bytes(session.bytes(name), '\0');
            session.read(name, std::as_writable_bytes(std::span(bytes)));
            return py::bytes(bytes);
          },
          py::arg("buffer"))
      .def(
          "write_bytes",
          [](Session& session, const std::string& name, const std::string& bytes) {
            session.write(name, std::as_bytes(std::span(bytes)));
          },
          py::arg("buffer"), py::arg("contents"))
      .def("restore", &Session::restore, "Puts all buffers back to what the problem fills them with.")
      .def_property_readonly(
          "best", [](const Session& session) { return named(session.space().parameters(), session.best()); },
          "The best configuration so far.")
      .def_property_readonly(
          "measurement", [](const Session& session) { return to_dict(session.measurement()); },
          "The measurement of the best configuration.")
      .def_property_readonly("settled", &Session::settled, "Nothing is left to try.")
      .def_property_readonly("rounds", &Session::rounds, "Number of rounds so far.")
      .def_property_readonly("tried", &Session::tried, "Configurations tried by this process.")
      .def_property_readonly("resumed", &Session::resumed, "Configurations known from the store.")
      .def_property_readonly("ratio", &Session::ratio,
                             "Time (or energy) of all rounds so far over what the default would have taken.")
      .def_property_readonly("worst_ratio", &Session::worst_ratio, "The highest that the ratio has been.");
}

Measurement measure(const Problem& problem, const SetupOptions& setup,
                    const std::map<std::string, Value>& configuration) {
  PreparedSession prepared = prepare_session(problem, setup);
  return measure_one(prepared, index_in_space(prepared, configuration_of(configuration, prepared.space->parameters())))
      .measurement;
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

py::dict measure_configuration(ProblemFile problem, const py::dict& settings, const py::dict& configuration,
                               const py::object& verify) {
  SetupOptions setup = setup_for_one(problem, settings);
  setup.verifier = python_verifier(verify, settings);
  const std::map<std::string, Value> values = to_values(configuration);
  Measurement measurement;
  {
    py::gil_scoped_release released;
    measurement = measure(problem, setup, values);
  }
  raise_interruption();
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

std::string json_of(const py::object& object) {
  const py::module_ json = py::module_::import("json"), operators = py::module_::import("operator");
  return json.attr("dumps")(object, py::arg("default") = operators.attr("methodcaller")("item")).cast<std::string>();
}

void bind_workload(py::module_& module, py::class_<ProblemFile>& problem) {
  problem
      .def(
          "add_execution_parameter",
          [](ProblemFile& p, const std::string& name, const py::object& values) {
            const bool listed = !py::isinstance<py::str>(values) && !py::isinstance<py::dict>(values) &&
                                py::hasattr(values, "__iter__");
            py::dict table;
            table[py::str(name)] = listed ? py::object(py::list(values)) : values;
            ExecutionParameterSpec spec = execution_parameter_from(json_of(table));
            for (const ExecutionParameterSpec& other : p.execution_parameters)
              if (other.kind == spec.kind) throw UserError("\"" + name + "\" is declared twice");
            p.execution_parameters.push_back(std::move(spec));
          },
          py::arg("name"), py::arg("values"), kAddExecutionParameter)
      .def(
          "add_kernel", [](ProblemFile& p, const std::string& name) { add_kernel(p, name); }, py::arg("name"),
          "Begins another kernel of a workload: source, launch, options and arguments that follow are its own.")
      .def("use_buffer", &use_buffer, py::arg("name"), py::arg("access") = "read",
           "A buffer that an earlier kernel declared is the next argument of this one.")
      .def("verify_kernel", &verify_kernel, py::arg("function"), py::arg("source"), py::arg("language") = "c",
           py::arg("absolute_tolerance") = py::none(), py::arg("relative_tolerance") = 1e-4,
           py::arg("per_configuration") = false, py::arg("options") = std::vector<std::string>{},
           "Compares the outputs of the kernel added last with those of a reference with the same arguments: a "
           "function of C, C++ or Fortran,\nor a kernel. `per_configuration`: it runs with each configuration's "
           "parameters, not once with the defaults.")
      .def(
          "set_workload", [](ProblemFile& p, const py::list& steps) { p.steps = steps_from(p, json_of(steps)); },
          py::arg("steps"),
          "What an iteration runs, in order, as steps of [workload] in a problem file: [{\"kernel\": \"scale\", "
          "\"launches\": 2}, {\"concurrent\": [\"a\", \"b\"]}].")
      .def_property_readonly("kernel_names", [](const ProblemFile& p) {
        std::vector<std::string> names;
        for (const Kernel& kernel : p.kernels) names.push_back(kernel.name);
        return names;
      });
  bind_session(module);
  module.def("measure", &measure_configuration);
  module.def("measure_apart", &measure_apart);
}

}  // namespace ergotune::python
