// Parameters in a line.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune::test {

inline Parameter listed(std::string name, std::vector<Value> values, ParameterKind kind = ParameterKind::code) {
  Parameter parameter;
  parameter.name = std::move(name);
  parameter.values = std::move(values);
  parameter.kind = kind;
  return parameter;
}

/// `count` numbers from `first` on.
inline Parameter counted(std::string name, int count, int first = 0) {
  std::vector<Value> values;
  for (int i = 0; i < count; ++i) values.emplace_back(first + i);
  return listed(std::move(name), std::move(values));
}

}  // namespace ergotune::test
