// ergotune import: results of other tools into a store.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "evaluate/recorded/import_recording.hpp"

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
  Store store = Store::open(options.store);
  const ImportedSession imported = import_recording(store, recording);
  if (options.json) {
    print_json({{"store", options.store},
                {"session", imported.session},
                {"problem", recording.name},
                {"device", recording.device},
                {"rows", recording.size()},
                {"added", imported.added},
                {"restrictions_known", recording.restrictions_known},
                {"warnings", recording.warnings}});
    return;
  }
  fmt::print("{} on {}: {} rows, {} new, in {} (session {})\n", recording.name,
             recording.device.empty() ? "an unnamed device" : recording.device, recording.size(), imported.added,
             options.store, imported.session);
}

}  // namespace

void add_import_command(Verb app) {
  auto options = std::make_shared<ImportOptions>();
  Verb verb = app.add_verb("import", "Bring results of other tools into a store");
  verb.add_option("file", options->file, "A Kernel Tuner cache (gzip or not, cut off or not), T4 results, or CSV")
      .required();
  verb.add_option("--store", options->store, "The store to add them to, made where there is none").show_default();
  verb.add_option("--name", options->name, "Name of the problem (default: the one in the file)");
  verb.add_option("--device", options->device, "Name of the device (default: the one in the file)");
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
