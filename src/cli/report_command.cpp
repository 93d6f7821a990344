// ergotune report: a stored session as one HTML page.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "ergotune/report/report.hpp"

namespace ergotune::cli {

void add_report_command(Verb app) {
  struct Options {
    std::string source = "ergotune.db", output = "report.html";
    std::int64_t session = 0;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb = app.add_verb("report", "Write a stored session as one self-contained HTML page");
  verb.add_option("source", options->source, "Results: a store, a Kernel Tuner cache, T4 or CSV file")
      .show_default();
  verb.add_option("-o,--output", options->output, "Page to write").show_default();
  verb.add_option("--session", options->session, "Session of the store (default: the latest)");
  add_json_option(verb, options->json);
  verb.footer("Example: ergotune report ergotune.db -o report.html");
  verb.callback([options] {
    const auto summary = write_report(options->source, options->session, options->output);
    if (options->json) {
      print_json({{"report", summary.file.string()},
                  {"problem", summary.problem},
                  {"device", summary.device},
                  {"objective", summary.objective},
                  {"configurations", summary.configurations},
                  {"failed", summary.failed}});
    } else {
      fmt::print("Wrote {}: {} on {}, {} configurations ({} failed).\n", summary.file.string(),
                 summary.problem, summary.device, summary.configurations, summary.failed);
    }
  });
}

}  // namespace ergotune::cli
