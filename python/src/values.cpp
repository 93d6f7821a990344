#include <cmath>
#include <nlohmann/json.hpp>

#include "bindings.hpp"
#include "ergotune/error.hpp"

namespace ergotune::python {

Value to_value(py::handle object) {
  if (py::isinstance<py::bool_>(object)) return object.cast<bool>();
  if (py::isinstance<py::str>(object)) return object.cast<std::string>();
  if (py::isinstance<py::int_>(object)) {
    const long long whole = PyLong_AsLongLong(object.ptr());
    if (whole == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      throw UserError("the number " + py::str(object).cast<std::string>() + " does not fit in 64 bits");
    }
    return static_cast<std::int64_t>(whole);
  }
  if (py::isinstance<py::float_>(object)) return object.cast<double>();
  if (py::hasattr(object, "item") && !py::isinstance<py::dict>(object)) return to_value(object.attr("item")());
  throw py::type_error("a parameter value must be a bool, int, float or str, not " +
                       py::str(py::type::of(object)).cast<std::string>());
}

py::object from_value(const Value& value) {
  if (value.is_bool()) return py::bool_(value.truthy());
  if (value.is_integer()) return py::int_(value.as_integer());
  if (value.is_real()) return py::float_(value.as_real());
  return py::str(value.as_string());
}

std::map<std::string, Value> to_values(const py::dict& dict) {
  std::map<std::string, Value> values;
  for (const auto& [key, value] : dict) values[py::str(key).cast<std::string>()] = to_value(value);
  return values;
}

Constants to_constants(const py::dict& dict) {
  Constants constants;
  for (const auto& [name, value] : to_values(dict)) constants[name] = value;
  return constants;
}

std::vector<std::string> names_of(const std::vector<Parameter>& parameters) {
  std::vector<std::string> names;
  for (const auto& parameter : parameters) names.push_back(parameter.name);
  return names;
}

py::dict named(const std::vector<Parameter>& parameters, const Configuration& configuration) {
  py::dict dict;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    dict[py::str(parameters[i].name)] = from_value(configuration.at(i));
  return dict;
}

Configuration to_configuration(const std::vector<Parameter>& parameters, py::handle object) {
  Configuration configuration;
  if (py::isinstance<py::dict>(object)) {
    const auto dict = object.cast<py::dict>();
    for (const auto& parameter : parameters) {
      if (!dict.contains(parameter.name.c_str()))
        throw UserError("the configuration has no value for parameter \"" + parameter.name + "\"");
      configuration.push_back(to_value(dict[parameter.name.c_str()]));
    }
    return configuration;
  }
  for (const auto& item : object) configuration.push_back(to_value(item));
  if (configuration.size() != parameters.size())
    throw UserError("a configuration needs " + std::to_string(parameters.size()) + " values, one per parameter, not " +
                    std::to_string(configuration.size()));
  return configuration;
}

/// Decodes messages of compilers and programs, which may contain any bytes.
static py::str decoded(const std::string& text) {
  PyObject* str = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (!str) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(str);
}

py::object from_json(const nlohmann::ordered_json& document) {
  if (document.is_object()) {
    py::dict dict;
    for (const auto& [name, value] : document.items()) dict[decoded(name)] = from_json(value);
    return dict;
  }
  if (document.is_array()) {
    py::list list;
    for (const auto& value : document) list.append(from_json(value));
    return list;
  }
  if (document.is_string()) return decoded(document.get_ref<const std::string&>());
  if (document.is_boolean()) return py::bool_(document.get<bool>());
  if (document.is_number_float()) return py::float_(document.get<double>());
  if (document.is_number_unsigned()) return py::int_(document.get<std::uint64_t>());
  if (document.is_number()) return py::int_(document.get<std::int64_t>());
  return py::none();
}

py::dict to_dict(const Measurement& m) {
  py::dict quantities, metrics, half_widths, out;
  for (const auto& [name, q] : m.quantities) {
    py::dict quantity;
    quantity["value"] = q.value;
    quantity["standard_error"] = q.standard_error;
    quantity["half_width"] = q.half_width();
    quantity["n"] = q.n;
    quantity["method"] = q.method;
    quantity["sensor"] = q.sensor.empty() ? py::object(py::none()) : py::str(q.sensor);
    quantity["provenance"] = to_string(q.provenance);
    quantities[py::str(name)] = quantity;
  }
  for (const auto& [name, value] : m.metrics) {
    metrics[py::str(name)] = value;
    const double half_width = m.half_width(name);
    half_widths[py::str(name)] = std::isnan(half_width) ? py::object(py::none()) : py::float_(half_width);
  }
  out["status"] = to_string(m.status);
  out["message"] = decoded(m.message);
  out["quantities"] = quantities;
  out["metrics"] = metrics;
  out["metric_half_widths"] = half_widths;
  py::list warnings;
  for (const std::string& warning : m.warnings) warnings.append(decoded(warning));
  out["warnings"] = warnings;
  out["times"] = m.times;
  out["compile_seconds"] = m.compile_seconds;
  out["verify_seconds"] = m.verify_seconds;
  out["measure_seconds"] = m.measure_seconds;
  out["tuner_seconds"] = m.tuner_seconds;
  out["finished_at"] = m.finished_at;
  return out;
}

std::shared_ptr<py::object> keep(py::object object) {
  return {new py::object(std::move(object)), [](py::object* held) {
            // Registered strategies are in a static list that may outlive the interpreter: then there is nothing to
            // release.
            if (!Py_IsInitialized()) return;
            py::gil_scoped_acquire gil;
            delete held;
          }};
}

}  // namespace ergotune::python
