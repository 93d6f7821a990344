#include "cli/output/tune_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <sstream>
#include <vector>

#include "analysis/svg_chart.hpp"
#include "base/files.hpp"
#include "base/statistics.hpp"
#include "cli/command.hpp"
#include "cli/live_options.hpp"
#include "cli/output/table.hpp"
#include "measure/execution_parameters.hpp"

namespace ergotune::cli {

namespace {

/// ", simulated"; empty for measured values.
std::string unless_measured(Provenance provenance) {
  return provenance == Provenance::measured ? "" : ", " + to_string(provenance);
}

}  // namespace

std::string unconfirmed_text(const Unconfirmed& result, const std::string& unit) {
  constexpr double kWorthConfirming = 0.003;
  return fmt::format("not confirmed, {} expected{}", human(result.expected, unit),
                     result.expected_gain >= kWorthConfirming ? ", may be better" : "");
}

void print_confidence(const Confidence& confidence) {
  const std::string repeats = counted(static_cast<std::uint64_t>(confidence.confirmation_repeats), "paired repeat");
  if (confidence.confirmation_repeats > 0 && !confidence.probability_best) fmt::print("  confirmed in {}\n", repeats);
  if (confidence.probability_best) {
    fmt::print("  confirmed in {} with its rivals: the best of them with {:.0f} % probability", repeats,
               100 * *confidence.probability_best);
    if (confidence.expected_loss) fmt::print(", expected loss {:.2g} %", 100 * *confidence.expected_loss);
    fmt::print("\n");
    if (*confidence.probability_best < kSure)
      fmt::print(
          "  below {:.0f} %: the rivals are as good within the noise; any of them will do where the expected loss is "
          "small, else give a larger --budget (once the whole space is measured: --max-seconds, for longer "
          "measurements), on a quiet machine\n",
          100 * kSure);
  }
  if (const std::string note = repeats_note(confidence.search_repeats, confidence.confirmation_repeats); !note.empty())
    fmt::print("  note: {}\n", note);
}

void print_screened(std::uint64_t screened) {
  if (screened == 0) return;
  fmt::print("\n{} screened: only the time was measured, by which the energy is not the least\n",
             counted(screened, "configuration"));
}

void print_importance(const ResultSet& results, const Importance& importance) {
  const std::vector<Parameter>& parameters = results.parameters;
  const std::string mark = mark_of(results.provenance);
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, importance.shares.size()); ++i) {
    const auto& share = importance.shares[i];
    std::string names;
    for (const std::size_t p : share.parameters) names += (names.empty() ? "" : " with ") + parameters[p].name;
    text += fmt::format("{}{} {:.0f} % ({:.0f} to {:.0f})", i == 0 ? "" : ", ", names, 100 * share.share,
                        100 * share.low, 100 * share.high);
  }
  if (!text.empty())
    fmt::print("\nWhat matters{} (share of the variance; modelled, the model explains {:.0f} % of it): {}\n", mark,
               100 * importance.explained.value_or(0), text);
  if (importance.only_noise())
    fmt::print("\nWhat matters{}: no parameter has an effect that can be distinguished from noise\n", mark);
  text.clear();
  for (std::size_t i = 0; i < std::min(kShown, importance.ruled_out.size()); ++i) {
    const auto& out = importance.ruled_out[i];
    text += fmt::format("{}{} = {} ({} tried)", i == 0 ? "" : ", ", parameters[out.parameter].name,
                        out.value.to_literal(), out.tried);
  }
  if (!text.empty()) fmt::print("Never worked{}: {}\n", mark, text);
}

