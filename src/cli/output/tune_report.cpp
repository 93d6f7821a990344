#include "cli/output/tune_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/statistics.hpp"
#include "cli/live_options.hpp"
#include "cli/output/findings.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

/// How many times better the best is than another value; nullopt where a ratio means nothing.
std::optional<double> gain(double best, double other, Direction direction) {
  if (!(best > 0) || !(other > 0)) return std::nullopt;  // logarithms, negated times: twice as far from zero is no gain
  const double ratio = direction == Direction::maximise ? best / other : other / best;
  return std::isfinite(ratio) ? std::optional(ratio) : std::nullopt;
}

/// with_interval(), and the provenance of a value that was not measured.
std::string told(const Measurement& measurement, const std::string& name, const std::vector<Metric>& metrics) {
  std::string text = with_interval(measurement, name, metrics);
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

/// "1.43 x as good as the default (2.60 ms)", and the same for the median.
void print_gains(const PreparedSession& prepared, const SessionResult& result, double best) {
  const std::string unit = prepared.objective->unit();
  const auto compare = [&](double other, const char* name) {
    if (const auto ratio = gain(best, other, prepared.objective->direction())) {
      fmt::print("  {:.2f} x as good as the {} ({})\n", *ratio, name, human(other, unit));
    } else if (best != other) {
      const bool better = prepared.objective->direction() == Direction::maximise ? best > other : best < other;
      fmt::print("  {} {} than the {} ({})\n", human(std::abs(best - other), unit), better ? "better" : "worse", name,
                 human(other, unit));
    }
  };
  if (result.default_result) {
    const Measurement& other = result.default_result->measurement;
    if (const auto value = prepared.objective->value(other)) {
      compare(*value, "default");
    } else {
      fmt::print("  the default configuration failed: {}\n", other.message);
    }
  }
  if (result.median_value) compare(*result.median_value, "median");
}

bool mentions(const std::string& expression, const std::string& name) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  for (std::size_t at = expression.find(name); at != std::string::npos; at = expression.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !is_letter(expression[at - 1])) && (end == expression.size() || !is_letter(expression[end])))
      return true;
  }
  return false;
}

/// What is shown of a configuration: what the objective is about, then metrics; `first` before both.
std::vector<std::string> shown_names(const PreparedSession& prepared, const Measurement& measurement,
                                     std::vector<std::string> first) {
  const auto add = [&](const std::string& name) {
    if (std::find(first.begin(), first.end(), name) == first.end()) first.push_back(name);
  };
  for (const auto& [name, quantity] : measurement.quantities)
    if (mentions(prepared.objective->name(), name)) add(name);
  for (const std::string& name : prepared.objective->quantities()) add(name);
  for (const Kernel& kernel : prepared.problem.kernels) add("time." + kernel.name);
  for (const Metric& metric : prepared.problem.metrics) add(metric.name);
  return first;
}

void print_best(const PreparedSession& prepared, const SessionResult& result) {
  const ConfigurationResult& best = result.best.front();
  const auto& metrics = prepared.problem.metrics;
  fmt::print("\nBest configuration:\n  {}\n",
             describe(prepared.space->parameters(), prepared.space->configuration(best.index)));
  const auto value = prepared.objective->value(best.measurement);
  // An expression, of which nothing below is the value.
  if (value && prepared.objective->quantity().empty())
    fmt::print("  {:<12} {}\n", prepared.objective->name(), human(*value, prepared.objective->unit()));
  for (const std::string& name :
       shown_names(prepared, best.measurement, {"time", "energy", "power", "core_clock", "temperature"})) {
    if (best.measurement.value(name)) fmt::print("  {:<12} {}\n", name, told(best.measurement, name, metrics));
  }
  for (const std::string& warning : best.measurement.warnings) fmt::print("  note: {}\n", warning);
  if (value) print_gains(prepared, result, *value);
  if (result.probability_best) {
    fmt::print("  {}\n", certainty_text(result.confirmation_repeats, *result.probability_best, result.expected_loss));
  }
  if (const std::string text = repeats_text(result.search_repeats); !text.empty()) fmt::print("  note: {}\n", text);
}

void print_next_best(const PreparedSession& prepared, const SessionResult& result, std::size_t top) {
  const std::string unit = prepared.objective->unit();
  const std::size_t shown = std::min(top, result.best.size());
  if (shown > 1) fmt::print("\nNext best:\n");
  const bool confirmed = result.confirmation_repeats > 0;
  for (std::size_t i = 1; i < shown; ++i) {
    const ConfigurationResult& entry = result.best[i];
    const auto value = prepared.objective->value(entry.measurement);
    // Unconfirmed results are marked: their values may be low by chance.
    const auto behind = unconfirmed_behind(prepared, result, entry);
    const std::string why = behind ? unconfirmed_text(*behind, result.search_repeats, unit) : "not confirmed";
    fmt::print("  {}  {}{}\n", value ? human(*value, unit) : "none",
               describe(prepared.space->parameters(), prepared.space->configuration(entry.index)),
               confirmed && entry.rounds == 0 ? "  (" + why + ")" : "");
  }
}

void print_front(const PreparedSession& prepared, const SessionResult& result) {
  fmt::print("\nPareto front of {}, {}:\n", prepared.objective->name(), counted(result.best.size(), "configuration"));
  for (const ConfigurationResult& entry : result.best) {
    std::string values;
    for (const std::string& name : shown_names(prepared, entry.measurement, {})) {
      if (!entry.measurement.value(name)) continue;
      values += fmt::format("{}{} {}", values.empty() ? "" : ", ", name,
                            told(entry.measurement, name, prepared.problem.metrics));
    }
    fmt::print("  {}  {}\n", values,
               describe(prepared.space->parameters(), prepared.space->configuration(entry.index)));
  }
}

