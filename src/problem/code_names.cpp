#include "problem/code_names.hpp"

#include <algorithm>

#include "ergotune/problem/quantity.hpp"

namespace ergotune {

std::vector<std::string> code_names_in(const Problem& problem, const Restriction& restriction) {
  std::vector<std::string> names;
  if (restriction.function) return names;
  for (const std::string& name : restriction.expression.names()) {
    const QuantityInfo* info = quantity_info(name);
    if (!info || info->producer != Producer::compiler || problem.constants.contains(name)) continue;
    const bool parameter = std::any_of(problem.parameters.begin(), problem.parameters.end(),
                                       [&, wanted = name](const Parameter& p) { return p.name == wanted; });
    const bool of_a_device = std::any_of(problem.constants_by_device.begin(), problem.constants_by_device.end(),
                                         [&, wanted = name](const auto& device) { return device.second.contains(wanted); });
    if (!parameter && !of_a_device) names.push_back(name);
  }
  return names;
}

std::vector<Restriction> restrictions_of_space(const Problem& problem) {
  std::vector<Restriction> list;
  for (const Restriction& restriction : problem.restrictions)
    if (code_names_in(problem, restriction).empty()) list.push_back(restriction);
  return list;
}

}  // namespace ergotune
