// ergotune export: writes stored results in formats of other tools.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "api/exchange.hpp"
#include "cli/command.hpp"
#include "cli/output/progress.hpp"
#include "ergotune/error.hpp"

namespace ergotune::cli {

namespace {

struct ExportOptions {
  std::string source = kDefaultStore, output;
  ExportRequest request;
  bool json = false;
};

void export_with(const ExportOptions& options) {
  ExportRequest request = options.request;
  request.source = options.source;
  const bool wisdom = request.format == "wisdom";
  if (options.output.empty() || options.output == "-") {
    if (options.json)
      throw UserError(
          fmt::format("--json needs -o {}: both would write to standard output", wisdom ? "FOLDER" : "FILE"));
    const ExportedText exported = export_text(request);
    print_warnings(options.source, exported.warnings);
    fmt::print("{}", exported.text);
    return;
  }
  std::vector<std::string> warnings;
  const nlohmann::ordered_json document = export_results(request, options.output, warnings);
  print_warnings(options.source, warnings);
  if (options.json) return print_json(document);
  if (!wisdom) {
    const bool best = document.contains("entries");
    const auto count = document[best ? "entries" : "rows"].get<std::size_t>();
    fmt::print("Wrote {}: {} {}{}\n", options.output, count, best ? "best configuration" : "row",
               count == 1 ? "" : "s");
    return;
  }
  for (const auto& file : document["files"])
    fmt::print("Wrote {}: {}, {} new\n", file["file"].get<std::string>(),
               counted(file["records"].get<std::size_t>(), "record"), file["added"].get<std::size_t>());
}

}  // namespace

void add_export_command(Verb app) {
  auto options = std::make_shared<ExportOptions>();
  Verb verb = app.add_verb("export", "Write stored results in the formats of other tools");
  verb.add_option("source", options->source, "Results: a store, a Kernel Tuner cache, T4 or CSV file").show_default();
  verb.add_option("--format", options->request.format,
                  "kt (Kernel Tuner cache), t4, csv, wisdom (the best, for applications to choose from: a file per "
                  "kernel in a folder), header (the best per device as #defines of C)")
      .required()
      .one_of(export_formats());
  verb.add_option("-o,--output", options->output, "File to write (wisdom: folder; default: standard output)");
  verb.add_option("--session", options->request.session,
                  "Session of the store (default: the one worked on last; wisdom and header: all)");
  verb.add_option("--objective", options->request.objective, "Choose the best by this instead of what was tuned for");
  add_json_option(verb, options->json);
  verb.footer(
      "Examples:\n"
      "  ergotune export results.db --format kt -o cache.json\n"
      "  ergotune export results.db --format header -o gemm_tuned.h\n"
      "  ergotune export results.db --format wisdom -o wisdom\n"
      "  ergotune export results.db --session 1 --format csv\n"
      "In Python: ergotune.export_results(\"results.db\", \"cache.json\", format=\"kt\")");
  verb.callback([options] { export_with(*options); });
}

}  // namespace ergotune::cli