namespace {

/// with_interval(), with the provenance of values that were not measured. `rounds`: StoredRow::rounds.
std::string reported(const Measurement& measurement, const std::string& name, const ResultSet& results,
                     int rounds = 0) {
  const auto quantity = measurement.quantities.find(name);
  Provenance provenance = results.provenance;  // of metrics
  if (quantity != measurement.quantities.end() && quantity->second.provenance != Provenance::measured)
    provenance = quantity->second.provenance;
  const std::string samples =
      rounds > 0 ? counted(static_cast<std::uint64_t>(rounds), "repeat") + ": too few" : "too few samples";
  return with_interval(measurement, name, results.metrics,
                       fmt::format(" ({} for an interval narrower than the value)", samples)) +
         mark_of(provenance);
}

std::string statuses_line(const RankedResults& ranked) {
  std::string text;
  for (const auto& [status, count] : ranked.statuses) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, status);
    if (status == to_string(Status::not_converged)) text += " (valid, the interval is wider than requested)";
  }
  return text.empty() ? "none" : text;
}

/// " at core_clock_mhz=1980"; empty if the space has no clocks and limits.
std::string settings_text(const ResultSet& results, std::size_t row) {
  std::string text;
  for (std::size_t p = 0; p < results.parameters.size(); ++p)
    if (execution_kind(results.parameters[p]) != ParameterKind::code)
      text += fmt::format("{}{}={}", text.empty() ? " at " : ", ", results.parameters[p].name,
                          results.rows[row].configuration[p].to_string());
  return text;
}

/// Of a search for energy, prints what its best costs in time: "takes 11 ± 1 % longer than the default (2.60 ms)".
void print_time_against_default(const RankedResults& ranked) {
  if (ranked.objective.quantity() != "energy" || !ranked.default_row || *ranked.default_row == ranked.best.front())
    return;
  const Measurement &best = ranked.measurement(ranked.best.front()),
                    &standard = ranked.measurement(*ranked.default_row);
  const auto own = best.value("time"), other = standard.value("time");
  if (!own || !other || *other <= 0) return;
  const double ratio = *own / *other,
               interval = ratio_half_width(*own, best.half_width("time"), *other, standard.half_width("time"));
  fmt::print("  takes {:.2g}{} % {} than the default ({}{})\n", 100 * std::abs(ratio - 1),
             std::isfinite(interval) && interval > 0 ? fmt::format(" ± {:.2g}", 100 * ratio * interval) : std::string(),
             ratio >= 1 ? "longer" : "less time", human(*other, "s"), unless_measured(ranked.results.provenance));
}

/// Prints "1.43x faster than the default (2.60 ms)", and the same for the median unless noise or a condition leaves the
/// best behind it; "better" if the objective is not time.
void print_gains(const RankedResults& ranked, double best) {
  const std::string unit = ranked.objective.unit();
  const bool is_time = ranked.objective.quantity() == "time";
  const std::string mark = unless_measured(ranked.results.provenance);
  const auto print_gain = [&](double other, const std::optional<Gain>& gain, const char* name,
                              const std::string& mark) {
    if (best == other) {
      fmt::print("  the same as the {}\n", name);
    } else if (gain) {
      const char* comparative = gain->factor >= 1 ? (is_time ? "faster" : "better") : (is_time ? "slower" : "worse");
      const double factor = std::max(gain->factor, 1 / gain->factor);
      const std::string interval =
          gain->half_width > 0 ? fmt::format(" ± {:.2g}", factor * gain->half_width / gain->factor) : std::string();
      fmt::print("  {:.2f}x{} {} than the {} ({}{})\n", factor, interval, comparative, name, human(other, unit), mark);
    } else {
      const bool better = ranked.objective.direction() == Direction::maximise ? best > other : best < other;
      fmt::print("  {} {} than the {} ({}{})\n", human(std::abs(best - other), unit), better ? "better" : "worse", name,
                 human(other, unit), mark);
    }
  };
  if (ranked.default_row) {
    if (const auto value = ranked.value(*ranked.default_row)) {
      const bool behind = ranked.confidence.confirmation_repeats > 0 && !ranked.is_confirmed(*ranked.default_row);
      const std::optional<Gain> gain = ranked.gain_over_default();
      const bool may_be_none = gain && gain->half_width >= std::abs(gain->factor - 1);
      print_gain(*value, gain, "default",
                 settings_text(ranked.results, *ranked.default_row) + mark + (behind ? ", not confirmed" : "") +
                     (ranked.is_gain_uncertain() ? "; not certain: an interval is wider than its value"
                      : may_be_none              ? "; not certain: within the intervals"
                                                 : ""));
    } else {
      fmt::print("  the default configuration failed: {}\n", ranked.measurement(*ranked.default_row).message);
    }
  }
  print_time_against_default(ranked);
  const bool maximises = ranked.objective.direction() == Direction::maximise;
  if (ranked.median && (maximises ? best >= *ranked.median : best <= *ranked.median))
    print_gain(*ranked.median, ranked.gain_over_median(), "median", mark);
}

