// One self-contained HTML page about a stored session: what was found, against what, and what to make of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace ergotune {

struct ReportSummary {
  std::string problem, device, objective;
  std::uint64_t configurations = 0, failed = 0;
  std::filesystem::path file;
};

/// Writes the report of a session (0: the latest) of a store, or of any recording load_recording() reads, to `output`.
/// Throws UserError when the file cannot be read or has no session.
ReportSummary write_report(const std::filesystem::path& source, std::int64_t session,
                           const std::filesystem::path& output);

}  // namespace ergotune
