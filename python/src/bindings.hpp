// Shared by the binding files: conversions between Python objects and ergotune's values. Python objects are used only
// with the GIL held; callbacks from C++ acquire it.
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

namespace ergotune {
struct RankedResults;
}

namespace ergotune::python {

namespace py = pybind11;

/// Accepts bool, int, float, str and the corresponding NumPy scalars; raises TypeError for anything else.
Value to_value(py::handle object);
py::object from_value(const Value& value);
std::map<std::string, Value> to_values(const py::dict& dict);
Constants to_constants(const py::dict& dict);
std::vector<std::string> names_of(const std::vector<Parameter>& parameters);
/// {"name": value}
py::dict named(const std::vector<Parameter>& parameters, const Configuration& configuration);
/// `object`: a dict with all parameters, or a sequence in their order.
Configuration to_configuration(const std::vector<Parameter>& parameters, py::handle object);
/// Converts a JSON document to dicts, lists and values.
py::object from_json(const nlohmann::ordered_json& document);
/// The JSON document that `work` returns, made without the GIL, as dicts, lists and values.
template <class Work>
py::object make_document(Work work) {
  const auto document = [&] {
    const py::gil_scoped_release released;
    return work();
  }();
  return from_json(document);
}
/// A measurement as a dict: {"status", "message", "quantities": {name: {"value", ...}}, "metrics", ...}
py::dict to_dict(const Measurement& measurement);

/// Adds all rows of a session to its document.
void add_rows(py::dict& document, const RankedResults& ranked);

/// Holds a reference to a Python object, which is released with the GIL held on whichever thread drops it last.
std::shared_ptr<py::object> keep(py::object object);

/// Lets strategies written in Python share this space instead of copying it.
void remember_space(const std::shared_ptr<const SearchSpace>& space);

/// Applies settings by name to a problem, like the command's options.
void adapt_problem(ProblemFile& problem, const py::dict& given);
/// Parses "read", "write" or "read_write". Throws UserError for another name.
Access access_from(const std::string& name);

/// Parses "cuda", "opencl", "c" ... Throws UserError for another name.
Language language_from(const std::string& name);

void bind_problem(py::module_& module);
/// An object as JSON; NumPy's numbers are accepted.
std::string json_of(const py::object& object);
/// Binds problems with several kernels; called by bind_problem.
void bind_workload(py::module_& module, py::class_<ProblemFile>& problem);
/// Binds Python callables as kernels.
void bind_callables(py::module_& module);
void bind_space(py::module_& module);
void bind_quantities(py::module_& module);
void bind_devices(py::module_& module);
void bind_energy(py::module_& module);
void bind_search(py::module_& module);
void bind_store(py::module_& module);
void bind_tuning(py::module_& module);

}  // namespace ergotune::python
