// Binds problems, loaded from files or made in Python.
#include <fmt/format.h>

#include <algorithm>

#include "bindings.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "evaluate/recorded/replay.hpp"
#include "hooks.hpp"
#include "measure/observers/observer_registry.hpp"
#include "problem/document/problem_document.hpp"
#include "problem/draft/problem_draft.hpp"
#include "tensors.hpp"

namespace ergotune::python {
namespace {

Expression expression(py::handle object) {
  if (py::isinstance<py::str>(object)) return Expression::parse(object.cast<std::string>());
  return Expression::constant(to_value(object));
}

/// The element type for NumPy's name. A foreign byte order is part of that name; in_memory_order() converts it.
ElementType element_type_of(const std::string& name) {
  if (const auto type = element_type(name)) return *type;
  throw UserError(
      "arrays of " + name +
      " cannot be kernel arguments; use one of int8 .. uint64, float16, float32, float64, complex64, complex128, bool");
}

/// The replacement for a type that kernels do not have: its element type, and the number of elements per value.
std::pair<std::string, std::int64_t> elements_of(const std::string& name) {
  if (name == "complex64") return {"float32", 2};
  if (name == "complex128") return {"float64", 2};
  if (name == "bool") return {"uint8", 1};
  return {name, 1};
}

std::shared_ptr<const std::vector<std::uint8_t>> bytes_of(const py::array& array) {
  const py::array dense = in_memory_order(array);
  const auto* first = static_cast<const std::uint8_t*>(dense.data());
  return std::make_shared<const std::vector<std::uint8_t>>(first, first + dense.nbytes());
}

/// Describes how verification receives an argument (parsed in hooks.cpp): "float32 C 3 4"; empty if its type is
/// sufficient.
std::string seen_as_text(const std::string& type, const std::vector<std::int64_t>& shape, bool in_c_order) {
  if (shape.size() < 2) return element_type(type) ? "" : type;
  std::string message = type + (in_c_order ? " C" : " F");
  for (const std::int64_t extent : shape) message += " " + std::to_string(extent);
  return message;
}

Argument buffer_argument(const std::string& name, const py::object& object, const std::string& access) {
  Argument argument;
  argument.kind = Argument::Kind::buffer;
  argument.name = name;
  argument.access = access_from(access);
  argument.fill.kind = Fill::Kind::data;
  const auto tensor = device_tensor(object);
  const py::array array = tensor ? py::array() : host_array(object);
  const auto seen_as = tensor ? tensor->type : array.dtype().attr("name").cast<std::string>();
  const auto [element, per_element] = elements_of(seen_as);
  argument.type = element_type_of(element);
  const std::vector<std::int64_t> shape =
      tensor ? tensor->shape : std::vector<std::int64_t>(array.shape(), array.shape() + array.ndim());
  const bool in_c_order = tensor ? tensor->order == "C" : (array.flags() & py::array::c_style) != 0;
  argument.seen_as = seen_as_text(seen_as, shape, in_c_order);
  const std::int64_t count = (tensor ? tensor->count : static_cast<std::int64_t>(array.size())) * per_element;
  argument.count = Expression::constant(count);
  if (!tensor) {
    argument.fill.data = bytes_of(array);
    return argument;
  }
  if (tensor->read_only && argument.access != Access::read)
    throw UserError("argument \"" + name + "\" is a read-only tensor, but its access is " + access);
  argument.fill.foreign = external_memory(*tensor, static_cast<std::size_t>(count) * size_of(argument.type));
  return argument;
}

constexpr const char* kAddBuffer =
    "An array; complex numbers are pairs of floats, bools are bytes, and any byte order is read.\n\n"
    "Parameters\n----------\nname : str\n    What verification and messages call it.\n"
    "array : numpy.ndarray, or an array with __cuda_array_interface__ or __dlpack__ (CuPy, PyTorch, JAX ...)\n"
    "    Its contents before each run, as they lie in memory: the kernel sees the columns of an array in Fortran's "
    "order\n"
    "    (numpy.asfortranarray) one after the other, and verification gets arrays of the same shape and order. Arrays "
    "in\n"
    "    the host's memory are copied now. A dense array on a GPU of CUDA's is\n"
    "    used where it is: kernels run in this process, one that they write is copied once on the GPU so that every "
    "run\n"
    "    begins with the same contents, and it holds those again when the session is over.\n"
    "access : {'read', 'write', 'read_write'}\n    Written buffers are verified.\n"
    "when : str or None\n    Where given, it is passed to the configurations for which this expression holds: "
    "arguments of\n"
    "    one place, each for other values of a parameter, have one after the other.\n\n"
    "Raises\n------\nUserError\n    For a type that kernels cannot have, and an array with gaps in memory (a slice of "
    "several dimensions).\nTypeError\n    For what is not an array.";

std::optional<Expression> condition(const py::object& when) {
  if (when.is_none()) return std::nullopt;
  return expression(when);
}

std::vector<Expression> expressions(const py::handle& list) {
  std::vector<Expression> out;
  if (list.is_none()) return out;
  if (py::isinstance<py::str>(list) || !py::isinstance<py::sequence>(list)) return {expression(list)};
  for (const auto& item : list) out.push_back(expression(item));
  return out;
}

/// Wraps a Python callable that takes the parameters as a dict, or with `by_name` those in `names` as separate
/// arguments.
std::function<py::object(const Scope&)> scoped_callable(const py::function& function,
                                                        const std::vector<std::string>& names, bool by_name = false) {
  const auto held = keep(function);
  return [held, names, by_name](const Scope& scope) {
    py::dict values;
    for (const auto& name : names)
      if (const Value* value = scope(name)) values[py::str(name)] = from_value(*value);
    return by_name ? (*held)(**values) : (*held)(values);
  };
}

/// Sets `names` to those of the parameters that a function takes by name; false if it takes a dict of them all. Raises
/// TypeError if it takes neither. `what` names it in messages.
bool takes_by_name(const py::object& function, std::vector<std::string>& names, const std::string& what) {
  const py::object wanted =
      py::module_::import("ergotune._callables.calling").attr("wanted_names")(function, names, what);
  if (wanted.is_none()) return false;
  names = wanted.cast<std::vector<std::string>>();
  return true;
}

/// What a function's results depend on, as ergotune._callables.identity finds it.
std::string identity_of_function(const py::function& function) {
  return py::module_::import("ergotune._callables.identity").attr("fingerprint")(function).cast<std::string>();
}

std::string place_of_lambda(const py::object& function) {
  return py::module_::import("ergotune._callables.session").attr("place_of_lambda")(function).cast<std::string>();
}

std::string class_name(RestrictionClass c) {
  return c == RestrictionClass::correctness    ? "correctness"
         : c == RestrictionClass::device_limit ? "device_limit"
                                               : "performance";
}

/// The exception of a function of parameters with its line and `what` before it.
[[noreturn]] void raise_named(py::error_already_set& error, const py::object& function, const std::string& what) {
  if (!error.matches(PyExc_Exception)) throw;  // the user's interruption
  const std::string why = described(error, function);
  py::raise_from(error, PyExc_ValueError, fmt::format("{}: {}", what, why).c_str());
  throw py::error_already_set();
}

/// What an exception of a restriction's function is preceded by: its name and what it was given.
std::string failed_restriction(const py::object& function, const std::string& name,
                               const std::vector<std::string>& names, bool by_name) {
  std::string given;
  if (!by_name) {
    given = fmt::format(", which was given a dict of {} since its argument is not a parameter", fmt::join(names, ", "));
    const auto argument =
        py::module_::import("ergotune._callables.calling").attr("only_argument")(function).cast<std::string>();
    if (!nearest_name(argument, names).empty()) given += fmt::format("; {}{}", argument, suggestion(argument, names));
  }
  return fmt::format("the restriction {}{}", name, given);
}

/// A restriction from an expression, or from a callable of the parameters defined so far.
Restriction restriction_from(const Problem& problem, const py::object& condition, const std::string& name,
                             const std::string& kind) {
  Restriction restriction;
  restriction.name = name;
  if (kind == "device_limit")
    restriction.restriction_class = RestrictionClass::device_limit;
  else if (kind == "performance")
    restriction.restriction_class = RestrictionClass::performance;
  else if (kind != "correctness")
    throw UserError("unknown restriction class \"" + kind + "\"" +
                    suggestion(kind, {"correctness", "device_limit", "performance"}));
  if (py::isinstance<py::str>(condition)) {
    restriction.expression = Expression::parse(condition.cast<std::string>());
    return restriction;
  }
  if (!py::isinstance<py::function>(condition) && !PyCallable_Check(condition.ptr()))
    throw py::type_error("a restriction is an expression or a function, not " +
                         py::repr(condition).cast<std::string>());
  std::vector<std::string> names = names_of(problem.parameters);
  const std::string called =
      name.empty() ? py::str(py::getattr(condition, "__name__", py::repr(condition))).cast<std::string>() : name;
  if (name.empty()) restriction.name = called + place_of_lambda(condition);
  const auto function = condition.cast<py::function>();
  const bool by_name = takes_by_name(function, names, "the restriction " + restriction.name);
  restriction.function_names = names;
  restriction.function_identity = identity_of_function(function);
  restriction.function = [call = scoped_callable(function, names, by_name), held = keep(function),
                          what = failed_restriction(condition, called, names, by_name)](const Scope& scope) {
    py::gil_scoped_acquire gil;
    try {
      return py::bool_(call(scope)).cast<bool>();
    } catch (py::error_already_set& error) {
      raise_named(error, *held, what);
    }
  };
  return restriction;
}

/// Throws TypeError for a problem with Python functions, which a document cannot contain.
void refuse_functions(const Problem& problem, const char* what) {
  for (const auto& restriction : problem.restrictions)
    if (restriction.function)
      throw py::type_error("a problem with a function as restriction (" + restriction.label() + ") cannot be " + what +
                           "; write the restriction as an expression");
  for (const auto& parameter : problem.parameters)
    if (parameter.generator)
      throw py::type_error("a problem whose parameter " + parameter.name +
                           " takes its values from a function cannot be " + what + "; use add_range or a list");
}

py::bytes pickled(const ProblemFile& problem) {
  refuse_functions(problem, "pickled");
  return serialise(problem);
}

ProblemFile unpickled(const py::bytes& state) { return deserialise(std::string(state)); }

py::object document_of(const ProblemFile& problem) {
  refuse_functions(problem, "written");
  return py::module_::import("json").attr("loads")(to_json(problem));
}

ProblemFile problem_from(const py::dict& document) {
  return load_json_problem(json_of(document),
                           document.contains("file") ? document["file"].cast<std::string>() : "problem.json");
}

using ProblemClass = py::class_<ProblemFile>;

/// Binds source, options and launch geometry.
void bind_kernel(ProblemClass& problem) {
  problem
      .def(
          "set_source",
          [](ProblemFile& p, const std::string& language, const std::string& text, const std::string& function,
             const std::filesystem::path& file, const std::vector<std::filesystem::path>& include_folders,
             const py::kwargs& attributes) {
            KernelSource source{language_from(language), file, text, {}};
            for (const auto& folder : include_folders)
              source.include_folders.push_back(std::filesystem::absolute(folder));
            if (!file.empty()) source.include_folders.push_back(std::filesystem::absolute(file).parent_path());
            std::erase_if(p.kernels.back().sources, [&](const auto& s) { return s.language == source.language; });
            p.kernels.back().sources.push_back(std::move(source));
            p.kernels.back().function = Template::parse(function);
            set_attributes(p.kernels.back(), to_constants(attributes));
          },
          py::arg("language"), py::arg("text"), py::arg("function"), py::arg("file") = "",
          py::arg("include_folders") = std::vector<std::filesystem::path>{},
          "The kernel's source, one per language (\"cuda\", \"hip\", \"opencl\", \"c\", \"c++\", \"fortran\"): the "
          "device chooses. `function`: its name,\nwith {{NAME}} for values. `file`: where the text is from, for "
          "messages and includes. Others: keys of [kernel] such as `description`.")
      .def(
          "set_launch",
          [](ProblemFile& p, py::object grid, py::object global, py::object block, py::object shared_memory_bytes,
             const py::kwargs& attributes) {
            Launch launch{expressions(grid), expressions(global), expressions(block), expression(shared_memory_bytes)};
            set_attributes(launch, to_constants(attributes));
            p.kernels.back().launch = std::move(launch);
          },
          py::arg("grid") = py::none(), py::arg("global_size") = py::none(), py::arg("block") = py::none(),
          py::arg("shared_memory_bytes") = 0,
          "The launch, by numbers or expressions, one per dimension: `block` is the size of a block (work-group); "
          "`grid` counts blocks\n(CUDA's <<<grid, block>>>), `global_size` work items (OpenCL's), which is rounded up "
          "to whole blocks: give one of them.\n`shared_memory_bytes`: dynamic shared memory per block. Others: keys of "
          "[kernel.launch] such as `description`.")
      .def(
          "add_options",
          [](ProblemFile& p, const std::vector<std::string>& options, const std::string& language) {
            const std::string key = language.empty() ? language : to_string(language_from(language));
            for (const auto& option : options) p.kernels.back().options[key].push_back(Template::parse(option));
          },
          py::arg("options"), py::arg("language") = "",
          "Options of the compiler, with {{NAME}} for values of parameters; of one language, or of all.");
}

/// Binds the kernel's arguments.
void bind_arguments(ProblemClass& problem) {
  problem
      .def(
          "add_buffer",
          [](ProblemFile& p, const std::string& name, const py::object& array, const std::string& access,
             const py::object& when) {
            Argument argument = buffer_argument(name, array, access);
            argument.when = condition(when);
            p.kernels.back().arguments.push_back(std::move(argument));
          },
          py::arg("name"), py::arg("array"), py::arg("access") = "read", py::arg("when") = py::none(), kAddBuffer)
      .def(
          "add_scalar",
          [](ProblemFile& p, const std::string& name, py::handle value, const std::string& type,
             const py::object& when) {
            Argument argument;
            argument.when = condition(when);
            argument.kind = Argument::Kind::scalar;
            argument.name = name;
            if (py::isinstance<py::bytes>(value)) {
              for (const unsigned char byte : value.cast<std::string>())
                argument.fields.push_back({fmt::format("byte_{}", argument.fields.size()), ElementType::uint8,
                                           expression(py::int_(static_cast<int>(byte)))});
            } else {
              const auto element = element_type(type);
              if (!element) throw UserError("unknown scalar type \"" + type + "\"");
              argument.type = *element;
              argument.value = expression(value);
            }
            p.kernels.back().arguments.push_back(std::move(argument));
          },
          py::arg("name"), py::arg("value"), py::arg("type"), py::arg("when") = py::none(),
          "A number, an expression of the parameters, or the bytes of a structure (then `type` has no effect). `when`: "
          "as that of add_buffer.")
      .def(
          "add_local_memory",
          [](ProblemFile& p, const std::string& name, py::handle count, const std::string& type) {
            Argument argument;
            argument.kind = Argument::Kind::local_memory;
            argument.name = name;
            const auto element = element_type(type);
            if (!element) throw UserError("unknown type \"" + type + "\" of the local memory \"" + name + "\"");
            argument.type = *element;
            argument.count = expression(count);
            p.kernels.back().arguments.push_back(std::move(argument));
          },
          py::arg("name"), py::arg("count"), py::arg("type") = "float32",
          "An argument of OpenCL's __local memory: `count` elements, a number or an expression.");
}

constexpr const char* kAddParameter =
    "A parameter of the code: a macro in the source, a name in expressions.\n\n"
    "Parameters\n----------\nname : str\n    Letters, digits and _.\nvalues : iterable of bool, int, float or str\n"
    "    Each once.\ndefault : value or None\n    What tuning is compared with; None: the first value.";

/// Binds parameters and restrictions.
void bind_parameters(ProblemClass& problem) {
  problem
      .def(
          "observe", [](ProblemFile& p, const std::string& text) { ask_for_observer(p.observers, text); },
          py::arg("observer"), "An observer by name and options, as --observe takes it: \"energy:seconds=2\".")
      .def(
          "add_parameter",
          [](ProblemFile& p, const std::string& name, const py::iterable& values, py::object default_value) {
            if (py::isinstance<py::str>(values) || py::isinstance<py::bytes>(values))
              throw py::type_error("the values of \"" + name + "\" are a list, not one text: write [" +
                                   py::repr(values).cast<std::string>() + "]");
            Parameter parameter;
            parameter.name = name;
            for (const auto& value : values) parameter.values.push_back(to_value(value));
            if (!default_value.is_none()) parameter.default_value = to_value(default_value);
            p.parameters.push_back(std::move(parameter));
          },
          py::arg("name"), py::arg("values"), py::arg("default") = py::none(), kAddParameter)
      .def(
          "add_range",
          [](ProblemFile& p, const std::string& name, py::handle start, py::handle stop, py::handle step) {
            Parameter parameter;
            parameter.name = name;
            parameter.range = DependentRange{expression(start), expression(stop), expression(step)};
            p.parameters.push_back(std::move(parameter));
          },
          py::arg("name"), py::arg("start"), py::arg("stop"), py::arg("step") = 1,
          "A parameter with the values of Python's range(start, stop, step); each may be an expression of earlier "
          "parameters.")
      .def(
          "add_generator",
          [](ProblemFile& p, const std::string& name, const py::function& function) {
            std::vector<std::string> earlier = names_of(p.parameters);
            const std::string what = "the values of the parameter " + name;
            const bool by_name = takes_by_name(function, earlier, what);
            Parameter parameter;
            parameter.name = name;
            parameter.generator = [call = scoped_callable(function, earlier, by_name), held = keep(function),
                                   what](const Scope& scope) {
              py::gil_scoped_acquire gil;
              std::vector<Value> values;
              try {
                for (const auto& value : call(scope)) values.push_back(to_value(value));
              } catch (py::error_already_set& error) {
                raise_named(error, *held, what);
              } catch (const py::type_error& error) {
                throw py::type_error(fmt::format("{}: {}", what, error.what()));
              }
              return values;
            };
            parameter.generator_identity = identity_of_function(function);
            p.parameters.push_back(std::move(parameter));
          },
          py::arg("name"), py::arg("function"),
          "A parameter whose values `function` returns: its arguments are parameters declared before it by name, or "
          "one "
          "argument of another name is\na dict of them.")
      .def(
          "restrict",
          [](ProblemFile& p, const py::object& condition, const std::string& name, const std::string& kind) {
            p.restrictions.push_back(restriction_from(p, condition, name, kind));
          },
          py::arg("condition"), py::arg("name") = "", py::arg("kind") = "correctness",
          "A condition: an expression, a function whose arguments are parameters by name (others need a default), or a "
          "function of one argument\nof another name, which is given a dict of those declared so far.");
}

/// Binds the objective, metrics and verification.
void bind_goal(ProblemClass& problem) {
  problem
      .def(
          "add_metric",
          [](ProblemFile& p, const std::string& name, const std::string& text, const std::string& unit) {
            p.metrics.push_back({name, Expression::parse(text), unit});
          },
          py::arg("name"), py::arg("expression"), py::arg("unit") = "",
          "A value computed from quantities, parameters and constants, for reports and objectives: "
          "add_metric(\"gflops\", \"2 * n / time / 1e9\", \"GFLOP/s\").")
      .def(
          "set_constants", [](ProblemFile& p, const py::dict& constants) { p.constants = to_constants(constants); },
          py::arg("constants"), "Names with one value, such as sizes: macros in the source, and names in expressions.")
      .def(
          "set_verification",
          [](ProblemFile& p, const std::string& kind, std::optional<double> absolute, double relative,
             const std::map<std::string, std::filesystem::path>& files) {
            if (kind == "none")
              p.verification.kind = Verification::Kind::none;
            else if (kind == "first_correct")
              p.verification.kind = Verification::Kind::first_correct;
            else if (kind == "files")
              p.verification.kind = Verification::Kind::files;
            else
              throw UserError("unknown verification \"" + kind + "\"" +
                              suggestion(kind, {"none", "first_correct", "files"}));
            p.verification.absolute_tolerance = absolute;
            p.verification.relative_tolerance = relative;
            p.verification.files = files;
          },
          py::arg("kind"), py::arg("absolute_tolerance") = py::none(), py::arg("relative_tolerance") = 1e-4,
          py::arg("files") = std::map<std::string, std::filesystem::path>{},
          "What outputs are compared with: \"first_correct\", those of the first configuration that runs, the default "
          "if it does; \"files\",\n`files` by argument, raw elements as numpy's tofile writes them; \"none\". Right is "
          "abs(x - expected) <= absolute + relative * abs(expected).\nA function that judges: "
          "ergotune.tune(verify=...).");
}

}  // namespace

Language language_from(const std::string& name) {
  if (name == "c++") return Language::cpp;
  for (auto language : {Language::cuda, Language::opencl, Language::hip, Language::c, Language::cpp, Language::fortran})
    if (to_string(language) == name) return language;
  throw UserError("unknown language \"" + name + "\"" +
                  suggestion(name, {"cuda", "opencl", "hip", "c", "c++", "fortran"}));
}

Access access_from(const std::string& name) {
  if (name == "read") return Access::read;
  if (name == "write") return Access::write;
  if (name == "read_write") return Access::read_write;
  throw UserError("unknown access \"" + name + "\"" + suggestion(name, {"read", "write", "read_write"}));
}

void bind_problem(py::module_& module) {
  ProblemClass problem(module, "Problem",
                       "What is tuned: source, arguments, launch geometry, parameters, restrictions.");
  problem
      .def(py::init([](const std::string& name, const py::kwargs& attributes) {
             ProblemFile problem;
             problem.name = name;
             set_attributes(problem, to_constants(attributes));
             return problem;
           }),
           py::arg("name"), "Others: keys of the whole file that have no function here, such as `description`.")
      .def_readwrite("name", &Problem::name)
      .def_readwrite("input_contents", &Problem::input_contents,
                     "A hash of what the arguments hold: where a session is continued with others, a note reports it.")
      .def_property_readonly(
          "attributes",
          [](const ProblemFile& p) {
            py::dict all;
            for (const auto& [name, value] : p.all_attributes()) all[py::str(name)] = from_value(value);
            return all;
          },
          "Values of the keys that the calls for the problem, its source and its launch accept by name, by their "
          "place: \"description\", \"kernel.launch.description\".")
      .def_property_readonly("parameter_names", [](const ProblemFile& p) { return names_of(p.parameters); })
      .def_property_readonly("restrictions",
                             [](const ProblemFile& p) {
                               py::list list;
                               for (const auto& r : p.restrictions)
                                 list.append(py::make_tuple(r.label(), class_name(r.restriction_class)));
                               return list;
                             })
      .def_property(
          "objective", [](const ProblemFile& p) { return p.objective.text; },
          [](ProblemFile& p, const std::string& text) { p.objective = {.text = text}; })
      .def(py::pickle(&pickled, &unpickled))
      .def("to_dict", &document_of,
           "The problem as the dict that a JSON problem file holds: sources included, paths absolute; settings of the "
           "run in \"tune\".\nRaises TypeError where a restriction or a parameter is a function.")
      .def_static("from_dict", &problem_from, py::arg("document"),
                  "The problem of such a dict (the page \"The problem file\"). Relative paths start from the working "
                  "directory.\n"
                  "Raises UserError.")
      .def(
          "to_t1", [](const ProblemFile& p) { return to_t1_json(p); }, "The problem as T1 JSON text.")
      .def("__repr__", [](const ProblemFile& p) { return "<ergotune.Problem " + p.name + ">"; });
  bind_kernel(problem);
  bind_arguments(problem);
  bind_parameters(problem);
  bind_goal(problem);
  bind_workload(module, problem);
  module.def("load_problem", &load_problem_or_recording, py::arg("file"), py::arg("device") = "",
             "Reads a problem file: TOML, the same in JSON, T1 or plain JSON. With a device \"replay:FILE\" also the "
             "problem that a\nrecording holds. Raises UserError with the place of a mistake.");
  module.def(
      "draft_problem",
      [](const std::filesystem::path& source, const std::string& kernel, const std::filesystem::path& folder,
         const std::filesystem::path& host, const std::vector<std::filesystem::path>& include_folders) {
        const ProblemDraft draft = draft_problem(source, kernel, folder, host, include_folders);
        return py::make_tuple(draft.text, draft.kernel, draft.questions);
      },
      py::arg("source"), py::arg("kernel"), py::arg("folder"), py::arg("host"), py::arg("include_folders"));
  module.def("parse_problem", &parse_problem, py::arg("text"), py::arg("file") = "problem.toml");
}

}  // namespace ergotune::python
