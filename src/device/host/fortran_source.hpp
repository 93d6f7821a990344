// What the text of a Fortran source says of a procedure, as far as its call must know it.
#pragma once

#include <string>
#include <vector>

namespace ergotune::host {

struct FortranProcedure {
  std::string name;    ///< in lower case; empty where the text has no such procedure
  std::string module;  ///< the module that holds it; empty outside of modules
  std::vector<std::string> dummies;
  std::vector<std::string> by_value;
  bool function = false;
  std::string returns;  ///< "float", "double"; empty for anything else
};

/// `name`: the procedure's own, or the one that it is bound to (bind(c, name="...")), in any case.
FortranProcedure procedure_in(const std::string& source, const std::string& name);

/// In lower case, as Fortran compares names.
std::string lower(std::string text);
bool has(const std::vector<std::string>& names, const std::string& name);

}  // namespace ergotune::host