/// The values shown for a configuration: `first`, the objective's quantities, each kernel's time, metrics.
std::vector<std::string> shown_names(const RankedResults& ranked, const Measurement& measurement,
                                     std::vector<std::string> first) {
  const auto add_name = [&](const std::string& name) {
    if (std::ranges::find(first, name) == first.end()) first.push_back(name);
  };
  for (const auto& [name, quantity] : measurement.quantities)
    if (mentions(ranked.objective.name(), name) || name.starts_with("time.")) add_name(name);
  for (const std::string& name : ranked.objective.quantities()) add_name(name);
  for (const Metric& metric : ranked.results.metrics) add_name(metric.name);
  return first;
}

}  // namespace

bool mentions(const std::string& expression, const std::string& name) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  for (std::size_t at = expression.find(name); at != std::string::npos; at = expression.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_letter(expression[at - 1])) && (end == expression.size() || !is_letter(expression[end])))
      return true;
  }
  return false;
}

void print_best(const RankedResults& ranked) {
  const std::size_t row = ranked.best.front();
  const Measurement& best = ranked.measurement(row);
  fmt::print("\n{}\n  {}\n", styled("Best configuration:", Style::heading), ranked.configuration_text(row));
  const auto value = ranked.value(row);
  // The objective is an expression, whose value is not among the quantities below.
  if (value && ranked.objective.quantity().empty())
    fmt::print("  {:<12} {}\n", ranked.objective.name(), human(*value, ranked.objective.unit()));
  for (const std::string& name : shown_names(ranked, best, {"time", "energy", "power", "core_clock", "temperature"})) {
    if (best.value(name))
      fmt::print("  {:<12} {}\n", name, reported(best, name, ranked.results, ranked.results.rows[row].rounds));
  }
  if (const auto error = best.quantities.find("error"); error != best.quantities.end())
    fmt::print("  {:<12} outputs agree{} ({})\n", "verified",
               error->second.n == 0 ? "" : fmt::format(", largest relative error {:.2g}", error->second.value),
               error->second.method);
  const auto violates = [&](std::size_t other) {
    return ranked.objective.violates_condition(ranked.measurement(other));
  };
  if (violates(row))
    fmt::print("  note: it is outside of the condition of the objective{}\n",
               std::ranges::all_of(ranked.best, violates) ? ", as all others are; it comes closest" : "");
  for (const std::string& warning : best.warnings) fmt::print("  note: {}\n", warning);
  if (value) print_gains(ranked, *value);
  print_confidence(ranked.confidence);
  if (ranked.results.provenance == Provenance::measured && ranked.best.size() > 1 && !ranked.is_confirmed(row))
    fmt::print("  not confirmed for this objective: measured once, in the search, {}\n",
               value && ranked.expected_value(row) != value
                   ? human(*ranked.expected_value(row), ranked.objective.unit()) + " expected, which the gains go by"
                   : "it may read better than it is");
}

