// ergotune import: results of other tools into a store.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/hash.hpp"
#include "cli/command.hpp"
#include "cli/output/results.hpp"
#include "ergotune/problem.hpp"
#include "evaluate/recorded/replay.hpp"

namespace ergotune::cli {

namespace {

struct ImportOptions {
  std::string file, store = kDefaultStore;
  std::string name, device;
  bool json = false;
};

void import_file(const ImportOptions& options) {
  if (is_store(options.file)) {
    throw UserError("this is a store already; use it as it is", {options.file, 0, 0});
  }
  Recording recording = load_recording(options.file);
  print_warnings(options.file, recording.warnings);
  if (!options.name.empty()) recording.name = options.name;
  if (!options.device.empty()) recording.device = options.device;
  const std::string document = serialise(problem_of(recording));
  Store store = Store::open(options.store);
  SessionIdentity identity;
  identity.problem = recording.name;
  identity.problem_document = document;
  identity.device = recording.device;
  identity.conditions = "imported from " + std::filesystem::path(options.file).filename().string();
  identity.provenance = Provenance::replayed;
  std::vector<std::string> names;
  for (const Parameter& parameter : recording.parameters) names.push_back(parameter.name);
  const nlohmann::ordered_json environment{{"imported_from", std::filesystem::path(options.file).filename().string()},
                                           {"imported_at", iso_time(wall_seconds())}};
  const std::int64_t session =
      store.session(identity, names, recording.objective.text,
                    environment.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), document);
  // The same file again adds what it has gained since, as a live cache does.
  std::vector<Configuration> known;
  for (const StoredRow& row : store.rows(session)) known.push_back(row.configuration);
  std::sort(known.begin(), known.end());
  std::vector<StoredRow> rows;
  for (std::size_t row = 0; row < recording.size(); ++row) {
    Configuration configuration = recording.configuration(row);
    if (std::binary_search(known.begin(), known.end(), configuration)) continue;
    StoredRow& added = rows.emplace_back();
    added.configuration = std::move(configuration);
    added.measurement = recording.measurement(row);
  }
  store.add_all(session, rows);
  store.flush();
  if (options.json) {
    print_json({{"store", options.store},
                {"session", session},
                {"problem", recording.name},
                {"device", recording.device},
                {"rows", recording.size()},
                {"added", rows.size()},
                {"restrictions_known", recording.restrictions_known},
                {"warnings", recording.warnings}});
    return;
  }
  fmt::print("{} on {}: {} rows, {} new, in {} (session {})\n", recording.name,
             recording.device.empty() ? "an unnamed device" : recording.device, recording.size(), rows.size(),
             options.store, session);
}

}  // namespace

void add_import_command(Verb app) {
  auto options = std::make_shared<ImportOptions>();
  Verb verb = app.add_verb("import", "Bring results of other tools into a store");
  verb.add_option("file", options->file, "A Kernel Tuner cache (gzip or not, cut off or not), T4 results, or CSV")
      .required();
  verb.add_option("--store", options->store, "The store to add them to, made where there is none").show_default();
  verb.add_option("--name", options->name, "Name of the problem (default: what the file says)");
  verb.add_option("--device", options->device, "Name of the device (default: what the file says)");
  add_json_option(verb, options->json);
  verb.footer(
      "A T1 file beside it (convolution.T1.json for convolution_A100.json.gz) gives restrictions and "
      "defaults.\n"
      "Examples:\n"
      "  ergotune import convolution_A100.json.gz --store results.db\n"
      "  ergotune import recorded.json --store results.db --device \"My GPU\" --json");
  verb.callback([options] { import_file(*options); });
}

}  // namespace ergotune::cli
