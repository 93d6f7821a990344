// The extension module ergotune._core.
#include "bindings.hpp"
#include "ergotune/base/error.hpp"
#include "tensors.hpp"

PYBIND11_MODULE(_core, module) {
  using namespace ergotune;
  module.doc() = "The native half of ergotune. Units are SI: s, J, W, Hz.";
  namespace py = pybind11;
  py::register_exception<Error>(module, "Error", PyExc_RuntimeError);
  py::register_exception<UserError>(module, "UserError", module.attr("Error").ptr());
  python::bind_problem(module);
  python::bind_tensors(module);
  python::bind_space(module);
  python::bind_quantities(module);
  python::bind_devices(module);
  python::bind_search(module);
  python::bind_rows(module);
  python::bind_store(module);
  python::bind_tuning(module);
  python::bind_apart(module);
}
