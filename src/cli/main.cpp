// The command: ergotune VERB ...
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "cli/command.hpp"
#include "ergotune/base/error.hpp"

namespace ergotune::cli {

void print_json(const nlohmann::ordered_json& document) { fmt::print("{}\n", document.dump(2)); }

CLI::Option* add_json_option(CLI::App& verb, bool& json) {
  return verb.add_flag("--json", json, "Print one JSON document on standard output");
}

}  // namespace ergotune::cli

int main(int argc, char** argv) {
  using namespace ergotune;
  CLI::App app{"ergotune: finds the configuration of a GPU kernel that needs least energy, least time, or the best of both."};
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::help);
  app.get_formatter()->column_width(34);
  // verbs, in the order a user meets them
  cli::add_devices_command(app);
  cli::add_space_command(app);
  cli::add_tune_command(app);
  cli::add_measure_command(app);
  cli::add_score_command(app);
  cli::add_worker_command(app);
  cli::add_show_command(app);
  cli::add_report_command(app);
  cli::add_import_command(app);
  cli::add_export_command(app);
  cli::add_analyse_command(app);
  cli::add_model_command(app);
  cli::add_clocks_command(app);
  cli::add_calibrate_command(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  } catch (const UserError& error) {
    fmt::print(stderr, "ergotune: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "ergotune: {}\n", error.what());
    return 1;
  }
  return 0;
}
