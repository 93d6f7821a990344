// Binds devices as dicts.
#include "bindings.hpp"
#include "device/device.hpp"

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
}

}  // namespace ergotune::python
