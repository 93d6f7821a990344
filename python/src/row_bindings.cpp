// Operations on Kernel Tuner's result rows, which are dicts; called for tens of thousands of rows in a simulation.
#include <cmath>

#include "bindings.hpp"

namespace ergotune::python {
namespace {

/// Returns a borrowed reference; null if the row lacks the key. Raises whatever comparing keys raises.
PyObject* find(PyObject* row, const py::str& key) {
  PyObject* found = PyDict_GetItemWithError(row, key.ptr());
  if (!found && PyErr_Occurred()) throw py::error_already_set();
  return found;
}

/// The value of a Python float or int; nullopt for any other object.
std::optional<double> number(PyObject* object) {
  if (!object || !(PyFloat_Check(object) || PyLong_Check(object))) return std::nullopt;
  const double value = PyFloat_AsDouble(object);
  if (value == -1 && PyErr_Occurred()) throw py::error_already_set();
  return value;
}

void put(PyObject* row, const py::str& key, const py::object& value) {
  if (PyDict_SetItem(row, key.ptr(), value.ptr()) != 0) throw py::error_already_set();
}

PyObject* checked(const py::handle& row) {
  if (!PyDict_Check(row.ptr())) throw py::type_error("a row must be a dict");
  return row.ptr();
}

py::tuple share_times(const py::list& rows, double strategy_time, double framework_time) {
  const py::str strategy("strategy_time"), framework("framework_time"),
      kinds[] = {"compile_time", "verification_time", "benchmark_time"};
  const py::float_ strategy_value(strategy_time), framework_value(framework_time);
  double sums[3] = {};
  for (const auto& item : rows) {
    PyObject* row = checked(item);
    for (int k = 0; k < 3; ++k) sums[k] += number(find(row, kinds[k])).value_or(0);
    put(row, strategy, strategy_value);
    put(row, framework, framework_value);
  }
  return py::make_tuple(sums[0], sums[1], sums[2]);
}

py::object best_row(const py::list& rows, const py::str& objective, bool higher) {
  const py::str error("__error__");
  PyObject* best = nullptr;
  double best_value = 0;
  for (const auto& item : rows) {
    PyObject* row = checked(item);
    const std::optional<double> value = number(find(row, objective));
    if (!value || std::isnan(*value) || find(row, error)) continue;
    if (best && !(higher ? *value > best_value : *value < best_value)) continue;
    best = row;
    best_value = *value;
  }
  return best ? py::reinterpret_borrow<py::object>(best) : py::object(py::none());
}

}  // namespace

void bind_rows(py::module_& module) {
  module.def("share_times", &share_times, py::arg("rows"), py::arg("strategy_time"), py::arg("framework_time"),
             "Gives every row these two times; sums of compile_time, verification_time and benchmark_time (ms).");
  module.def(
      "best_row", &best_row, py::arg("rows"), py::arg("objective"), py::arg("higher"),
      "The first row with the best number under `objective`, of those without __error__; None where there is none.");
}

}  // namespace ergotune::python
