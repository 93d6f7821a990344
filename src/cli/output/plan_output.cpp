#include "cli/output/plan_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/svg_chart.hpp"
#include "base/files.hpp"
#include "cli/command.hpp"
#include "cli/live_options.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/table.hpp"
#include "cli/output/tune_report.hpp"
#include "model/execution_kind.hpp"
#include "report/result_document.hpp"
#include "tune/plans/plan.hpp"

namespace ergotune::cli {
namespace {

/// J per iteration, measured or recorded, or power times time; nullopt if the configuration failed or it is unknown.
std::optional<double> energy_of(const Measurement& measurement) {
  if (!usable(measurement.status)) return std::nullopt;
  if (const auto energy = measurement.value("energy")) return energy;
  const auto power = measurement.value("power"), time = measurement.value("time");
  if (power && time) return *power * *time;
  return std::nullopt;
}

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
  std::ranges::stable_sort(list, [](const PlanResult* a, const PlanResult* b) {
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

/// A chart of the energy that each plan found over the number of configurations that it requested. If power limits and
/// clocks were compared (by two plans over code and settings at once), also charts of power, energy, voltage and time
/// over the actual clock, for every setting (Going Green, Figures 6 to 8).
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

void print_plans(const PlanComparison& comparison, const std::vector<Parameter>& parameters) {
  const std::string word = to_string(comparison.provenance);
  fmt::print("Plans for {} on {}: {} configurations, every energy is {}\n\n", comparison.problem, comparison.device,
             comparison.space, word);
  double largest = 0;
  std::size_t width = 4;
  for (const PlanResult& result : comparison.plans) {
    if (result.best) largest = std::max(largest, energy_of(result.best->measurement).value_or(0));
    width = std::max(width, result.plan.size());
  }
  fmt::print("{:<{}} {:>12} {:>11} {:>10} {:>12} {:>14}\n", "plan", width, "energy", "time", "asked", "cost",
             "above optimum");
  for (const PlanResult& result : comparison.plans) {
    if (!result.best) {
      fmt::print("{:<{}} {}\n", result.plan, width, result.why_not);
      continue;
    }
    // The percentage refers to the true energy, so print that instead of the noisy simulated one.
    const double energy = result.true_energy ? *result.true_energy : energy_of(result.best->measurement).value_or(0);
    const auto time = result.best->measurement.value("time");
    fmt::print("{:<{}} {:>12} {:>11} {:>10} {:>12} {:>14}  {}\n", result.plan, width, human(energy, "J"),
               time ? human(*time, "s") : "none", result.requested, human_duration(result.seconds),
               result.above_optimum_percent ? fmt::format("{:.2f} %", *result.above_optimum_percent) : "unknown",
               std::string(static_cast<std::size_t>(largest > 0 ? 24 * energy / largest : 0), '#'));
  }
  fmt::print("\n");
  for (const PlanResult& result : comparison.plans) {
    if (!result.best) continue;
    fmt::print("{}: {}\n", result.plan, describe(parameters, result.best->configuration));
    print_confidence(result);
    for (const std::string& note : result.notes) fmt::print("  note: {}\n", note);
    if (result.model_range && result.model) {
      fmt::print("  model: {}; searched {:.0f}-{:.0f} MHz, {:.0f} % of the clocks left out\n",
                 result.model->found ? fmt::format("ridge at {:.0f} MHz", result.model->ridge_mhz.value)
                                     : result.model->why_not,
                 result.model_range->low_mhz, result.model_range->high_mhz, 100 * result.model_range->removed_share);
    }
  }
}

/// Prints requested and actual settings: the best configuration for every clock and limit, of plans that search code
/// and settings at once.
void print_settings(const PlanComparison& comparison, const std::vector<Parameter>& parameters) {
  for (const PlanResult& result : comparison.plans) {
    if (!result.plan.starts_with("code_and_") || result.stages.empty()) continue;
    fmt::print("\n{}: the best of every setting\n  {:>10} {:>10} {:>12} {:>10} {:>9} {:>12} {:>11}\n", result.plan,
               "clock", "limit", "ran", "voltage", "power", "energy", "time");
    for (const PlanPoint& point : result.stages.back().by_setting) {
      std::string clock = "-", limit = "-";
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const ParameterKind kind = execution_kind(parameters[i]);
        if (kind == ParameterKind::core_clock_mhz) clock = fmt::format("{} MHz", point.configuration[i].to_string());
        if (kind == ParameterKind::power_limit_w) limit = fmt::format("{} W", point.configuration[i].to_string());
      }
      const Measurement& m = point.measurement;
      const auto reported = [&](const char* name, double scale, const char* unit) {
        const auto value = m.value(name);
        return value ? fmt::format("{:.4g} {}", *value * scale, unit) : std::string("-");
      };
      const auto time = m.value("time");
      fmt::print("  {:>10} {:>10} {:>12} {:>10} {:>9} {:>12} {:>11}\n", clock, limit,
                 reported("core_clock", 1e-6, "MHz"), reported("core_voltage", 1, "V"), reported("power", 1, "W"),
                 human(energy_of(m).value_or(0), "J"), time ? human(*time, "s") : "-");
    }
  }
}

}  // namespace

void tune_by_plans(PreparedSession& prepared, const std::string& names, const SessionOptions& options,
                   ProgressPrinter& progress, bool json, const std::string& figure) {
  const PlanComparison comparison =
      ergotune::run_plans(prepared, names, options, [&](const SessionProgress& now) { progress(now); });
  progress.finish();
  write_figure(figure, plan_charts(comparison, prepared.space->parameters()));
  if (json) {
    print_json(plans_document(prepared, comparison));
  } else {
    print_plans(comparison, prepared.space->parameters());
    print_settings(comparison, prepared.space->parameters());
    if (!figure.empty()) fmt::print("\nFigure: {}\n", figure);
  }
  if (options.interrupted && options.interrupted->load())
    fmt::print(stderr, "ergotune: interrupted{}\n", prepared.store ? "; the same command goes on from there" : "");
  const auto& plans = comparison.plans;
  if (std::ranges::none_of(plans, [](const PlanResult& plan) { return plan.best.has_value(); })) throw Exit{kNoAnswer};
}

}  // namespace ergotune::cli
