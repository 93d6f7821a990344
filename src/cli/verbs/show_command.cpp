// ergotune show: prints the content of a store: the best configurations, and failures with the compiler's messages.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "base/clock.hpp"
#include "cli/command.hpp"
#include "cli/live_options.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/table.hpp"
#include "cli/output/tune_report.hpp"
#include "ergotune/error.hpp"
#include "kernel/configure.hpp"
#include "report/ranked_results.hpp"
#include "report/report.hpp"
#include "report/result_document.hpp"

namespace ergotune::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMessageLines = 12;

struct ShowOptions {
  std::string source = kDefaultStore;
  std::int64_t session = 0;
  std::size_t top = 10;
  std::optional<std::string> objective;
  bool failures = false, sessions = false, json = false, page = false;
};

/// Quantities and metrics worth a column.
struct ValueColumns {
  std::vector<std::string> names;
  std::size_t of_objective = 0;  ///< so many of the first are those of the objective
};

/// The objective's quantities first, which may be read from a program's output, then time and energy, then metrics.
ValueColumns value_columns(const RankedResults& ranked) {
  ValueColumns columns;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(columns.names, name) != columns.names.end()) return;
    const bool there = std::ranges::any_of(
        ranked.best, [&](std::size_t row) { return ranked.measurement(row).value(name).has_value(); });
    if (there) columns.names.push_back(name);
  };
  if (ranked.best.empty()) return columns;
  const Measurement& best = ranked.measurement(ranked.best.front());
  for (const auto& [name, value] : best.metrics)
    if (mentions(ranked.objective.name(), name)) add(name);
  for (const auto& [name, quantity] : best.quantities)
    if (mentions(ranked.objective.name(), name)) add(name);
  for (const std::string& name : ranked.objective.quantities()) add(name);
  columns.of_objective = columns.names.size();
  for (const char* name : {"time", "energy", "power"}) add(name);
  for (const auto& [name, value] : best.metrics) add(name);
  return columns;
}

void print_head(const RankedResults& ranked, const ShowOptions& options) {
  const ResultSet& results = ranked.results;
  fmt::print("{} on {}", results.problem, named_device(results.device));
  if (!results.size.empty()) fmt::print(", {}", values_text(results.size));
  if (results.provenance != Provenance::measured) fmt::print(" ({})", to_string(results.provenance));
  fmt::print("\n{}, by {}: ", options.source, ranked.objective.name());
  std::string statuses;
  for (const auto& [status, count] : ranked.statuses)
    statuses += fmt::format("{}{} {}", statuses.empty() ? "" : ", ", count, status);
  fmt::print("{} ({})\n", counted(results.rows.size(), "row"), statuses.empty() ? "none yet" : statuses);
  for (const auto& [name, value] : results.attributes) fmt::print("{}: {}\n", name, value.to_string());
}

/// Names the other sessions of the store, where the newest was taken because none was chosen.
void print_other_sessions(const RankedResults& ranked, const ShowOptions& options) {
  if (options.session != 0) return;
  std::map<std::string, std::vector<std::string>> values;
  std::size_t others = 0;
  for (const SessionInfo& info : ranked.results.sessions) {
    others += info.id != ranked.results.session;
    for (const auto& [name, value] : info.constants)
      if (auto& found = values[name]; std::ranges::find(found, value.to_string()) == found.end())
        found.push_back(value.to_string());
  }
  if (others == 0) return;
  std::vector<std::string> differing;
  for (const auto& [name, found] : values)
    if (found.size() > 1) differing.push_back(fmt::format("{} ({})", name, fmt::join(found, ", ")));
  fmt::print(
      "session {}, the newest; {} {} {}: --session N chooses one, --sessions lists them\n", ranked.results.session,
      others, others == 1 ? "other differs in" : "others differ in",
      differing.empty() ? "the problem, the device or the settings" : fmt::format("{}", fmt::join(differing, ", ")));
}

void print_best_or_none(const RankedResults& ranked) {
  if (ranked.best.empty()) {
    fmt::print("\nNothing has worked yet.\n");
    return;
  }
  if (ranked.objective.kind() != Objective::Kind::pareto) print_best(ranked);
}

