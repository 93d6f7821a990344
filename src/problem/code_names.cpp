#include "problem/code_names.hpp"

#include <algorithm>
#include <string_view>

#include "ergotune/problem.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune {

std::vector<std::string> code_names_in(const Problem& problem, const Restriction& restriction) {
  std::vector<std::string> names;
  if (restriction.function) return names;
  for (const std::string& name : restriction.expression.names()) {
    const QuantityInfo* info = quantity_info(name);
    if (!info || info->producer != Producer::compiler || problem.constants.contains(name)) continue;
    const bool parameter =
        std::ranges::any_of(problem.parameters, [&, wanted = name](const Parameter& p) { return p.name == wanted; });
    const bool of_a_device = std::ranges::any_of(
        problem.constants_by_device, [&, wanted = name](const auto& device) { return device.second.contains(wanted); });
    if (!parameter && !of_a_device) names.push_back(name);
  }
  return names;
}

bool names_instructions(const Problem& problem) {
  constexpr std::string_view kSign = "static_";
  const auto has = [&](const std::string& text) { return text.find(kSign) != text.npos; };
  const auto any = [&](const std::vector<std::string>& names) { return std::ranges::any_of(names, has); };
  return has(problem.objective.text) ||
         std::ranges::any_of(
             problem.restrictions,
             [&](const Restriction& restriction) { return any(code_names_in(problem, restriction)); }) ||
         std::ranges::any_of(problem.metrics, [&](const Metric& metric) { return any(metric.expression.names()); }) ||
         std::ranges::any_of(problem.plans, [&](const PlanSpec& plan) {
           return std::ranges::any_of(plan.stages, [&](const PlanStageSpec& stage) { return has(stage.objective); });
         });
}

std::vector<Restriction> restrictions_of_space(const Problem& problem) {
  std::vector<Restriction> list;
  for (const Restriction& restriction : problem.restrictions)
    if (code_names_in(problem, restriction).empty()) list.push_back(restriction);
  return list;
}

}  // namespace ergotune
