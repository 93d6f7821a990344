// Wraps Python callables as C++ hooks.
#pragma once

#include <atomic>
#include <functional>

#include "bindings.hpp"
#include "ergotune/observer.hpp"
#include "measure/runner.hpp"

namespace ergotune::python {

/// Wraps an object with the methods of ergotune.Observer (or of Kernel Tuner's observers).
std::shared_ptr<Observer> python_observer(const py::object& object);
/// Wraps verify(actual, expected), which receives dicts of arrays by argument name; `expected` is empty if there is no
/// reference.
Verifier python_verifier(const py::function& function);
/// Wraps a dict of functions by name, each of a row of parameters, quantities and metrics, whose standard errors are
/// propagated; or metrics(configuration, measurement), which returns a dict of further metrics.
std::function<void(Measurement&, const Configuration&)> python_metrics(const py::object& given,
                                                                       std::vector<Parameter> parameters);

/// Set by Ctrl-C, and by a callable that raises KeyboardInterrupt or SystemExit: sessions then end with their results
/// so far.
extern std::atomic<bool> interrupted;
/// Sets `interrupted` and stores the exception if a callable raised one of these.
void note_interruption(const py::error_already_set& error);
/// The exception that a callable raised and its line, without the stack. Requires the GIL.
std::string described(const py::error_already_set& error, const py::object& function);
/// Raises the stored exception of a callable; returns if there is none. Requires the GIL.
void raise_interruption();

}  // namespace ergotune::python