namespace {

void print_next_best(const RankedResults& ranked, std::size_t top) {
  const std::string unit = ranked.objective.unit();
  const std::size_t shown = std::min(top, ranked.best.size());
  if (shown > 1) fmt::print("\n{}\n", styled("Next best" + mark_of(ranked.results.provenance) + ":", Style::heading));
  for (std::size_t i = 1; i < shown; ++i) {
    const StoredRow& row = ranked.results.rows[ranked.best[i]];
    const auto value = ranked.value(ranked.best[i]);
    // Unconfirmed results are marked: their values may be low by chance.
    std::string why;
    if (const auto unconfirmed = ranked.unconfirmed(ranked.best[i])) why = unconfirmed_text(*unconfirmed, unit);
    if (ranked.objective.violates_condition(row.measurement))
      why = "outside of the condition";
    else if (ranked.is_behind_by_clock(ranked.best[i]))
      why = "within the interval of the best, but a power limit held its clock below the requested one";
    fmt::print("  {}  {}{}\n", value ? human(*value, unit) : "none", ranked.configuration_text(ranked.best[i]),
               why.empty() ? "" : "  (" + why + ")");
  }
}

void print_front(const RankedResults& ranked) {
  fmt::print("\nPareto front of {}, {}:\n", ranked.objective.name(), counted(ranked.best.size(), "configuration"));
  for (const std::size_t row : ranked.best) {
    const Measurement& measurement = ranked.measurement(row);
    std::string values;
    for (const std::string& name : shown_names(ranked, measurement, {})) {
      if (!measurement.value(name)) continue;
      values += fmt::format("{}{} {}", values.empty() ? "" : ", ", name, reported(measurement, name, ranked.results));
    }
    fmt::print("  {}  {}\n", values, ranked.configuration_text(row));
  }
}

/// "x1.013 ±0.2 %": the value of a quantity on a GPU relative to the mean GPU.
std::string factor_text(const DeviceFactors::Factor& factor) {
  return fmt::format("x{:.4f} ±{:.2f} %", factor.value,
                     100 * half_width_95(factor.standard_error, factor.n - 1) / factor.value);
}

void print_device_shares(const SessionResult& result, Provenance provenance) {
  if (result.gpus.empty()) return;
  fmt::print("\nDevices{}, compared by the default on each of them (1: their mean):\n", mark_of(provenance));
  for (const DeviceResult& gpu : result.gpus) {
    const double rate = static_cast<double>(gpu.results) / std::max(1e-9, gpu.busy_seconds + gpu.idle_seconds);
    fmt::print("  {}{}  {}, {}, {:.0f} % idle", gpu.id, gpu.lost ? " (lost)" : "", counted(gpu.results, "result"),
               rate_text(rate), 100 * gpu.idle_seconds / std::max(1e-9, gpu.busy_seconds + gpu.idle_seconds));
    for (const char* name : {"time", "energy"})
      if (const auto factor = gpu.factors.find(name); factor != gpu.factors.end())
        fmt::print("  {} {}", name, factor_text(factor->second));
    fmt::print("\n");
  }
}

/// Prints the message of compiler or driver, up to a screen of lines, since it is not stored.
void print_text(std::string_view description) {
  if (description.find('\n') == description.npos) return;  // the most informative line was all
  if (description.starts_with('\n')) description.remove_prefix(1);
  constexpr std::size_t kLines = 30;
  std::istringstream lines{std::string(description)};
  std::size_t shown = 0;
  for (std::string line; std::getline(lines, line); ++shown) {
    if (shown == kLines) {
      fmt::print("\n  ... (--json has all of it)");
      break;
    }
    fmt::print("\n  | {}", line);
  }
}

/// Prints the commonest failure, and where the messages of all are.
void print_commonest_failure(const RankedResults& ranked) {
  const auto failures = ranked.failures();
  if (failures.empty()) return;
  const FailureGroup& commonest = failures.front();
  const ResultSet& results = ranked.results;
  const std::string line = most_informative_line(commonest.message);
  fmt::print("The commonest failure ({} of {}) is\n  {}: {}", commonest.count, ranked.failed(),
             to_string(commonest.status), line);
  if (ranked.best.empty() && results.store.empty())
    print_text(commonest.message.substr(commonest.message.starts_with(line) ? line.size() : 0));
  fmt::print("\n");
  if (!results.store.empty())
    fmt::print("All messages: ergotune show {} --session {} --failures\n", results.store.string(), results.session);
}

void print_nothing_worked(const TunedSession& tuned) {
  if (!tuned.ranked.results.rows.empty()) fmt::print("{}\n", styled("No configuration worked", Style::error));
  // they were printed at the beginning, or not at all (--quiet); one of them may be the reason
  for (const std::string& note : tuned.notes) fmt::print("note: {}\n", note);
}

}  // namespace

