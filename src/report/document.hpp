// The content of a page except a session's rows: the result, comparisons and findings. All numbers equal those of
// `show`; the page only draws them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "report/ranked_results.hpp"
#include "search/objective.hpp"
#include "store/formats/recording.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {

/// The input of a report. A measured session comes from a store and has an environment; a recording has only its
/// content.
struct ReportSource {
  Recording recording;
  std::string environment;  ///< JSON object
  double created_at = 0;    ///< s since the epoch; 0: unknown
  /// By row, s since the session's first result; empty: unknown.
  std::vector<double> seconds;
  /// Number of configurations in the space; nullopt: not recorded.
  std::optional<std::uint64_t> space;
  std::string device_name, device_id;  ///< as in ResultSet
  Constants size;                      ///< as in ResultSet
  std::filesystem::path store;         ///< empty: a recording
  std::int64_t session = 0;
};

/// Opens a session (0: the latest) of a store, or a recording of any format. Throws UserError if the file cannot be
/// read.
ReportSource open_report_source(const std::filesystem::path& file, std::int64_t session);
/// Adds information from the store besides rows: provenance, environment, the size of the space.
void add_session(ReportSource& source, const SessionInfo& session, const std::string& environment);

/// The objective of `recording`, or `wanted` if given. Throws UserError for an invalid objective, and for one that no
/// result has a value of.
Objective report_objective(const Recording& recording, const std::optional<std::string>& wanted);

/// Ranks the results of a source by report_objective().
RankedResults rank_source(const ReportSource& source, const std::optional<std::string>& wanted);
/// The result document without importance, and additional data for the page. Fast.
nlohmann::ordered_json report_document(const ReportSource& source, const RankedResults& ranked);
/// {"importance", "analysis", "predictions"}: from models and bootstraps, which take seconds for large sessions.
nlohmann::ordered_json report_findings(const ReportSource& source, const RankedResults& ranked);

/// Optional columns for columns_json(), which returns rows as columns for the page (docs/formats.md). `rows` are
/// positions in the recording. Values are rounded to seven digits.
struct ColumnsExtra {
  const std::vector<double>* seconds = nullptr;      ///< since the start of the session, by row of the recording
  const std::vector<std::string>* stages = nullptr;  ///< by row
  const std::vector<std::string>* gpus = nullptr;    ///< by row
};
std::string columns_json(const Recording& recording, const Objective& objective, const std::vector<std::size_t>& rows,
                         const ColumnsExtra& extra);

}  // namespace ergotune
