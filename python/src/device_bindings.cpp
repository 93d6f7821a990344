// Devices as dicts, their clocks and limits, the energy of regions of code, and the table of quantities.
#include <nlohmann/json.hpp>

#include "api/clocks.hpp"
#include "bindings.hpp"
#include "device/device.hpp"
#include "ergotune/energy_region.hpp"
#include "ergotune/error.hpp"
#include "problem/tables/quantity.hpp"

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
  module.def("clock_status", [](const std::string& control) {
    return make_document([&] { return clock_status_document(clock_status(control)); });
  });
  module.def("restore_clocks",
             [] { return make_document([&] { return restored_clocks_document(restore_clocks()); }); });
}

void bind_energy(py::module_& module) {
  py::class_<EnergyMonitor>(module, "EnergyMonitor")
      .def(py::init<const std::vector<std::string>&>(), py::arg("sensors") = std::vector<std::string>(),
           py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("sensors", &EnergyMonitor::sensors)
      .def("measure_idle", &EnergyMonitor::measure_idle, py::arg("seconds") = 1.0,
           py::call_guard<py::gil_scoped_release>())
      .def("set_idle_power", &EnergyMonitor::set_idle_power, py::arg("watts"))
      .def("totals", [](const EnergyMonitor& monitor) {
        std::vector<RegionEnergy> totals;
        {
          py::gil_scoped_release released;
          totals = monitor.totals();
        }
        py::list list;
        for (const RegionEnergy& one : totals) list.append(from_json(nlohmann::ordered_json::parse(one.json())));
        return list;
      });
  py::class_<EnergyRegion>(module, "EnergyRegion")
      .def(py::init<const EnergyMonitor&, std::string>(), py::arg("monitor"), py::arg("name"))
      .def("end", &EnergyRegion::end)
      .def("energy", [](EnergyRegion& region) {
        std::string document;
        {
          py::gil_scoped_release released;
          document = region.energy().json();
        }
        return from_json(nlohmann::ordered_json::parse(document));
      });
}

void bind_quantities(py::module_& module) {
  module.def(
      "quantities",
      [] {
        py::dict all;
        for (const QuantityInfo& info : quantities()) {
          py::dict row;
          row["unit"] = info.unit;
          row["meaning"] = info.meaning;
          row["producer"] = to_string(info.producer);
          row["better"] = info.better ? py::object(py::str(*info.better == Direction::maximise ? "max" : "min"))
                                      : py::object(py::none());
          all[py::str(std::string(info.name))] = row;
        }
        return all;
      },
      "What ergotune measures by itself: {name: {\"unit\", \"meaning\", \"producer\", \"better\"}}.");
  module.def(
      "unit_of", [](const std::string& name) { return unit_of(name); }, py::arg("name"),
      "The unit of a quantity; empty where it has none or is unknown.");
}

}  // namespace ergotune::python
