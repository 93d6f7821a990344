// Several kernels in Python: kernels with names, the steps of a round, rounds that an application runs itself, and what
// is set on the device meanwhile.
#include <algorithm>

#include "bindings.hpp"
#include "ergotune/error.hpp"
#include "problem/steps.hpp"
#include "tune/online/online.hpp"

namespace ergotune::python {
namespace {

Expression expression_of(const py::dict& step, const char* key, std::int64_t otherwise) {
  if (!step.contains(key)) return Expression::constant(otherwise);
  const py::object value = step[key];
  return py::isinstance<py::str>(value) ? Expression::parse(value.cast<std::string>())
                                        : Expression::constant(to_value(value));
}

void allow(const py::dict& step, const std::vector<std::string>& keys) {
  for (const auto& [key, value] : step) {
    const auto name = key.cast<std::string>();
    if (std::find(keys.begin(), keys.end(), name) == keys.end())
      throw UserError("unknown key \"" + name + "\" in a step" + suggestion(name, keys));
  }
}

std::vector<Step> steps_from(const Problem& problem, const py::handle& list);

Step concurrent_from(const Problem& problem, const py::dict& given) {
  allow(given, {"concurrent", "launches", "order", "priority", "multiprocessors"});
  const py::dict launches = given.contains("launches") ? given["launches"].cast<py::dict>() : py::dict();
  const py::dict priority = given.contains("priority") ? given["priority"].cast<py::dict>() : py::dict();
  const py::dict shares = given.contains("multiprocessors") ? given["multiprocessors"].cast<py::dict>() : py::dict();
  std::vector<Step> branches;
  for (const auto& item : given["concurrent"]) {
    if (py::isinstance<py::str>(item)) {
      const auto name = item.cast<std::string>();
      branches.push_back(launch_step(problem, name, expression_of(launches, name.c_str(), 1)));
    } else {
      const auto branch = item.cast<py::dict>();
      if (branch.contains("name")) {
        allow(branch, {"name", "steps"});
        branches.push_back(branch_step(branch["name"].cast<std::string>(), steps_from(problem, branch["steps"])));
      } else {
        py::list alone;
        alone.append(branch);
        branches.push_back(steps_from(problem, alone).front());
      }
    }
    const py::str name(branches.back().name);
    if (priority.contains(name)) branches.back().priority = Template::parse(priority[name].cast<std::string>());
    branches.back().multiprocessors = expression_of(shares, branches.back().name.c_str(), 0);
  }
  std::string order;
  if (given.contains("order")) {
    if (py::isinstance<py::str>(given["order"]))
      order = given["order"].cast<std::string>();
    else
      for (const auto& name : given["order"]) order += (order.empty() ? "" : ",") + name.cast<std::string>();
  }
  return concurrent_step(std::move(branches), order);
}

Step step_from(const Problem& problem, const py::dict& given) {
  if (given.contains("concurrent")) return concurrent_from(problem, given);
  if (given.contains("for")) {
    allow(given, {"for", "from", "to", "by", "steps"});
    if (!given.contains("to") || !given.contains("steps")) throw UserError("a loop needs \"to\" and \"steps\"");
    return loop_step(given["for"].cast<std::string>(), expression_of(given, "from", 0), expression_of(given, "to", 0),
                     steps_from(problem, given["steps"]), expression_of(given, "by", 1));
  }
  if (given.contains("swap")) {
    allow(given, {"swap"});
    const auto pair = given["swap"].cast<std::vector<std::string>>();
    if (pair.size() != 2) throw UserError("\"swap\" takes the names of two buffers");
    return swap_step(pair[0], pair[1]);
  }
  if (!given.contains("kernel")) throw UserError("a step needs one of \"kernel\", \"for\", \"swap\", \"concurrent\"");
  allow(given, {"kernel", "launches"});
  return launch_step(problem, given["kernel"].cast<std::string>(), expression_of(given, "launches", 1));
}

std::vector<Step> steps_from(const Problem& problem, const py::handle& list) {
  std::vector<Step> steps;
  for (const auto& item : list) steps.push_back(step_from(problem, item.cast<py::dict>()));
  return steps;
}

void use_buffer(Problem& problem, const std::string& name, const std::string& access) {
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

/// What the last kernel's first launch is held against.
void verify_kernel(Problem& problem, const std::string& function, const std::string& source,
                   const std::string& language, double absolute, double relative, bool per_configuration,
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

/// [execution] of a problem file: "all", "model", a count, a list, or {"from", "to", "step"}.
ExecutionParameterSpec execution_parameter(const std::string& name, const py::object& values) {
  using Choice = ExecutionParameterSpec::Choice;
  static const std::map<std::string, ParameterKind> kinds = {{"core_clock_mhz", ParameterKind::core_clock_mhz},
                                                             {"memory_clock_mhz", ParameterKind::memory_clock_mhz},
                                                             {"power_limit_w", ParameterKind::power_limit_w}};
  const auto kind = kinds.find(name);
  if (kind == kinds.end())
    throw UserError("\"" + name + "\" is not set on devices" +
                    suggestion(name, {"core_clock_mhz", "memory_clock_mhz", "power_limit_w"}) +
                    "; it is core_clock_mhz, memory_clock_mhz or power_limit_w");
  ExecutionParameterSpec spec;
  spec.kind = kind->second;
  const auto number = [&](const py::handle& object) {
    const Value value = to_value(object);
    if (!value.is_number()) throw UserError(name + " takes numbers, not " + value.to_literal());
    return value;
  };
  if (py::isinstance<py::str>(values)) {
    const auto word = values.cast<std::string>();
    if (word != "all" && word != "model")
      throw UserError("\"" + word + "\" is no choice for " + name + ": \"all\" or \"model\"");
    spec.choice = word == "all" ? Choice::all : Choice::model;
  } else if (py::isinstance<py::dict>(values)) {
    spec.choice = Choice::range;
    const auto range = values.cast<py::dict>();
    for (const auto& [key, value] : range) {
      const auto end = py::str(key).cast<std::string>();
      if (end != "from" && end != "to" && end != "step")
        throw UserError("a range of " + name + " has \"from\", \"to\" and \"step\", not \"" + end + "\"");
      (end == "from" ? spec.low : end == "to" ? spec.high : spec.step) = number(value).as_real();
    }
    if (!range.contains("from") || !range.contains("to") || spec.low > spec.high || spec.step < 0)
      throw UserError("a range of " + name +
                      " goes from a lower value to a higher one, in steps that are not negative");
  } else if (py::isinstance<py::int_>(values)) {
    spec.choice = Choice::equidistant;
    spec.count = static_cast<int>(std::clamp<std::int64_t>(to_value(values).as_integer(), 0, 1'000'000));
    if (spec.count < 1) throw UserError("the count of equidistant values of " + name + " has to be at least 1");
  } else {
    spec.choice = Choice::list;
    for (const auto& value : values) spec.values.push_back(number(value));
    if (spec.values.empty()) throw UserError(name + " has no values");
  }
  return spec;
}

constexpr const char* kAddExecutionParameter =
    "What is set on the device for a configuration, as [execution] in a problem file (docs/clocks.md).\n\n"
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
      .def(py::init([](const Problem& problem, const py::dict& settings, double bound) {
             if (!(bound >= 0))
               throw UserError("bound is a share of the rounds' time, such as 0.05, not " + std::to_string(bound));
             Problem adapted = problem;
             adapt_problem(adapted, settings);
             SetupOptions setup = SetupOptions::from(adapted);
             if (settings.contains("worker_command"))
               setup.live.worker_command = settings["worker_command"].cast<std::vector<std::string>>();
             OnlineOptions options;
             options.bound = bound;
             options.session = SessionOptions::from(adapted.settings);
             py::gil_scoped_release released;
             return std::make_unique<Session>(std::move(adapted), std::move(setup), std::move(options));
           }),
           py::arg("problem"), py::arg("settings"), py::arg("bound"))
      .def("next_round",
           [](Session& session) {
             OnlineIteration round;
             {
               py::gil_scoped_release released;
               round = session.next_round();
             }
             return round_dict(session, round);
           })
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
      .def("restore", &Session::restore)
      .def_property_readonly("best",
                             [](const Session& session) { return named(session.space().parameters(), session.best()); })
      .def_property_readonly("measurement", [](const Session& session) { return to_dict(session.measurement()); })
      .def_property_readonly("settled", &Session::settled)
      .def_property_readonly("rounds", &Session::rounds)
      .def_property_readonly("tried", &Session::tried)
      .def_property_readonly("resumed", &Session::resumed)
      .def_property_readonly("ratio", &Session::ratio)
      .def_property_readonly("worst_ratio", &Session::worst_ratio);
}

}  // namespace

void bind_workload(py::module_& module, py::class_<Problem>& problem) {
  problem
      .def(
          "add_execution_parameter",
          [](Problem& p, const std::string& name, const py::object& values) {
            ExecutionParameterSpec spec = execution_parameter(name, values);
            for (const ExecutionParameterSpec& other : p.execution_parameters)
              if (other.kind == spec.kind) throw UserError("\"" + name + "\" is declared twice");
            p.execution_parameters.push_back(std::move(spec));
          },
          py::arg("name"), py::arg("values"), kAddExecutionParameter)
      .def(
          "add_kernel", [](Problem& p, const std::string& name) { add_kernel(p, name); }, py::arg("name"))
      .def("use_buffer", &use_buffer, py::arg("name"), py::arg("access") = "read")
      .def("verify_kernel", &verify_kernel, py::arg("function"), py::arg("source"), py::arg("language") = "c",
           py::arg("absolute_tolerance") = 1e-6, py::arg("relative_tolerance") = 1e-4,
           py::arg("per_configuration") = false, py::arg("options") = std::vector<std::string>{})
      .def(
          "set_workload", [](Problem& p, const py::list& steps) { p.steps = steps_from(p, steps); }, py::arg("steps"))
      .def_property_readonly("kernel_names", [](const Problem& p) {
        std::vector<std::string> names;
        for (const Kernel& kernel : p.kernels) names.push_back(kernel.name);
        return names;
      });
  bind_session(module);
}

}  // namespace ergotune::python
