// ergotune report: writes a stored session as an HTML page.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/output/progress.hpp"
#include "ergotune/error.hpp"
#include "report/report.hpp"

namespace ergotune::cli {

void add_report_command(Verb app) {
  struct Options {
    std::string source = "ergotune.db", output = "report.html";
    std::int64_t session = 0;
    std::optional<std::string> objective;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb = app.add_verb("report", "Write a stored session as one self-contained HTML page");
  verb.add_option("source", options->source, "Results: a store, a Kernel Tuner cache, T4 or CSV file").show_default();
  verb.add_option("-o,--output", options->output, "Page to write (-: standard output)").show_default();
  verb.add_option("--session", options->session, "Session of the store (default: the one worked on last)");
  verb.add_option("--objective", options->objective, "Rank by this instead of what was tuned for last");
  add_json_option(verb, options->json);
  verb.footer(
      "Examples:\n"
      "  ergotune report ergotune.db -o report.html\n"
      "  ergotune report ergotune.db --objective energy\n"
      "  ergotune report results.db --session 1 -o first.html --json\n"
      "In Python: ergotune.write_report(\"results.db\", \"report.html\")");
  verb.callback([options] {
    if (options->json && options->output == "-")
      throw UserError("--json needs -o FILE: both would write to standard output");
    const auto summary = write_report(options->source, options->session, options->output, options->objective);
    print_warnings(options->source, summary.warnings);
    if (options->json) {
      print_json({{"report", summary.file.string()},
                  {"problem", summary.problem},
                  {"device", summary.device},
                  {"objective", summary.objective},
                  {"configurations", summary.configurations},
                  {"failed", summary.failed},
                  {"space", summary.space ? nlohmann::ordered_json(*summary.space) : nlohmann::ordered_json(nullptr)}});
    } else if (options->output != "-") {
      fmt::print("Wrote {}: {} on {} by {}, {} configurations evaluated{} ({} failed).\n", summary.file.string(),
                 summary.problem, named_device(summary.device), summary.objective, summary.configurations,
                 summary.space ? fmt::format(" of {}", *summary.space) : "", summary.failed);
    }
  });
}

}  // namespace ergotune::cli
