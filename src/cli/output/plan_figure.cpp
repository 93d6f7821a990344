#include "cli/output/plan_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "analysis/svg_chart.hpp"
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

std::string bars(const PlanComparison& comparison) {
  BarChart chart;
  chart.title = fmt::format("Energy found by each plan: {}", comparison.problem);
  chart.note = fmt::format("{}; {} configurations; every energy is {}", comparison.device, comparison.space,
                           to_string(comparison.provenance));
  for (const PlanResult& result : comparison.plans) {
    BarChart::Bar bar{result.plan, std::nullopt, result.why_not};
    if (result.best) {
      bar.value = energy_of(result.best->measurement);
      bar.text =
          fmt::format("{}, {} asked for{}", human(bar.value.value_or(0), "J"), result.asked,
                      result.above_optimum_percent ? fmt::format(", +{:.1f} %", *result.above_optimum_percent) : "");
    }
    chart.bars.push_back(std::move(bar));
  }
  return chart.to_svg();
}

/// The clock that ran, MHz; else the one that was asked for.
std::optional<double> clock_of(const PlanPoint& point, const std::vector<Parameter>& parameters) {
  if (const auto ran = point.measurement.value("core_clock")) return *ran * 1e-6;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (execution_kind(parameters[i]) == ParameterKind::core_clock_mhz) return point.configuration[i].as_real();
  return std::nullopt;
}

/// Plans that went over code and settings at once, with what they found for every setting.
std::vector<const PlanResult*> over_settings(const PlanComparison& comparison) {
  std::vector<const PlanResult*> list;
  for (const PlanResult& plan : comparison.plans)
    if (plan.stages.size() == 1 && plan.stages.back().by_setting.size() > 1) list.push_back(&plan);
  // Those with fewer points are drawn upon those with more.
  std::stable_sort(list.begin(), list.end(), [](const PlanResult* a, const PlanResult* b) {
    return a->stages.back().by_setting.size() > b->stages.back().by_setting.size();
  });
  return list;
}

/// A quantity of the best of every setting over the clock that ran; empty where unknown.
std::string over_clock(const std::vector<const PlanResult*>& plans, const std::vector<Parameter>& parameters,
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
  return chart.series.empty() ? std::string() : chart.to_svg();
}

}  // namespace

std::string plans_figure(const PlanComparison& comparison, const std::vector<Parameter>& parameters) {
  const auto plans = over_settings(comparison);
  if (plans.size() < 2) return bars(comparison);
  const std::string note = fmt::format("the best code at every clock and limit; {}; every value is {}",
                                       comparison.device, to_string(comparison.provenance));
  const auto told = [](const char* name) { return [name](const Measurement& m) { return m.value(name); }; };
  std::vector<std::string> figures{bars(comparison)};
  figures.push_back(
      over_clock(plans, parameters, "Power: capped, and at fixed clocks", "power (W)", note, told("power")));
  figures.push_back(over_clock(plans, parameters, "Energy", "energy (J)", note, energy_of));
  figures.push_back(over_clock(plans, parameters, "Voltage", "core voltage (V)", note, told("core_voltage")));
  figures.push_back(over_clock(plans, parameters, "Time", "time (s)", note, told("time")));
  std::erase(figures, std::string());
  return stacked(figures);
}

}  // namespace ergotune::cli
