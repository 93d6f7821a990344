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
/// reference. `settings` may identify the function by "verify_identity". Empty if `verify` is None.
Verifier python_verifier(const py::object& verify, const py::dict& settings);
/// Wraps a dict of functions by name, each of a row of parameters, quantities and metrics, whose standard errors are
/// propagated; or metrics(configuration, measurement), which returns a dict of further metrics.
std::function<void(Measurement&, const Configuration&)> python_metrics(const py::object& given,
                                                                       std::vector<Parameter> parameters);

/// Set by Ctrl-C, and by a callable that raises KeyboardInterrupt or SystemExit: sessions then end with their results
/// so far.
extern std::atomic<bool> interrupted;
/// Sets `interrupted` and stores the exception if a callable raised one of these. A KeyboardInterrupt after Ctrl-C is
/// not stored.
void note_interruption(const py::error_already_set& error);
/// While one exists in the main thread, Ctrl-C raises KeyboardInterrupt in the callable that it runs. Requires the GIL.
class InterruptibleCall {
 public:
  InterruptibleCall() { running_ += is_main(); }
  ~InterruptibleCall() { running_ -= is_main(); }
  InterruptibleCall(const InterruptibleCall&) = delete;
  InterruptibleCall& operator=(const InterruptibleCall&) = delete;
  /// Throws the KeyboardInterrupt that the callable did not see before it ended.
  static void check();
  /// In a handler of signals.
  static void interrupt() {
    if (running_ > 0) PyErr_SetInterrupt();
  }

 private:
  static bool is_main();
  static inline std::atomic<int> running_{0};
};
/// The exception that a callable raised and its line, without the stack. Requires the GIL.
std::string described(const py::error_already_set& error, const py::object& function);
/// Raises the stored exception of a callable; returns if there is none. Requires the GIL.
void raise_interruption();

}  // namespace ergotune::python
