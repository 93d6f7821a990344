#include "hooks.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <sstream>
#include <utility>

#include "base/statistics.hpp"
#include "measure/verify/output_check.hpp"

namespace ergotune::python {

std::atomic<bool> interrupted{false};

namespace {

PyObject* interruption = nullptr;  // the exception with which a callable ended the session; access requires the GIL

}  // namespace

/// An exception that ends the program is not a failure of one configuration.
void note_interruption(const py::error_already_set& error) {
  if (!error.matches(PyExc_KeyboardInterrupt) && !error.matches(PyExc_SystemExit)) return;
  if (interrupted && error.matches(PyExc_KeyboardInterrupt)) return;
  if (!interruption) interruption = error.value().inc_ref().ptr();
  interrupted = true;
}

bool InterruptibleCall::is_main() {
  static thread_local const bool main = ::gettid() == ::getpid();
  return main;
}

void InterruptibleCall::check() {
  if (interrupted && is_main() && PyErr_CheckSignals() != 0) throw py::error_already_set();
}

std::string described(const py::error_already_set& error, const py::object& function) {
  py::object value = error.value();
  if (error.trace()) value = value.attr("with_traceback")(error.trace());
  const py::module_ callables = py::module_::import("ergotune._callables.session");
  return callables.attr("describe")(value, function).cast<std::string>();
}

namespace {

/// A Python observer. get_results() is the same in Kernel Tuner's observers and ours: a dict of numbers or lists of
/// readings.
class PythonObserver : public Observer {
 public:
  explicit PythonObserver(py::object object)
      : object_(keep(object)), name_(py::str(py::type::of(object).attr("__name__"))) {
    const py::object wanted = py::getattr(object, "phase", py::none());
    if (py::isinstance<py::str>(wanted) && wanted.cast<std::string>() == "launches") phase_ = ObserverPhase::launches;
  }
  ObserverPhase phase() const override { return phase_; }
  std::string name() const override { return name_; }
  void register_configuration(const ObservedConfiguration& configuration) override {
    py::gil_scoped_acquire gil;
    if (!py::hasattr(*object_, "register_configuration")) return;
    py::dict values;
    for (std::size_t i = 0; i < configuration.names->size(); ++i)
      values[py::str((*configuration.names)[i])] = from_value((*configuration.values)[i]);
    object_->attr("register_configuration")(values);
  }
  void before_start() override { call("before_start"); }
  void after_start() override { call("after_start"); }
  void during() override { call("during"); }
  void after_finish() override { call("after_finish"); }
  std::map<std::string, Quantity> results() override {
    py::gil_scoped_acquire gil;
    std::map<std::string, Quantity> quantities;
    const py::dict results = object_->attr("get_results")();
    for (const auto& [key, value] : results) {
      Quantity q;
      q.method = "observer " + name_;
      q.n = 1;
      const bool text = py::isinstance<py::str>(value) || py::isinstance<py::bytes>(value);
      if (!text && (py::isinstance<py::sequence>(value) || py::isinstance<py::array>(value))) {
        RunningStatistics statistics;
        for (const auto& item : value)
          if (py::isinstance<py::float_>(item) || py::isinstance<py::int_>(item) || py::hasattr(item, "item"))
            statistics.add(to_value(item).as_real());
        if (statistics.count() == 0) continue;
        q.value = statistics.mean();
        q.standard_error = statistics.standard_error();
        q.n = static_cast<std::int64_t>(statistics.count());
        q.degrees = static_cast<double>(q.n - 1);
      } else if (py::isinstance<py::str>(value) || !(PyNumber_Check(value.ptr()))) {
        continue;  // quantities are numbers; ignore texts and tables
      } else {
        q.value = to_value(value).as_real();
      }
      quantities[py::str(key).cast<std::string>()] = q;
    }
    return quantities;
  }