/// Positions of the parameters with several values; the others are not shown in tables.
std::vector<std::size_t> varying_parameters(const ResultSet& results) {
  std::vector<std::size_t> varying;
  for (std::size_t p = 0; p < results.parameters.size(); ++p)
    if (results.parameters[p].values.size() > 1) varying.push_back(p);
  return varying;
}

void print_top(const RankedResults& ranked, std::size_t top) {
  const std::size_t count = std::min(top, ranked.best.size());
  if (count == 0) return;
  const ResultSet& results = ranked.results;
  const auto [values, first] = value_columns(ranked);
  const std::vector<std::size_t> varying = varying_parameters(results);
  const auto shown = std::span(ranked.best).first(count);
  const bool some_unconfirmed =
      std::ranges::any_of(shown, [&](std::size_t row) { return ranked.unconfirmed(row).has_value(); });
  // Columns that do not fit are left out from the right: objective and configuration come first.
  std::vector<std::string> header{"#"};
  header.insert(header.end(), values.begin(), values.begin() + static_cast<std::ptrdiff_t>(first));
  if (some_unconfirmed) header.emplace_back("confirmed");
  for (const std::size_t p : varying) header.push_back(results.parameters[p].name);
  header.insert(header.end(), values.begin() + static_cast<std::ptrdiff_t>(first), values.end());
  Table table(header);
  if (some_unconfirmed) table.align_left(1 + first);
  bool unsure = false, stopped = false, unknown = false, behind_by_clock = false, outside = false;
  for (std::size_t i = 0; i < count; ++i) {
    const StoredRow& row = results.rows[ranked.best[i]];
    const bool converged = row.measurement.status != Status::not_converged;
    const auto& warnings = row.measurement.warnings;
    const bool is_stopped =
        std::ranges::any_of(warnings, [](const std::string& text) { return text.starts_with("stopped early"); });
    unsure = unsure || !converged;
    stopped = stopped || is_stopped;
    const bool is_behind_by_clock = ranked.is_behind_by_clock(ranked.best[i]);
    behind_by_clock = behind_by_clock || is_behind_by_clock;
    const bool is_outside = ranked.objective.violates_condition(row.measurement);
    outside = outside || is_outside;
    std::vector<std::string> cells{fmt::format("{}{}{}{}{}", i + 1, converged ? "" : "~", is_stopped ? "!" : "",
                                               is_behind_by_clock ? "^" : "", is_outside ? "x" : "")};
    const auto value = [&](std::size_t v) {
      cells.push_back(with_interval(row.measurement, values[v], results.metrics, " ±?"));
      unknown = unknown || cells.back().ends_with('?');
    };
    for (std::size_t v = 0; v < first; ++v) value(v);
    if (some_unconfirmed) {
      const auto unconfirmed = ranked.unconfirmed(ranked.best[i]);
      cells.push_back(unconfirmed ? "no, " + human(unconfirmed->expected, ranked.objective.unit()) : "yes");
    }
    for (const std::size_t p : varying) cells.push_back(row.configuration[p].to_string());
    for (std::size_t v = first; v < values.size(); ++v) value(v);
    table.add(std::move(cells));
  }
  const bool front = ranked.objective.kind() == Objective::Kind::pareto;
  fmt::print("\n{} {} of {}{}\n{}", front ? "Pareto front:" : "Top", count, ranked.best.size(),
             mark_of(results.provenance), table.to_string(2, terminal_width()));
  if (unsure) fmt::print("  ~ not converged: valid, but its own interval is wider than requested (--precision)\n");
  if (stopped)
    fmt::print("  ! stopped early: its interval lay above the best so far of the search, so it stays wide\n");
  if (behind_by_clock)
    fmt::print("  ^ within the interval of the best, but a power limit held its clock below the requested one\n");
  if (outside) fmt::print("  x outside of the condition of the objective\n");
  if (unknown) fmt::print("  ±? too few samples for an interval narrower than the value\n");
  if (some_unconfirmed)
    fmt::print("  confirmed: no, with the value expected: confirmed values were {:.3g} times those of the search\n",
               ranked.confidence.search_repeats.factor);
}

