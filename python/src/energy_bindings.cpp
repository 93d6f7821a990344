// Binds measuring the energy of regions of code.
#include <nlohmann/json.hpp>

#include "bindings.hpp"
#include "ergotune/energy_region.hpp"

namespace ergotune::python {

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

}  // namespace ergotune::python
