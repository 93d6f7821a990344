#include "cli/tune_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/live_options.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

Json configuration_document(const PreparedSession& prepared, const EvaluationResult& result) {
  Json document{
      {"configuration", to_json(prepared.space->parameters(), prepared.space->configuration(result.index))}};
  document.update(to_json(result.measurement));
  if (const auto value = prepared.objective->value(result.measurement)) document["objective"] = *value;
  return document;
}

/// How many times better the best is than another value; nullopt where a ratio means nothing.
std::optional<double> gain(const PreparedSession& prepared, double best, double other) {
  const double ratio = prepared.objective->direction() == Direction::maximise ? best / other : other / best;
  if (!std::isfinite(ratio) || ratio <= 0) return std::nullopt;
  return ratio;
}

std::string value_with_interval(const Measurement& measurement, const std::string& name,
                                const std::vector<Metric>& metrics) {
  const auto value = measurement.value(name);
  if (!value) return "none";
  const std::string unit = unit_of(name, metrics);
  std::string text = human(*value, unit);
  const double error = measurement.standard_error(name);
  if (error > 0 && *value != 0) text += fmt::format(" +- {:.2g} %", 100 * 1.96 * error / std::abs(*value));
  const auto quantity = measurement.quantities.find(name);
  if (quantity != measurement.quantities.end() && quantity->second.provenance != Provenance::measured) {
    text += fmt::format(" ({})", to_string(quantity->second.provenance));
  }
  return text;
}

std::string statuses_line(const SessionResult& result) {
  std::string text;
  for (const auto& [status, count] : result.statuses) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, status);
  }
  return text.empty() ? "none" : text;
}

}  // namespace

Json result_document(const PreparedSession& prepared, const SessionResult& result) {
  const Objective& objective = *prepared.objective;
  Json document{
      {"problem", prepared.problem.name},
      {"device", prepared.device.id},
      {"device_name", prepared.device.name},
      {"provenance", to_string(prepared.evaluator->provenance())},
      {"objective",
       {{"name", objective.name()},
        {"direction", objective.direction() == Direction::maximise ? "max" : "min"}}},
      {"best", nullptr},
  };
  if (!result.best.empty()) document["best"] = configuration_document(prepared, result.best.front());
  if (result.probability_best) document["best"]["probability_best"] = *result.probability_best;
  document["default"] =
      result.default_result ? configuration_document(prepared, *result.default_result) : Json(nullptr);
  document["median"] = result.median_value ? Json(*result.median_value) : Json(nullptr);
  Json top = Json::array();
  for (const EvaluationResult& entry : result.best) top.push_back(configuration_document(prepared, entry));
  document["top"] = std::move(top);
  document["evaluated"] = result.evaluated;
  document["resumed"] = result.resumed;
  document["retried"] = result.retried;
  document["space"] = prepared.space->size();
  document["statuses"] = result.statuses;
  if (!result.commonest_failure.empty()) {
    document["commonest_failure"] = {{"message", result.commonest_failure},
                                     {"count", result.commonest_failure_count}};
  }
  document["strategy"] = result.strategy;
  if (!result.explanation.empty()) document["explanation"] = result.explanation;
  document["stopped_because"] = result.stopped_because;
  document["confirmation_rounds"] = result.confirmation_rounds;
  document["seconds"] = result.seconds;
  document["tuner_seconds"] = result.tuner_seconds;
  document["notes"] = prepared.notes;
  document["store"] = prepared.store ? Json(prepared.store->file().string()) : Json(nullptr);
  document["session"] = prepared.store ? Json(prepared.store_session) : Json(nullptr);
  return document;
}