/// "x1.013 ±0.2 %": what a board takes of a quantity where the mean board takes 1.
std::string factor_text(const DeviceFactors::Factor& factor) {
  return fmt::format("x{:.4f} ±{:.2f} %", factor.value,
                     100 * half_width_95(factor.standard_error, factor.n - 1) / factor.value);
}

void print_device_shares(const SessionResult& result) {
  if (result.boards.empty()) return;
  fmt::print("\nBoards, compared by the default on each of them (1: their mean):\n");
  for (const DeviceResult& board : result.boards) {
    const double rate =
        60 * static_cast<double>(board.results) / std::max(1e-9, board.busy_seconds + board.idle_seconds);
    fmt::print("  {}{}  {} measured, {:.1f} a minute, {:.0f} % idle", board.id, board.lost ? " (lost)" : "",
               board.results, rate, 100 * board.idle_seconds / std::max(1e-9, board.busy_seconds + board.idle_seconds));
    for (const char* name : {"time", "energy"})
      if (const auto factor = board.factors.find(name); factor != board.factors.end())
        fmt::print("  {} {}", name, factor_text(factor->second));
    fmt::print("\n");
  }
}

/// Nothing keeps them: all that the compiler or driver said, up to a screen.
void print_text(const std::string& words) {
  if (words.find('\n') == std::string::npos) return;  // the telling line was all
  constexpr std::size_t kLines = 30;
  std::istringstream lines(words);
  std::size_t shown = 0;
  for (std::string line; std::getline(lines, line); ++shown) {
    if (shown == kLines) {
      fmt::print("\n  ... (--json has all of it)");
      break;
    }
    fmt::print("\n  | {}", line);
  }
}

void print_nothing_worked(const PreparedSession& prepared, const SessionResult& result) {
  fmt::print("No configuration worked");
  if (!result.commonest_failure.empty()) {
    fmt::print("; the commonest failure ({} of them) is\n  {}", result.commonest_failure_count,
               result.commonest_failure);
    if (!prepared.store) print_text(result.commonest_failure_message);
  }
  fmt::print("\n");
  // said when it began, and then maybe long ago or not at all (--quiet); one of them may be the reason
  for (const std::string& note : prepared.notes) fmt::print("note: {}\n", note);
  if (prepared.store)
    fmt::print("All words: ergotune show {} --session {} --failures\n", prepared.store->file().string(),
               prepared.store_session);
}

/// A wrong reference makes every right configuration a wrong one.
void note_disagreement(const PreparedSession& prepared, const SessionResult& result) {
  const auto count = [&](Status status) {
    const auto found = result.statuses.find(to_string(status));
    return found == result.statuses.end() ? std::uint64_t{0} : found->second;
  };
  if (prepared.original.verification.kind != Verification::Kind::first_correct || !prepared.live) return;
  if (!result.commonest_failure_message.starts_with("output ")) return;  // nothing was compared
  if (count(Status::wrong_result) <= count(Status::ok) + count(Status::not_converged)) return;
  fmt::print(
      "\nnote: most configurations compute something else than the reference, which is the first one that ran (the "
      "default, where it does); if that one is wrong, the others may be right: name a reference in [verification]\n");
}

}  // namespace
void print_answer(const PreparedSession& prepared, const SessionResult& result, const std::string& file,
                  std::size_t top) {
  fmt::print("{} on {}: {} measured", prepared.problem.name, prepared.device.name,
             counted(result.evaluated, "configuration"));
  if (result.retried > 0) fmt::print(" ({} tried again)", result.retried);
  if (result.resumed > 0) fmt::print(", {} known before", result.resumed);
  fmt::print(" of {} in {} ({})\n", prepared.space->size(), human_duration(result.seconds), result.stopped_because);
  fmt::print("Outcomes: {}\n", statuses_line(result));
  if (result.best.empty()) {
    print_nothing_worked(prepared, result);
  } else if (prepared.objective->kind() == Objective::Kind::pareto) {
    print_front(prepared, result);
  } else {
    print_best(prepared, result);
    print_next_best(prepared, result, top);
    print_importance(prepared.space->parameters(), result.importance);
  }
  print_device_shares(result);
  if (result.disturbed > 0)
    fmt::print(
        "\nnote: {} of them have no result, because the device ran under other clocks or limits than were set each "
        "time: "
        "the best may be among them; the same command measures them again\n",
        result.disturbed);
  note_disagreement(prepared, result);
  if (const std::string note = note_of_model_edge(prepared, result); !note.empty()) fmt::print("\nnote: {}\n", note);
  if (!result.explanation.empty()) fmt::print("\nStrategy: {}\n", result.explanation);
  if (prepared.store && prepared.store->is_there() && result.best.empty()) {
    fmt::print("\nResults: {} (session {})\n", prepared.store->file().string(), prepared.store_session);
  } else if (prepared.store && prepared.store->is_there()) {
    const std::string session =  // of boards of different kinds there are several: one of them was worked on last
        pick_session(*prepared.store).id == prepared.store_session
            ? ""
            : fmt::format(" --session {}", prepared.store_session);
    fmt::print("\nResults: {} (session {})\nNext: ergotune report {}{} -o report.html\n",
               prepared.store->file().string(), prepared.store_session, prepared.store->file().string(), session);
  } else if (!prepared.store) {
    fmt::print("\nNothing was stored.{}\n", result.best.empty() ? "" : " Next: ergotune tune " + file);
  }
}

}  // namespace ergotune::cli
