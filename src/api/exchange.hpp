// Exports results from a store to formats of other tools and imports them: `ergotune export` and `import`, and Python.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

/// kt (Kernel Tuner cache), t4, csv, wisdom (one file per kernel), header (C #defines of the best per device).
const std::vector<std::string>& export_formats();

struct ExportRequest {
  std::filesystem::path source;
  std::string format;
  std::int64_t session = 0;              ///< of a store; 0: the session worked on last, or all sessions for wisdom and
                                         ///< header
  std::optional<std::string> objective;  ///< ranks by this instead of the session's objective
};

struct ExportedText {
  std::string text;
  std::size_t count = 0;  ///< rows; for a header: entries
  std::vector<std::string> warnings;
};

/// Returns the content of an exported file; for wisdom, results must be of a single kernel. Throws UserError if there
/// is nothing to export.
ExportedText export_text(const ExportRequest& request);
/// Writes `output` (a folder for wisdom) and returns the document printed by `ergotune export --json`.
nlohmann::ordered_json export_results(const ExportRequest& request, const std::filesystem::path& output,
                                      std::vector<std::string>& warnings);

/// Adds a recording to a store and returns the document printed by `ergotune import --json`. `name`, `device`: replace
/// the recording's problem and device names unless empty. Throws UserError if the file is a store.
nlohmann::ordered_json import_results(const std::filesystem::path& file, const std::filesystem::path& store,
                                      const std::string& name, const std::string& device);

}  // namespace ergotune