void print_answer(const PreparedSession& prepared, const SessionResult& result, const std::string& file,
                  std::size_t top) {
  const Objective& objective = *prepared.objective;
  const auto& metrics = prepared.problem.metrics;
  const std::string unit = unit_of(objective.name(), metrics);
  fmt::print("{} on {}: {} configurations measured", prepared.problem.name, prepared.device.name,
             result.evaluated);
  if (result.retried > 0) fmt::print(" ({} tried again)", result.retried);
  if (result.resumed > 0) fmt::print(", {} known before", result.resumed);
  fmt::print(" of {} in {} ({})\n", prepared.space->size(), human_duration(result.seconds),
             result.stopped_because);
  fmt::print("Outcomes: {}\n", statuses_line(result));
  if (result.best.empty()) {
    fmt::print("No configuration worked");
    if (!result.commonest_failure.empty()) {
      fmt::print("; the commonest failure ({} of them) is\n  {}", result.commonest_failure_count,
                 result.commonest_failure);
    }
    fmt::print("\n");
  } else {
    const EvaluationResult& best = result.best.front();
    const bool front = objective.kind() == Objective::Kind::pareto;
    fmt::print("\n{}:\n", front ? fmt::format("Pareto front of {}, {} configurations", objective.name(),
                                              result.best.size())
                                : "Best configuration");
    if (!front) {
      fmt::print("  {}\n", describe(prepared.space->parameters(), prepared.space->configuration(best.index)));
      const auto& quantities = best.measurement.quantities;
      for (const char* name : {"time", "energy", "power", "core_clock", "temperature"}) {
        if (quantities.contains(name)) {
          fmt::print("  {:<12} {}\n", name, value_with_interval(best.measurement, name, metrics));
        }
      }
      for (const Metric& metric : metrics) {
        if (best.measurement.metrics.contains(metric.name)) {
          fmt::print("  {:<12} {}\n", metric.name,
                     value_with_interval(best.measurement, metric.name, metrics));
        }
      }
      for (const std::string& warning : best.measurement.warnings) fmt::print("  note: {}\n", warning);
      const auto value = objective.value(best.measurement);
      if (value && result.default_result) {
        const auto other = objective.value(result.default_result->measurement);
        if (!other) {
          fmt::print("  the default configuration failed: {}\n", result.default_result->measurement.message);
        } else if (const auto ratio = gain(prepared, *value, *other)) {
          fmt::print("  {:.2f} x as good as the default ({})\n", *ratio, human(*other, unit));
        }
      }
      if (value && result.median_value) {
        if (const auto ratio = gain(prepared, *value, *result.median_value)) {
          fmt::print("  {:.2f} x as good as the median ({})\n", *ratio, human(*result.median_value, unit));
        }
      }
      if (result.probability_best) {
        fmt::print(
            "  measured again {} times beside its rivals: with {:.0f} % probability the best of them\n",
            result.confirmation_rounds, 100 * *result.probability_best);
      }
    }
    const std::size_t shown = front ? result.best.size() : std::min(top, result.best.size());
    if (shown > 1) {
      if (!front) fmt::print("\nNext best:\n");
      for (std::size_t i = front ? 0 : 1; i < shown; ++i) {
        const EvaluationResult& entry = result.best[i];
        std::string values;
        if (front) {
          for (const std::string& name : objective.quantities()) {
            values += fmt::format("{}{} {}", values.empty() ? "" : ", ", name,
                                  value_with_interval(entry.measurement, name, metrics));
          }
        } else {
          values =
              objective.value(entry.measurement) ? human(*objective.value(entry.measurement), unit) : "none";
        }
        fmt::print("  {}  {}\n", values,
                   describe(prepared.space->parameters(), prepared.space->configuration(entry.index)));
      }
    }
  }
  if (!result.explanation.empty()) fmt::print("\nStrategy: {}\n", result.explanation);
  if (prepared.store) {
    fmt::print("\nResults: {} (session {})\nNext: ergotune report {} -o report.html\n",
               prepared.store->file().string(), prepared.store_session, prepared.store->file().string());
  } else {
    fmt::print("\nNothing was stored. Next: ergotune tune {}\n", file);
  }
}

}  // namespace ergotune::cli
