// The content of a page besides a session's rows: the answer, what it is held against, what to make of it. The numbers
// are those of `show`: the page draws, and works out nothing.
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

/// A measured session has a store behind it with an environment; other recordings tell only of themselves.
struct ReportSource {
  Recording recording;
  std::string environment;  ///< JSON object
  Provenance provenance = Provenance::replayed;
  double created_at = 0;  ///< s since the epoch; 0: not known
  /// By row, s since the session's first result; empty where unknown.
  std::vector<double> seconds;
  /// Configurations of the whole space; nullopt where not recorded.
  std::optional<std::uint64_t> space;
  std::string device_name, device_id;  ///< as in ResultSet
  std::filesystem::path store;         ///< empty: a recording
  std::int64_t session = 0;
};

/// A session (0: the latest) of a store, or a recording of any format. Throws UserError.
ReportSource open_report_source(const std::filesystem::path& file, std::int64_t session);
/// What the store holds beside rows: provenance, environment, the size of the space.
void add_session(ReportSource& source, const SessionInfo& session, const std::string& environment);

/// What `recording` was tuned for, or `wanted`. Throws UserError for an objective that means nothing, or that none of
/// its results can answer.
Objective report_objective(const Recording& recording, const std::optional<std::string>& wanted);

/// The results of a source in their order, by report_objective().
RankedResults rank_source(const ReportSource& source, const std::optional<std::string>& wanted);
/// The result document without its importance, and what the page draws beside it; quick.
nlohmann::ordered_json report_document(const ReportSource& source, const RankedResults& ranked);
/// {"importance", "analysis"}: models and bootstraps, seconds of them for large sessions.
nlohmann::ordered_json report_findings(const ReportSource& source, const RankedResults& ranked);

/// Rows as columns, which is what the page draws from (docs/formats.md): `rows` are positions in the recording.
/// Values are rounded to seven digits.
struct ColumnsExtra {
  const std::vector<double>* seconds = nullptr;      ///< since the session's beginning, by row of the recording
  const std::vector<std::string>* stages = nullptr;  ///< by row
  const std::vector<std::string>* gpus = nullptr;    ///< by row
};
std::string columns_json(const Recording& recording, const Objective& objective, const std::vector<std::size_t>& rows,
                         const ColumnsExtra& extra);

}  // namespace ergotune
