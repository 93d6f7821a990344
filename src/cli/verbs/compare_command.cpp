// ergotune compare: compares sessions.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/table.hpp"
#include "ergotune/error.hpp"
#include "kernel/configure.hpp"
#include "report/comparison_json.hpp"

namespace ergotune::cli {
namespace {

struct CompareArguments {
  std::vector<std::string> sources;
  std::optional<std::string> objective;
  bool json = false;
};

/// "loses 3.10 ±0.20 %". The best of a session may be worse than another of its configurations, which was not
/// confirmed.
std::string loss_text(const std::optional<double>& loss, double error) {
  if (!loss) return "was not measured there";
  const std::string share =
      fmt::format("{:.2f}{} %", 100 * std::abs(*loss), error > 0 ? fmt::format(" ±{:.2f}", 196 * error) : "");
  return *loss >= 0 ? "loses " + share : "reads " + share + " better than the best there, without being confirmed";
}

/// " ±2.0 %"; " ±?" if it is wider than the value; empty if it is unknown.
std::string interval_text(double value, double half_width) {
  if (!(half_width > 0) || value == 0) return {};
  const double share = half_width / std::abs(value);
  return share < 1 ? fmt::format(" ±{:.1f} %", 100 * share) : " ±?";
}

void print(const std::vector<std::string>& names, const std::vector<ComparedSession>& sessions,
           const Comparison& comparison) {
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    const auto& side = comparison.sides[i];
    const Recording& recording = *sessions[i].recording;
    const std::string unit = sessions[i].objective->unit();
    const std::string mark = mark_of(recording.provenance);
    const Constants& constants = sessions[i].differing_constants;
    fmt::print("{}: {} on {}{}, {} worked\n", names[i], recording.name, named_device(recording.device),
               constants.empty() ? std::string() : " with " + values_text(constants), side.usable);
    if (side.best)
      fmt::print("  best {} {}{}{}  {}\n", sessions[i].objective->name(), human(side.value, unit),
                 interval_text(side.value, side.half_width), mark,
                 describe(recording.parameters, recording.configuration(*side.best)));
  }
  for (const auto& pair : comparison.pairs) {
    fmt::print("\n{} and {}: {} configurations worked in both", names[pair.a], names[pair.b], pair.common);
    if (pair.rank_correlation) fmt::print(", rank correlation {:.3f}", *pair.rank_correlation);
    fmt::print("\n  the best of {} in {} {}\n  the best of {} in {} {}\n", names[pair.a], names[pair.b],
               loss_text(pair.loss_of_a_in_b, pair.loss_error_a_in_b), names[pair.b], names[pair.a],
               loss_text(pair.loss_of_b_in_a, pair.loss_error_b_in_a));
  }
  std::vector<std::string> header;
  for (std::size_t i = 0; i < names.size(); ++i)
    header.push_back(names[i] + mark_of(sessions[i].recording->provenance));
  header.push_back("configuration");
  Table table(header);
  table.align_left(names.size());
  bool marked = false;
  for (const auto& row : comparison.rows) {
    std::vector<std::string> cells;
    for (std::size_t i = 0; i < names.size(); ++i) {
      cells.push_back(row.values[i]
                          ? fmt::format("{}{} (#{}{})", human(*row.values[i], sessions[i].objective->unit()),
                                        interval_text(*row.values[i], row.half_widths[i]), *row.places[i], row.marks[i])
                          : "-");
      marked = marked || !row.marks[i].empty();
    }
    cells.push_back(row.configuration);
    table.add(std::move(cells));
  }
  fmt::print("\nBest of each, and where they stand in the others\n{}", table.to_string(2, terminal_width()));
  if (marked) fmt::print("  ~ not converged; ! stopped early, because it could not win there\n");
}

void compare(const CompareArguments& arguments) {
  if (arguments.sources.size() < 2) throw UserError("name two sessions or more: ergotune compare before.db after.db");
  const ComparedFiles compared = compare_files(arguments.sources, arguments.objective);
  for (const auto& [file, warnings] : compared.warnings) print_warnings(file, warnings);
  if (arguments.json) return print_json(comparison_json(arguments.sources, compared.sessions, compared.comparison));
  print(arguments.sources, compared.sessions, compared.comparison);
}

}  // namespace

void add_compare_command(Verb app) {
  auto arguments = std::make_shared<CompareArguments>();
  Verb verb = app.add_verb("compare", "Compare sessions: best, ranking, and what the best of one loses in the other");
  verb.add_option("sources", arguments->sources,
                  "Two or more: a store (its latest session), STORE:SESSION, or any recording");
  verb.add_option("--objective", arguments->objective, "Compare by this instead of what was tuned for");
  add_json_option(verb, arguments->json);
  verb.footer(
      "Examples:\n"
      "  ergotune compare before.db after.db\n"
      "  ergotune compare results.db:1 results.db:2 --objective time\n"
      "  ergotune compare recorded_a100.json recorded_mi250x.json --json\n"
      "In Python: ergotune.compare(\"before.db\", \"after.db\")");
  verb.callback([arguments] { compare(*arguments); });
}

}  // namespace ergotune::cli