void print_failures(const RankedResults& ranked) {
  const auto failures = ranked.failures();
  fmt::print("\nFailures{}\n", failures.empty() ? ": none" : "");
  for (const FailureGroup& failure : failures) {
    fmt::print("  {} x {}, first with {}\n", failure.count, to_string(failure.status),
               ranked.configuration_text(failure.first));
    std::size_t begin = 0, lines = 0;
    while (begin < failure.message.size()) {
      const std::size_t end = std::min(failure.message.find('\n', begin), failure.message.size());
      if (lines++ == kMessageLines) {
        fmt::print("      ... (--json has all of it)\n");
        break;
      }
      fmt::print("      {}\n", failure.message.substr(begin, end - begin));
      begin = end + 1;
    }
  }
}

void print_sessions(const Store& store) {
  Table table({"session", "problem", "differing constants", "device", "objective", "configurations", "begun", "what",
               "settings"});
  for (const std::size_t column : {1, 2, 3, 4, 6, 7, 8}) table.align_left(column);
  for (const SessionInfo& info : store.sessions()) {
    table.add({std::to_string(info.id), info.problem, values_text(info.constants), info.device, info.objective.text,
               std::to_string(store.configurations(info.id)), iso_time(info.created_at), to_string(info.provenance),
               info.conditions});
  }
  fmt::print("{}", table.to_string(0, std::max<std::size_t>(terminal_width(), 120)));
  print_warnings(store.file(), store.warnings());
}

void show(const ShowOptions& options) {
  if (options.page && !options.json)
    throw UserError("--page goes with --json; \"ergotune report\" writes the page itself");
  if (options.sessions && !options.json) {
    print_sessions(Store::open(options.source, true));
    return;
  }
  const RankedResults ranked = load_ranked(options.source, options.session, options.objective);
  print_warnings(options.source, ranked.results.warnings);
  if (options.json) {
    Json json = stored_document(ranked, options.source, options.top);
    if (options.page) json["page"] = Json::parse(saved_data(options.source, options.session, options.objective));
    print_json(json);
    return;
  }
  print_head(ranked, options);
  print_other_sessions(ranked, options);
  for (const std::string& note : ranked.results.notes) fmt::print("note: {}\n", note);
  print_best_or_none(ranked);
  print_top(ranked, options.top);
  print_screened(ranked.screened());
  print_importance(ranked.results, ranked.importance());
  if (options.failures) {
    print_failures(ranked);
  } else if (const auto failed = ranked.failed(); failed > 0) {
    fmt::print("\n{} failed; --failures shows why\n", failed);
  }
}

}  // namespace

void add_show_command(Verb app) {
  auto options = std::make_shared<ShowOptions>();
  Verb verb = app.add_verb("show", "Show the best configurations and the failures of stored results");
  verb.add_option("source", options->source, "Results: a store, a Kernel Tuner cache, T4 or CSV file").show_default();
  verb.add_option("--session", options->session, "Session of the store (default: the one worked on last)");
  verb.add_option("--top", options->top, "Rows of the table of the best").show_default();
  verb.add_option("--objective", options->objective, "Rank by this instead of what was tuned for");
  verb.add_flag("--failures", options->failures, "Print what failed, with the messages of the compiler or driver");
  verb.add_flag("--sessions", options->sessions, "List the sessions of the store");
  verb.add_flag("--page", options->page, "With --json: all that the report and the live page draw from");
  add_json_option(verb, options->json);
  verb.footer(
      "Examples:\n"
      "  ergotune show\n"
      "  ergotune show results.db --session 2 --top 20 --objective energy\n"
      "  ergotune show results.db --failures\n"
      "  ergotune show results.db --sessions\n"
      "  ergotune show cache.json --json\n"
      "In Python: ergotune.show(\"results.db\")");
  verb.callback([options] { show(*options); });
}

}  // namespace ergotune::cli
