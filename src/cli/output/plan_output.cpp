#include "cli/output/plan_output.hpp"
#include "base/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/live_options.hpp"
#include "cli/output/plan_figure.hpp"
#include "evaluate/recorded/replay.hpp"
#include "evaluate/recorded/simulated.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

Json energy_document(const Measurement& measurement) {
  const auto it = measurement.quantities.find("energy");
  if (it == measurement.quantities.end()) return nullptr;
  return {{"value", number_or_null(it->second.value)},
          {"standard_error", number_or_null(it->second.standard_error)},
          {"half_width", number_or_null(it->second.half_width())},
          {"n", it->second.n},
          {"unit", "J"},
          {"provenance", to_string(it->second.provenance)}};
}

Json best_document(const PlanPoint& best, const std::vector<Parameter>& parameters) {
  Json document{{"configuration", to_json(parameters, best.configuration)}};
  document.update(to_json(best.measurement));
  return document;
}

Json range_document(const PlanResult& result) {
  if (!result.model_range) return nullptr;
  return Json::array({result.model_range->low_mhz, result.model_range->high_mhz});
}

}  // namespace

Json plans_document(const PlanComparison& comparison, const std::vector<Parameter>& parameters) {
  Json document{{"problem", comparison.problem},
                {"device", comparison.device},
                {"provenance", to_string(comparison.provenance)},
                {"space", comparison.space},
                {"optimum_energy", comparison.optimum ? Json(*comparison.optimum) : Json(nullptr)}};
  Json plans = Json::array();
  for (const PlanResult& result : comparison.plans) {
    Json plan{
        {"plan", result.plan},
        {"asked", result.asked},
        {"evaluated", result.evaluated},
        {"known", result.known},
        {"seconds", result.seconds},
        {"energy", result.best ? energy_document(result.best->measurement) : Json(nullptr)},
        {"true_energy", result.true_energy ? Json(*result.true_energy) : Json(nullptr)},
        {"above_optimum_percent", result.above_optimum_percent ? Json(*result.above_optimum_percent) : Json(nullptr)},
        {"confirmation_repeats", result.confirmation_repeats},
        {"probability_best", result.probability_best ? Json(*result.probability_best) : Json(nullptr)},
        {"expected_loss", result.expected_loss ? Json(*result.expected_loss) : Json(nullptr)},
        {"best", result.best ? best_document(*result.best, parameters) : Json(nullptr)}};
    if (!result.why_not.empty()) plan["why_not"] = result.why_not;
    plan["notes"] = result.notes;
    Json stages = Json::array();
    for (const StageResult& stage : result.stages) {
      Json settings = Json::array();
      for (const PlanPoint& point : stage.by_setting) settings.push_back(best_document(point, parameters));
      stages.push_back({{"stage", stage.name},
                        {"by_setting", std::move(settings)},
                        {"objective", stage.objective},
                        {"strategy", stage.strategy},
                        {"space", stage.space},
                        {"asked", stage.asked},
                        {"evaluated", stage.evaluated},
                        {"best", stage.best ? to_json(parameters, stage.best->configuration) : Json(nullptr)}});
    }
    plan["stages"] = std::move(stages);
    if (result.model) {
      plan["model"] = {{"ridge_mhz", result.model->found ? Json(result.model->ridge_mhz.value) : Json(nullptr)},
                       {"range_mhz", range_document(result)},
                       {"removed_share", result.model_range ? Json(result.model_range->removed_share) : Json(nullptr)}};
    }
    plans.push_back(std::move(plan));
  }
  document["plans"] = std::move(plans);
  return document;
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
    // Beside a percentage of the true energy stands that, not one with a simulated measurement's noise.
    const double energy = result.true_energy ? *result.true_energy : energy_of(result.best->measurement).value_or(0);
    const auto time = result.best->measurement.value("time");
    fmt::print("{:<{}} {:>12} {:>11} {:>10} {:>12} {:>14}  {}\n", result.plan, width, human(energy, "J"),
               time ? human(*time, "s") : "none", result.asked, human_duration(result.seconds),
               result.above_optimum_percent ? fmt::format("{:.2f} %", *result.above_optimum_percent) : "unknown",
               std::string(static_cast<std::size_t>(largest > 0 ? 24 * energy / largest : 0), '#'));
  }
  fmt::print("\n");
  for (const PlanResult& result : comparison.plans) {
    if (!result.best) continue;
    fmt::print("{}: {}\n", result.plan, describe(parameters, result.best->configuration));
    if (result.probability_best)
      fmt::print(
          "  confirmed in {} rounds beside its rivals, best of them with {:.0f} % probability; {:.1f} % may be lost\n",
          result.confirmation_repeats, 100 * *result.probability_best, 100 * result.expected_loss.value_or(0));
    for (const std::string& note : result.notes) fmt::print("  note: {}\n", note);
    if (result.model_range && result.model) {
      fmt::print("  model: {}; searched {:.0f}-{:.0f} MHz, {:.0f} % of the clocks left out\n",
                 result.model->found ? fmt::format("ridge at {:.0f} MHz", result.model->ridge_mhz.value)
                                     : result.model->why_not,
                 result.model_range->low_mhz, result.model_range->high_mhz, 100 * result.model_range->removed_share);
    }
  }
}

/// What was asked, and what then ran: the best of every clock and limit of the plans that go over code and settings at
/// once.
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
      const auto told = [&](const char* name, double scale, const char* unit) {
        const auto value = m.value(name);
        return value ? fmt::format("{:.4g} {}", *value * scale, unit) : std::string("-");
      };
      const auto time = m.value("time");
      fmt::print("  {:>10} {:>10} {:>12} {:>10} {:>9} {:>12} {:>11}\n", clock, limit, told("core_clock", 1e-6, "MHz"),
                 told("core_voltage", 1, "V"), told("power", 1, "W"), human(energy_of(m).value_or(0), "J"),
                 time ? human(*time, "s") : "-");
    }
  }
}

void tune_by_plans(PreparedSession& prepared, const std::string& names, const SessionOptions& options,
                   ProgressPrinter& progress, bool json, const std::filesystem::path& figure) {
  const PlanComparison comparison =
      ergotune::run_plans(prepared, names, options, [&](const SessionProgress& now) { progress(now); });
  progress.finish();
  if (!figure.empty()) {
    write_named_file(figure, plans_figure(comparison, prepared.space->parameters()));
  }
  if (json) {
    print_json(plans_document(comparison, prepared.space->parameters()));
  } else {
    print_plans(comparison, prepared.space->parameters());
    print_settings(comparison, prepared.space->parameters());
    if (!figure.empty()) fmt::print("\nFigure: {}\n", figure.string());
  }
  if (options.interrupted && options.interrupted->load())
    fmt::print(stderr, "ergotune: interrupted{}\n", prepared.store ? "; the same command goes on from there" : "");
  const auto& plans = comparison.plans;
  if (std::none_of(plans.begin(), plans.end(), [](const PlanResult& plan) { return plan.best.has_value(); }))
    throw Exit{kNoAnswer};
}

}  // namespace ergotune::cli
