// [simulation]: properties of a kernel for a simulated device. Its names are checked where they are used
// (evaluate/recorded/simulated.hpp), as are the names in its expressions: they may use what the simulation works out.
#include "problem/files/toml_sections.hpp"

namespace ergotune::toml_reading {

std::map<std::string, Expression> read_simulation(const Table& table) {
  std::map<std::string, Expression> model;
  for (const Entry& entry : table.entries()) {
    if (entry.node->is_table()) {  // of one kernel: lud.flops
      const Table kernel = table.table(entry);
      for (const Entry& inner : kernel.entries())
        model[entry.key + "." + inner.key] =
            kernel.expression_of(*inner.node, "\"" + inner.key + "\" of " + kernel.title());
      continue;
    }
    model[entry.key] = table.expression_of(*entry.node, "\"" + entry.key + "\" of [simulation]");
  }
  return model;
}

}  // namespace ergotune::toml_reading
