// One self-contained HTML page about a stored session: what was found, against what, and what to make of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ergotune {

struct ReportSummary {
  std::string problem, device, objective;
  std::uint64_t configurations = 0;  ///< that were measured, failures among them
  std::uint64_t failed = 0;
  std::optional<std::uint64_t> space;  ///< configurations there are; nullopt where not recorded
  std::filesystem::path file;
  std::vector<std::string> warnings;  ///< of what was read: it is cut off, rows are left out
};

/// Writes the report of a session (0: the latest) of a store, or of any recording load_recording() reads, to `output`.
/// Ranked by `objective`, or by what the last run wanted. Throws UserError when the file cannot be read or has no
/// session, and when the page cannot be written: then nothing of it is.
ReportSummary write_report(const std::filesystem::path& source, std::int64_t session,
                           const std::filesystem::path& output,
                           const std::optional<std::string>& objective = std::nullopt);

/// All that this page shows, as the JSON document that it holds (docs/formats.md): `ergotune show --json --page`.
std::string saved_data(const std::filesystem::path& source, std::int64_t session,
                       const std::optional<std::string>& objective, ReportSummary* summary = nullptr);

}  // namespace ergotune
