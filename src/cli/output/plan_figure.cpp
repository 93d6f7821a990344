#include "cli/output/plan_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "cli/output/progress.hpp"
#include "model/execution_kind.hpp"

namespace ergotune::cli {

std::optional<double> energy_of(const Measurement& measurement) {
  if (!usable(measurement.status)) return std::nullopt;
  if (const auto energy = measurement.value("energy")) return energy;
  const auto power = measurement.value("power"), time = measurement.value("time");
  if (power && time) return *power * *time;
  return std::nullopt;
}

namespace {

/// The number of configurations that each plan requested, and the energy that it found.
Chart energies(const PlanComparison& comparison) {
  Chart chart;
  chart.title = fmt::format("Energy found by each plan: {}", comparison.problem);
  chart.x_label = "configurations asked for";
  chart.y_label = "energy (J)";
  chart.note = fmt::format("{}; {} configurations; every energy is {}", comparison.device, comparison.space,
                           to_string(comparison.provenance));
  for (const PlanResult& result : comparison.plans) {
    const auto energy = result.best ? energy_of(result.best->measurement) : std::nullopt;
    if (energy)
      chart.series.push_back({result.plan, {static_cast<double>(result.requested)}, {*energy}, false, false, {}});
  }
  return chart;
}

/// The actual clock in MHz; else the requested one.
std::optional<double> clock_of(const PlanPoint& point, const std::vector<Parameter>& parameters) {
  if (const auto ran = point.measurement.value("core_clock")) return *ran * 1e-6;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (execution_kind(parameters[i]) == ParameterKind::core_clock_mhz) return point.configuration[i].as_real();
  return std::nullopt;
}

/// Plans that searched code and settings at once, if they have results for several settings.
std::vector<const PlanResult*> over_settings(const PlanComparison& comparison) {
  std::vector<const PlanResult*> list;
  for (const PlanResult& plan : comparison.plans)
    if (plan.stages.size() == 1 && plan.stages.back().by_setting.size() > 1) list.push_back(&plan);
  // Draw plans with fewer points on top of those with more.
  std::stable_sort(list.begin(), list.end(), [](const PlanResult* a, const PlanResult* b) {
    return a->stages.back().by_setting.size() > b->stages.back().by_setting.size();
  });
  return list;
}

/// A quantity of the best configuration for every setting, over the actual clock; no series if it is unknown.
Chart over_clock(const std::vector<const PlanResult*>& plans, const std::vector<Parameter>& parameters,
                 const std::string& title, const std::string& label, const std::string& note,
                 const std::function<std::optional<double>(const Measurement&)>& value) {
  Chart chart;
  chart.title = title;
  chart.x_label = "core clock that ran (MHz)";
  chart.y_label = label;
  chart.note = note;
  for (const PlanResult* plan : plans) {
    ChartSeries series{plan->plan, {}, {}, false, false, {}};
    for (const PlanPoint& point : plan->stages.back().by_setting) {
      const auto clock = clock_of(point, parameters), y = value(point.measurement);
      if (!clock || !y) continue;
      series.x.push_back(*clock);
      series.y.push_back(*y);
    }
    if (!series.x.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace

std::vector<Chart> plan_charts(const PlanComparison& comparison, const std::vector<Parameter>& parameters) {
  std::vector<Chart> charts{energies(comparison)};
  const auto plans = over_settings(comparison);
  if (plans.size() < 2) return charts;
  const std::string note = fmt::format("the best code at every clock and limit; {}; every value is {}",
                                       comparison.device, to_string(comparison.provenance));
  const auto value = [](const char* name) { return [name](const Measurement& m) { return m.value(name); }; };
  charts.push_back(
      over_clock(plans, parameters, "Power: capped, and at fixed clocks", "power (W)", note, value("power")));
  charts.push_back(over_clock(plans, parameters, "Energy", "energy (J)", note, energy_of));
  charts.push_back(over_clock(plans, parameters, "Voltage", "core voltage (V)", note, value("core_voltage")));
  charts.push_back(over_clock(plans, parameters, "Time", "time (s)", note, value("time")));
  std::erase_if(charts, [](const Chart& chart) { return chart.series.empty(); });
  return charts;
}

}  // namespace ergotune::cli
