// Results in the formats of others, out of a store and into one: `ergotune export` and `import`, and Python.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ergotune {

/// kt (Kernel Tuner cache), t4, csv, wisdom (a file per kernel), header (the best per device as #defines of C).
const std::vector<std::string>& export_formats();

struct ExportRequest {
  std::filesystem::path source;
  std::string format;
  std::int64_t session = 0;              ///< of a store; 0: the one worked on last; wisdom and header: all
  std::optional<std::string> objective;  ///< chooses the best instead of what was tuned for
};

struct ExportedText {
  std::string text;
  std::size_t count = 0;  ///< rows; of a header: entries
  std::vector<std::string> warnings;
};

/// The text of a file; of wisdom, of one kernel's. Throws UserError where there is nothing to export.
ExportedText export_text(const ExportRequest& request);
/// Writes `output` (wisdom: a folder); the document of `ergotune export --json`.
nlohmann::ordered_json export_results(const ExportRequest& request, const std::filesystem::path& output,
                                      std::vector<std::string>& warnings);

/// Adds a recording to a store, under other names of problem and device where they are given; the document of
/// `ergotune import --json`. Throws UserError for a file that is a store.
nlohmann::ordered_json import_results(const std::filesystem::path& file, const std::filesystem::path& store,
                                      const std::string& name, const std::string& device);

}  // namespace ergotune
