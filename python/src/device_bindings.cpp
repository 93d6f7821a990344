// Devices as dicts, and their clocks and limits.
#include <nlohmann/json.hpp>

#include "api/clocks.hpp"
#include "bindings.hpp"
#include "device/device.hpp"
#include "ergotune/error.hpp"

namespace ergotune::python {
namespace {

py::dict device_dict(const DeviceInfo& info) {
  py::dict out, properties;
  for (const auto& [name, value] : info.properties) properties[py::str(name)] = from_value(value);
  out["id"] = info.id;
  out["name"] = info.name;
  out["uuid"] = info.uuid.empty() ? py::object(py::none()) : py::str(info.uuid);
  out["backend"] = info.backend;
  out["properties"] = properties;
  return out;
}

/// A setting that holds until it is closed, or the object goes.
class HeldSetting {
 public:
  HeldSetting(const std::optional<std::string>& control, const std::map<std::string, double>& values, bool take_over) {
    ControlSetting setting;
    for (const auto& [name, value] : values) setting[*control_quantity_from(name)] = value;
    session_ = hold_setting(chosen_control(control), setting, take_over, "a Python program");
  }
  std::vector<std::string> notes() const { return session_->notes(); }
  void close() {
    const RestoreReport report = session_->finish();
    if (!report.complete) throw Error(description_of(report));
  }

 private:
  std::unique_ptr<ControlSession> session_;
};

}  // namespace

void bind_devices(py::module_& module) {
  module.def("device", [](const std::string& id) {
    DeviceInfo info;
    {
      py::gil_scoped_release released;
      info = devices_named(id).front();
    }
    return device_dict(info);
  });
  module.def("devices", [] {
    std::vector<DeviceInfo> found;
    {
      py::gil_scoped_release released;
      found = list_devices();
    }
    py::list list;
    for (const auto& info : found) list.append(device_dict(info));
    return list;
  });
  py::class_<HeldSetting>(module, "HeldSetting")
      .def(py::init<const std::optional<std::string>&, const std::map<std::string, double>&, bool>(),
           py::arg("control"), py::arg("values"), py::arg("take_over"), py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("notes", &HeldSetting::notes)
      .def("close", &HeldSetting::close, py::call_guard<py::gil_scoped_release>());
  module.def(
      "clock_status",
      [](const std::string& control) {
        return make_document([&] { return clock_status_document(clock_status(control)); });
      },
      py::arg("control"));
  module.def("restore_clocks",
             [] { return make_document([&] { return restored_clocks_document(restore_clocks()); }); });
}

}  // namespace ergotune::python
