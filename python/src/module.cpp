// Defines the extension module ergotune._core.
#include <cctype>
#include <string>
#include <string_view>

#include "base/extensions.hpp"
#include "bindings.hpp"
#include "ergotune/error.hpp"
#include "problem/tables/setting_table.hpp"
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

/// A message with the keywords of Python in place of the command's options: "`sensors`" for "--sensor",
/// "`confirm=False`" for "--no-confirm". Command lines, which stand between backticks, stay.
std::string with_keywords(std::string_view message) {
  const auto keyword_of = [](std::string_view option) -> std::string {
    for (const ergotune::Setting& setting : ergotune::setting_table()) {
      if (option.empty() || setting.option.substr(setting.option.rfind(',') + 1) != option) continue;
      const auto* flag = std::get_if<bool ergotune::RunConfig::*>(&setting.member);
      const std::string value = !flag ? "" : ergotune::RunConfig().*(*flag) ? "=False" : "=True";
      return "`" + std::string(setting.name) + value + "`";
    }
    return {};
  };
  std::string text;
  bool is_command = false;
  while (!message.empty()) {
    std::size_t length = 1;
    std::string keyword;
    if (message.front() == '`') is_command = !is_command;
    if (!is_command && message.starts_with("--") && !text.ends_with('-')) {
      length = 2;
      while (length < message.size() &&
             (std::islower(static_cast<unsigned char>(message[length])) || message[length] == '-'))
        ++length;
      keyword = keyword_of(message.substr(0, length));
    }
    text += keyword.empty() ? std::string(message.substr(0, length)) : keyword;
    message.remove_prefix(length);
  }
  return text;
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
  static PyObject* user_error =
      py::register_exception<UserError>(module, "UserError", module.attr("Error").ptr()).ptr();
  py::register_exception_translator([](std::exception_ptr failure) {
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const UserError& error) {
      PyErr_SetString(user_error, with_keywords(error.what()).c_str());
    }
  });
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