 private:
  void call(const char* hook) {
    py::gil_scoped_acquire gil;
    try {
      object_->attr(hook)();
    } catch (py::error_already_set& error) {
      note_interruption(error);
      throw;
    }
  }
  std::shared_ptr<py::object> object_;
  std::string name_;
  ObserverPhase phase_ = ObserverPhase::repetitions;
};

/// An array with the type, shape and order of the given argument (seen_as_text() in problem_bindings.cpp).
py::array array_of(const Argument& argument, std::span<const std::byte> bytes) {
  std::istringstream words(argument.seen_as.empty() ? to_string(argument.type) : argument.seen_as);
  std::string type, order;
  words >> type >> order;
  const py::dtype dtype(type);
  const py::array out(dtype, bytes.size() / static_cast<std::size_t>(dtype.itemsize()));
  std::memcpy(const_cast<void*>(out.data()), bytes.data(), bytes.size());
  if (order.empty()) return out;
  const std::vector<std::int64_t> shape{std::istream_iterator<std::int64_t>(words), {}};
  return out.attr("reshape")(shape, py::arg("order") = order);
}

}  // namespace

void raise_interruption() {
  if (!interruption) return;
  const py::object raised = py::reinterpret_steal<py::object>(std::exchange(interruption, nullptr));
  PyErr_SetObject(py::type::of(raised).ptr(), raised.ptr());
  throw py::error_already_set();
}

std::shared_ptr<Observer> python_observer(const py::object& object) { return std::make_shared<PythonObserver>(object); }

Verifier python_verifier(const py::object& verify, const py::dict& settings) {
  if (verify.is_none()) return {};
  Verifier verifier = [held = keep(verify)](const std::vector<OutputView>& outputs, std::string& message, double&) {
    py::gil_scoped_acquire gil;
    py::dict actual, expected;
    for (const auto& output : outputs) {
      actual[py::str(output.argument->name)] = array_of(*output.argument, output.actual);
      if (!output.expected.empty())
        expected[py::str(output.argument->name)] = array_of(*output.argument, output.expected);
    }
    try {
      const py::object answer = (*held)(actual, expected);
      const bool right = py::bool_(answer).cast<bool>();
      if (!right)
        message = answer.is_none() ? "the verification function returned None: return True where the outputs are right"
                                   : "the verification function rejects the outputs";
      return right;
    } catch (py::error_already_set& error) {
      note_interruption(error);
      message = "the verification function raised " + described(error, *held);
      return false;
    }
  };
  if (!settings.contains("verify_identity")) return verifier;
  return IdentifiedVerifier{std::move(verifier), settings["verify_identity"].cast<std::string>()};
}

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// Values of the functions, in their order, kUnknown where one fails; each finds those before it in `row`. `failures`:
/// takes why.
std::vector<double> values_of(const py::dict& functions, const py::dict& row, std::vector<std::string>* failures) {
  const py::object call = py::module_::import("ergotune._callables.calling").attr("with_row");
  std::vector<double> values;
  for (const auto& [name, function] : functions) {
    std::string why;
    double value = kUnknown;
    try {
      const py::object returned = call(function, row);
      why = py::str("it is {!r}, not a number").format(returned).cast<std::string>();
      value = to_value(returned).as_real();
    } catch (py::error_already_set& error) {
      if (!error.matches(PyExc_Exception)) throw;
      why = described(error, py::reinterpret_borrow<py::object>(function));
    } catch (const std::exception&) {  // `why` is known
    }
    if (failures && std::isnan(value))
      failures->push_back(py::str("the metric {} has no value: {}").format(name, why).cast<std::string>());
    row[name] = value;
    values.push_back(value);
  }
  return values;
}

/// Metrics with their standard errors, as evaluate_metrics() propagates those of expressions: kUnknown where a function
/// fails on both sides of an input.
void evaluate_functions(const py::dict& functions, Measurement& measurement, const py::dict& configuration) {
  std::vector<std::string> names;
  for (const auto& function : functions) {
    const std::string& name = names.emplace_back(py::str(function.first));
    measurement.metrics.erase(name);
    measurement.metric_errors.erase(name);
    measurement.metric_degrees.erase(name);
  }
  const py::dict row = configuration;
  std::vector<std::string> uncertain;
  const auto take = [&](const std::string& name, double value) {
    row[py::str(name)] = value;
    const double error = measurement.standard_error(name);
    if (std::isfinite(value) && error > 0 && std::isfinite(error)) uncertain.push_back(name);
  };
  for (const auto& [name, quantity] : measurement.quantities) take(name, quantity.value);
  for (const auto& [name, value] : measurement.metrics)
    if (!measurement.quantities.contains(name)) take(name, value);
  std::vector<std::string> failures;
  const std::vector<double> values = values_of(functions, row.attr("copy")(), &failures);
  for (std::string& failure : failures)
    if (std::ranges::find(measurement.warnings, failure) == measurement.warnings.end())
      measurement.warnings.push_back(std::move(failure));
  const auto values_at = [&](const std::string& name, double value) {
    const py::dict moved = row.attr("copy")();
    moved[py::str(name)] = value;
    return values_of(functions, moved, nullptr);
  };
  std::vector<std::vector<ErrorEstimate>> terms(values.size());
  for (const std::string& name : uncertain) {
    const double centre = *measurement.value(name), error = measurement.standard_error(name);
    const std::vector<double> above = values_at(name, centre + error), below = values_at(name, centre - error);
    for (std::size_t i = 0; i < values.size(); ++i) {
      double term = std::abs(above[i] - below[i]) / 2;
      if (std::isnan(term)) term = std::abs((std::isnan(above[i]) ? below : above)[i] - values[i]);
      terms[i].push_back({term, measurement.degrees(name)});
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) continue;
    measurement.metrics[names[i]] = values[i];
    const ErrorEstimate error = combined_error(terms[i]);
    if (error.standard_error != 0) measurement.metric_errors[names[i]] = error.standard_error;
    if (error.degrees > 0) measurement.metric_degrees[names[i]] = error.degrees;
  }
}

}  // namespace

std::function<void(Measurement&, const Configuration&)> python_metrics(const py::object& given,
                                                                       std::vector<Parameter> parameters) {
  if (given.is_none()) return {};
  return [held = keep(given), parameters = std::move(parameters)](Measurement& measurement,
                                                                  const Configuration& configuration) {
    py::gil_scoped_acquire gil;
    if (py::isinstance<py::dict>(*held)) {
      evaluate_functions(*held, measurement, named(parameters, configuration));
      return;
    }
    const py::dict metrics = (*held)(named(parameters, configuration), to_dict(measurement));
    for (const auto& [name, value] : metrics)
      measurement.metrics[py::str(name).cast<std::string>()] = to_value(value).as_real();
  };
}

}  // namespace ergotune::python
