// Writes a stored session as one self-contained HTML page: its results, comparisons and findings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ergotune {

struct PageParts {
  std::string title;
  /// JSON that the page reads; it is never interpreted as code or markup.
  std::string data;
  /// Markup for browsers without JavaScript.
  std::string table;
  /// Nonce of the content security policy; empty: none (a saved file has no such policy).
  std::string nonce;
};
/// Returns the HTML page with its scripts and styles, for saved reports and for `ergotune watch`.
std::string page_html(const PageParts& parts);

struct ReportSummary {
  std::string problem, device, objective;
  std::uint64_t configurations = 0;  ///< number of measured ones, including failures
  std::uint64_t failed = 0;
  std::optional<std::uint64_t> space;  ///< number of configurations in the space; nullopt: not recorded
  std::filesystem::path file;
  std::string table;                  ///< PageParts::table
  std::vector<std::string> warnings;  ///< about the input: cut off, rows left out
};

/// Writes the report of a session (0: the latest) of a store, or of any recording that load_recording() reads, to
/// `output`. Ranked by `objective`, or by the last run's. Throws UserError if the file cannot be read or has no
/// session, and if the page cannot be written, in which case no file is left.
ReportSummary write_report(const std::filesystem::path& source, std::int64_t session,
                           const std::filesystem::path& output,
                           const std::optional<std::string>& objective = std::nullopt);

/// The complete data of the page as the JSON document in it (docs/formats.md), for `ergotune show --json --page`.
std::string saved_data(const std::filesystem::path& source, std::int64_t session,
                       const std::optional<std::string>& objective, ReportSummary* summary = nullptr);

}  // namespace ergotune
