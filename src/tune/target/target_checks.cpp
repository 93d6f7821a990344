#include "tune/target/target_checks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ergotune/error.hpp"
#include "measure/observers/observer_registry.hpp"
#include "problem/program.hpp"
#include "problem/tables/quantity.hpp"
#include "search/objective_text.hpp"

namespace ergotune {
namespace {

/// The names that the text of the objective itself contains.
std::vector<std::string> names_in(const ObjectiveSpec& spec) {
  const search::ObjectiveText text = search::parse_objective_text(spec);
  std::vector<std::string> names;
  const auto add = [&](const Expression& expression) {
    for (const std::string& name : expression.names())
      names.push_back(name.starts_with(search::kBestPrefix) ? name.substr(std::string_view(search::kBestPrefix).size())
                                                            : name);
  };
  for (const auto& term : text.terms) add(term.expression);
  for (const auto& condition : text.conditions) {
    add(condition.left);
    add(condition.right);
  }
  return names;
}

/// Throws UserError for a metric that names an unknown quantity and hence never has a value. Metrics that the objective
/// does not use may name quantities that are not measured this time (of an observer that was not requested), but no
/// unknown ones.
void refuse_empty_metrics(const Problem& problem, const std::vector<std::string>& said,
                          const std::vector<std::string>& observed, const Recording* recording) {
  std::vector<std::string> known = said;
  for (const auto& [name, value] : problem.constants) known.push_back(name);
  for (const auto& [device, values] : problem.constants_by_device)
    for (const auto& [name, value] : values) known.push_back(name);
  for (const Parameter& parameter : problem.parameters) known.push_back(parameter.name);
  if (recording)
    for (const Parameter& parameter : recording->parameters) known.push_back(parameter.name);
  if (!problem.execution_parameters.empty())
    known.insert(known.end(), {"core_clock_mhz", "memory_clock_mhz", "power_limit_w"});
  const auto knows = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  const auto refuse = [&](const Metric& metric, const std::string& name) {
    // the device's properties are known once it is open
    if (name.starts_with("device.") || knows(known, name)) return;
    throw UserError(fmt::format("metric \"{}\": there is no quantity, metric, constant or parameter \"{}\"{}",
                                metric.name, name, suggestion(name, known)),
                    metric.expression.place());
  };
  std::vector<std::string> needed = names_in(problem.objective);
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const std::string wanted = needed[i];
    const auto metric =
        std::find_if(problem.metrics.begin(), problem.metrics.end(), [&](const Metric& m) { return m.name == wanted; });
    if (metric == problem.metrics.end()) continue;
    for (const std::string& name : metric->expression.names()) {
      if (!knows(needed, name)) needed.push_back(name);
      refuse(*metric, name);
    }
  }
  for (const Metric& metric : problem.metrics)
    for (const std::string& name : metric.expression.names())
      if (!quantity_info(name) && observer_of(name).empty() && !knows(observed, name)) refuse(metric, name);
}

/// Whether these quantities are measured without being requested.
bool says(const Problem& problem, const QuantityInfo& info) {
  if (problem.program && (info.name == "idle_subtracted_energy" || info.name == "corrected_energy")) return false;
  switch (info.producer) {
    case Producer::observer:
      return false;
    case Producer::program:
      return problem.program != nullptr;
    case Producer::compiler:
    case Producer::verification:
      return problem.program == nullptr;
    default:
      return true;
  }
}

}  // namespace

void validate_objective_quantities(const SetupOptions& options, const Problem& problem, const Recording* recording) {
  if (!options.observers.empty()) return;  // the application's observers may add quantities that are unknown here
  std::vector<std::string> observed;
  for (const ObserverSpec& spec : problem.observers)
    for (std::string& name : quantities_of(spec)) observed.push_back(std::move(name));
  std::vector<std::string> said = observed;
  for (const QuantityInfo& info : quantities()) {
    if (says(problem, info)) said.emplace_back(info.name);
  }
  for (std::string& name : per_kernel_quantities(problem)) said.push_back(std::move(name));
  if (problem.program)
    for (const auto& [name, pattern] : problem.program->output) said.push_back(name);
  if (recording) {
    said.clear();
    for (const RecordedColumn& column : recording->columns) said.push_back(column.name);
  }
  for (const Metric& metric : problem.metrics) said.push_back(metric.name);
  said.insert(said.end(), options.further_metrics.begin(), options.further_metrics.end());
  refuse_empty_metrics(problem, said, observed, recording);
  const Objective objective = objective_of(problem, options.further_metrics);
  for (const std::string& name : objective.quantities()) {
    if (std::find(said.begin(), said.end(), name) != said.end()) continue;
    const std::string what = fmt::format("objective \"{}\": unknown quantity \"{}\"", problem.objective.text, name);
    if (const std::string observer = recording ? "" : observer_of(name); !observer.empty()) {
      const bool named = observer == "counters";
      throw UserError(
          fmt::format("{} unless its observer is asked for: observe = [\"{}\"]{}", what, observer,
                      named ? fmt::format(", or [observers] counters = {{ metrics = [\"{}\"] }}", name) : ""),
          problem.objective.place);
    }
    throw UserError(fmt::format("{}{}{}", what, suggestion(name, said),
                                recording ? "" : "; [metrics] of the problem file makes more"),
                    problem.objective.place);
  }
  for (const PlanSpec& plan : problem.plans)
    for (const PlanStageSpec& stage : plan.stages) {
      if (stage.objective.empty()) continue;
      Problem of_stage = problem;
      of_stage.plans.clear();
      of_stage.objective = {stage.objective, std::nullopt, stage.place};
      validate_objective_quantities(options, of_stage, recording);
    }
}

void refuse_unknown_properties(const Problem& problem, const Constants& constants) {
  const auto of_device = [](const auto& entry) { return entry.first.starts_with("device."); };
  if (std::none_of(constants.begin(), constants.end(), of_device)) return;  // the device is unknown, as in a recording
  std::vector<std::string> known;
  for (const auto& [name, value] : constants) known.push_back(name);
  for (const Metric& metric : problem.metrics)
    for (const std::string& name : metric.expression.names())
      if (name.starts_with("device.") && !constants.contains(name))
        throw UserError(fmt::format("metric \"{}\": this device has no property \"{}\"{}", metric.name, name,
                                    suggestion(name, known)),
                        metric.expression.place());
}

}  // namespace ergotune
