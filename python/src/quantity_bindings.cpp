// Binds the table of quantities.
#include "bindings.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune::python {

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
