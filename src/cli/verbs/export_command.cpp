// ergotune export: stored results in the formats of others.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "api/wisdom_records.hpp"
#include "base/files.hpp"
#include "cli/command.hpp"
#include "ergotune/error.hpp"
#include "report/ranked_results.hpp"

namespace ergotune::cli {

namespace {

struct ExportOptions {
  std::string source = kDefaultStore, format, output;
  std::int64_t session = 0;
  std::optional<std::string> objective;
  bool json = false;
};

const std::vector<std::string> kFormats{"kt", "t4", "csv", "wisdom", "header"};

/// Headers hold the best of every session (or of the one asked for).
std::string best_text(const ExportOptions& options, std::size_t& count) {
  std::vector<BestResult> best;
  // The latest session first: for a device tuned twice its result holds.
  auto all = load_all_ranked(options.source, options.session, options.objective);
  for (auto ranked = all.rbegin(); ranked != all.rend(); ++ranked) {
    print_warnings(options.source, ranked->results.warnings);
    if (auto entry = ranked->winner()) best.push_back(std::move(*entry));
  }
  if (best.empty())
    throw UserError("nothing has worked in these results, so there is no best to export", {options.source, 0, 0});
  count = best.size();
  return to_c_header(best);
}

/// A file per kernel in a folder; on standard output one kernel's.
void export_wisdom(const ExportOptions& options) {
  const auto wisdom = wisdom_of(options.source, options.session, options.objective);
  if (options.output.empty() || options.output == "-") {
    if (options.json) throw UserError("--json needs -o FOLDER: both would write to standard output");
    if (wisdom.size() > 1)
      throw UserError(fmt::format(
          "these results are of {} kernels, and each has a file of its own: name a folder with -o", wisdom.size()));
    fmt::print("{}", to_text({wisdom.begin()->first, wisdom.begin()->second, {}}));
    return;
  }
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const WrittenWisdom& written : write_wisdom(options.output, wisdom)) {
    files.push_back({{"file", written.file.string()},
                     {"kernel", written.kernel},
                     {"records", written.records},
                     {"added", written.added}});
    if (!options.json)
      fmt::print("Wrote {}: {} records, {} of them new\n", written.file.string(), written.records, written.added);
  }
  if (options.json) print_json({{"format", "wisdom"}, {"folder", options.output}, {"files", files}});
}

std::string rows_text(const ExportOptions& options, std::size_t& count) {
  ResultSet results = load_results(options.source, options.session);
  print_warnings(options.source, results.warnings);
  if (options.objective) results.objective = *options.objective;
  count = results.rows.size();
  if (options.format == "kt") return to_kernel_tuner_cache(results);
  if (options.format == "csv") return to_csv(results);
  return to_t4_results(results);
}

void export_results(const ExportOptions& options) {
  if (options.format == "wisdom") return export_wisdom(options);
  std::size_t count = 0;
  const bool best = options.format == "header";
  const std::string text = best ? best_text(options, count) : rows_text(options, count);
  if (options.output.empty() || options.output == "-") {
    if (options.json) throw UserError("--json needs -o FILE: both would write to standard output");
    fmt::print("{}", text);
    return;
  }
  write_named_file(options.output, text);
  if (options.json) {
    print_json({{"file", options.output}, {"format", options.format}, {best ? "entries" : "rows", count}});
  } else {
    fmt::print("Wrote {}: {} {}\n", options.output, count, best ? "best configurations" : "rows");
  }
}

}  // namespace

void add_export_command(Verb app) {
  auto options = std::make_shared<ExportOptions>();
  Verb verb = app.add_verb("export", "Write stored results in the formats of other tools");
  verb.add_option("source", options->source, "Results: a store, a Kernel Tuner cache, T4 or CSV file").show_default();
  verb.add_option("--format", options->format,
                  "kt (Kernel Tuner cache), t4, csv, wisdom (the best, for applications to choose from: a "
                  "file per "
                  "kernel in a folder), header (the best per device as #defines of C)")
      .required()
      .one_of(kFormats);
  verb.add_option("-o,--output", options->output, "File to write (wisdom: folder; default: standard output)");
  verb.add_option("--session", options->session,
                  "Session of the store (default: the one worked on last; wisdom and header: all)");
  verb.add_option("--objective", options->objective, "Choose the best by this instead of what was tuned for");
  add_json_option(verb, options->json);
  verb.footer(
      "Examples:\n"
      "  ergotune export results.db --format kt -o cache.json\n"
      "  ergotune export results.db --format header -o gemm_tuned.h\n"
      "  ergotune export results.db --format wisdom -o wisdom\n"
      "  ergotune export results.db --session 1 --format csv");
  verb.callback([options] { export_results(*options); });
}

}  // namespace ergotune::cli
