// ergotune import: adds results of other tools to a store.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "api/exchange.hpp"
#include "cli/command.hpp"
#include "cli/output/progress.hpp"

namespace ergotune::cli {

namespace {

struct ImportOptions {
  std::string file, store = kDefaultStore;
  std::string name, device;
  bool json = false;
};

void import_file(const ImportOptions& options) {
  const nlohmann::ordered_json document = import_results(options.file, options.store, options.name, options.device);
  print_warnings(options.file, document["warnings"].get<std::vector<std::string>>());
  if (options.json) return print_json(document);
  const std::string device = document["device"];
  fmt::print("{} on {}: {} rows, {} new, in {} (session {})\n", document["problem"].get<std::string>(),
             named_device(device), document["rows"].get<std::size_t>(), document["added"].get<std::size_t>(),
             options.store, document["session"].get<std::int64_t>());
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
      "A T1 file beside it (convolution.T1.json for convolution_A100.json.gz) gives restrictions and defaults.\n"
      "Examples:\n"
      "  ergotune import convolution_A100.json.gz --store results.db\n"
      "  ergotune import recorded.json --store results.db --device \"My GPU\" --json\n"
      "In Python: ergotune.import_results(\"cache.json\", \"results.db\")");
  verb.callback([options] { import_file(*options); });
}

}  // namespace ergotune::cli
