// Defines the extension module ergotune._core.
#include <string>

#include "base/extensions.hpp"
#include "bindings.hpp"
#include "ergotune/error.hpp"
#include "tensors.hpp"

namespace {

/// NumPy 2 has another layout of element types, which pybind11 supports since 2.12; with an older pybind11, all arrays
/// would have elements of 0 bytes.
void refuse_a_numpy_that_is_too_new() {
  namespace py = pybind11;
  if (PYBIND11_VERSION_HEX >= 0x020C0000) return;
  const auto version = py::module_::import("numpy").attr("__version__").cast<std::string>();
  if (std::stoi(version) < 2) return;
  throw py::import_error("this build of ergotune reads the arrays of NumPy 1 only, and NumPy " + version +
                         " is here: build it with pybind11 2.12 or newer (cmake -Dpybind11_DIR=$(python3 -m pybind11 "
                         "--cmakedir)), or pip install \"numpy<2\"");
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  using namespace ergotune;
  refuse_a_numpy_that_is_too_new();
  register_extensions();
  module.doc() = "The native half of ergotune. Units are SI: s, J, W, Hz.";
  namespace py = pybind11;
  // Replaces pybind11's own messages, which address authors of bindings.
  py::register_exception_translator([](std::exception_ptr failure) {
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const py::cast_error& error) {
      const std::string message = error.what();
      const auto begin = message.find("<class"), end = message.find('>', begin);
      PyErr_SetString(PyExc_TypeError,
                      ("a value of another type is expected here" +
                       (end == std::string::npos ? "" : ", not one of " + message.substr(begin, end + 1 - begin)))
                          .c_str());
    }
  });
  py::register_exception<Error>(module, "Error", PyExc_RuntimeError);
  py::register_exception<UserError>(module, "UserError", module.attr("Error").ptr());
  python::bind_problem(module);
  python::bind_tensors(module);
  python::bind_space(module);
  python::bind_quantities(module);
  python::bind_devices(module);
  python::bind_energy(module);
  python::bind_search(module);
  python::bind_store(module);
  python::bind_tuning(module);
  python::bind_callables(module);
}
