// Python callables in the places of C++ ones.
#pragma once

#include <atomic>
#include <functional>

#include "bindings.hpp"
#include "ergotune/observer.hpp"
#include "measure/runner.hpp"

namespace ergotune::python {

/// An object with the hooks of ergotune.Observer (or of Kernel Tuner's observers).
std::shared_ptr<Observer> python_observer(const py::object& object);
/// verify(actual, expected): dicts of arrays by argument name; expected is empty where there is no reference.
Verifier python_verifier(const py::function& function);
/// metrics(configuration, measurement): a dict of further metrics.
std::function<void(Measurement&, const Configuration&)> python_metrics(const py::object& function,
                                                                       std::vector<Parameter> parameters);

/// Set by Ctrl-C, and by a callable that raises KeyboardInterrupt or SystemExit: sessions end with what they have.
extern std::atomic<bool> interrupted;
/// Notes it where a callable raised one of these.
void note_interruption(const py::error_already_set& error);
/// Raises what a callable of this session raised to end it; nothing otherwise. With the GIL held.
void raise_interruption();

}  // namespace ergotune::python