void print_answer(const TunedSession& tuned, const std::string& file, std::size_t top) {
  const RankedResults& ranked = tuned.ranked;
  const SessionResult& run = tuned.run;
  const ResultSet& results = ranked.results;
  fmt::print("{} on {}: {} evaluated", results.problem, results.device_name, counted(run.evaluated, "configuration"));
  if (run.retried > 0) fmt::print(" ({} tried again)", run.retried);
  if (run.resumed > 0) fmt::print(", {} known before", run.resumed);
  fmt::print(" of {} in {} ({})\n", results.space.value_or(0), human_duration(run.seconds), run.stopped_because);
  if (run.waited > 0.1)
    fmt::print("Before that it waited {} for another session on the device.\n", human_duration(run.waited));
  if (results.rows.empty()) {
    fmt::print("Nothing was measured.\n");
  } else {
    fmt::print("Outcomes{}: {}\n", mark_of(results.provenance), statuses_line(ranked));
    print_commonest_failure(ranked);
  }
  if (ranked.best.empty()) {
    print_nothing_worked(tuned);
  } else if (ranked.objective.kind() == Objective::Kind::pareto) {
    print_front(ranked);
  } else {
    print_best(ranked);
    print_next_best(ranked, top);
    print_screened(ranked.screened());
    print_importance(results, ranked.importance());
  }
  if (results.space == 1)
    fmt::print(
        "\nnote: this problem has one configuration, so nothing was compared: only clocks and power limits can be "
        "tuned ([execution] in the problem file), or parameters that you add\n");
  print_device_shares(run, results.provenance);
  if (run.disturbed > 0)
    fmt::print(
        "\nnote: {} of them have no result, because the device ran under other clocks or limits than were set each "
        "time: the best may be among them; the same command measures them again\n",
        run.disturbed);
  for (const std::string& note : tuned.findings) fmt::print("\nnote: {}\n", note);
  if (!run.explanation.empty()) fmt::print("\nStrategy: {}\n", run.explanation);
  const bool is_simulated = results.provenance == Provenance::simulated;
  if (is_simulated) fmt::print("\nnote: the device is simulated: the kernel was neither compiled nor run");
  if (is_simulated && results.device_id.starts_with("sim:") && results.device_name.find("NVIDIA") != std::string::npos)
    fmt::print("; if it has a CUDA source, this compiles it: ergotune space {} --profile {} --compile 10", file,
               results.device_id.substr(4));
  if (is_simulated) fmt::print("\n");
  if (results.store.empty()) {
    fmt::print("\nNothing was stored.{}\n", ranked.best.empty() || is_simulated ? "" : " Next: ergotune tune " + file);
    return;
  }
  std::error_code gone;
  if (!std::filesystem::exists(results.store, gone)) return;
  fmt::print("\nResults: {} (session {})\n", results.store.string(), results.session);
  if (ranked.best.empty()) return;
  const std::string session =  // for devices of different kinds there are several sessions, one of which was worked on
                               // last
      pick_session(Store::open(results.store, true)).id == results.session
          ? ""
          : fmt::format(" --session {}", results.session);
  fmt::print("Next: ergotune report {}{} -o report.html\n", results.store.string(), session);
}

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
  fmt::print("Plans for {} on {}: {} configurations, every value is {}\n\n", comparison.problem, comparison.device,
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
  const bool noiseless =
      std::ranges::any_of(comparison.plans, [](const PlanResult& plan) { return plan.true_energy.has_value(); });
  fmt::print("{}\n",
             noiseless ? "energy here: without the noise of the simulation, which the values below have\n" : "");
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
    if (!result.plan.starts_with("code_and_") || result.stages.empty() || result.stages.back().by_setting.empty())
      continue;
    fmt::print("\n{}: the best of every setting{}\n  {:>10} {:>10} {:>12} {:>10} {:>9} {:>12} {:>11}\n", result.plan,
               mark_of(comparison.provenance), "clock", "limit", "ran", "voltage", "power", "energy", "time");
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
