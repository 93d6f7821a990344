// What the binding files share: conversions between Python objects and ergotune's values. Python objects are only
// touched with the GIL held; callbacks from C++ take it themselves.
#pragma once

#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>
#include <nlohmann/json_fwd.hpp>

#include "ergotune/problem_file.hpp"
#include "ergotune/result.hpp"
#include "ergotune/space.hpp"

namespace ergotune::python {

namespace py = pybind11;

/// bool, int, float, str and NumPy's scalars of these; raises TypeError for anything else.
Value to_value(py::handle object);
py::object from_value(const Value& value);
std::map<std::string, Value> to_values(const py::dict& dict);
Constants to_constants(const py::dict& dict);
std::vector<std::string> names_of(const std::vector<Parameter>& parameters);
/// {"name": value}
py::dict named(const std::vector<Parameter>& parameters, const Configuration& configuration);
/// From a dict with every parameter, or a sequence in their order.
Configuration to_configuration(const std::vector<Parameter>& parameters, py::handle object);
/// A document as dicts, lists and values.
py::object from_json(const nlohmann::ordered_json& document);
/// A measurement as plain Python: {"status", "message", "quantities": {name: {"value", ...}}, "metrics", ...}
py::dict to_dict(const Measurement& measurement);

/// A callback's reference to a Python object, released with the GIL held whichever thread drops it last.
std::shared_ptr<py::object> keep(py::object object);

/// Strategies written in Python share this space instead of a copy.
void remember_space(const std::shared_ptr<const SearchSpace>& space);

/// What settings by name do to a problem, as the command's options do.
void adapt_problem(ProblemFile& problem, const py::dict& given);
/// "read", "write", "read_write". Throws UserError.
Access access_from(const std::string& name);

/// "cuda", "opencl", "c" ... Throws UserError.
Language language_from(const std::string& name);

void bind_problem(py::module_& module);
/// As JSON; numbers of NumPy are numbers.
std::string json_of(const py::object& object);
/// Several kernels; called by bind_problem.
void bind_workload(py::module_& module, py::class_<ProblemFile>& problem);
/// Rounds taken apart, and what is attributed to kernels.
void bind_apart(py::module_& module);
/// Python callables as kernels.
void bind_callables(py::module_& module);
void bind_space(py::module_& module);
void bind_quantities(py::module_& module);
void bind_devices(py::module_& module);
void bind_energy(py::module_& module);
void bind_search(py::module_& module);
/// Rows of ergotune.kernel_tuner.
void bind_rows(py::module_& module);
void bind_store(py::module_& module);
void bind_tuning(py::module_& module);

}  // namespace ergotune::python
