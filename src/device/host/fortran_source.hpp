// Reads the interface of a procedure from Fortran source, as far as a call needs it.
#pragma once

#include <string>
#include <vector>

namespace ergotune::host {

struct FortranProcedure {
  std::string name;    ///< in lower case; empty: the source has no such procedure
  std::string module;  ///< module that contains it; empty: none
  std::vector<std::string> dummies;
  std::vector<std::string> by_value;
  bool function = false;
  std::string returns;  ///< "float" or "double"; empty: any other type
};

/// `name`: name of the procedure, or the name given by bind(c, name="..."); case-insensitive.
FortranProcedure procedure_in(const std::string& source, const std::string& name);

/// Converts to lower case, in which Fortran names are compared.
std::string lower(std::string text);
bool has(const std::vector<std::string>& names, const std::string& name);

}  // namespace ergotune::host
