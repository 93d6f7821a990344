#include <map>
#include <string_view>
#include <utility>

#include "store/sqlite/store.hpp"

namespace ergotune {
namespace {

int standing(Status status) { return status == Status::ok ? 2 : usable(status) ? 1 : 0; }

/// The rows of one configuration found so far.
struct Found {
  StoredRow* search = nullptr;     ///< the best of its search rows
  StoredRow* confirmed = nullptr;  ///< the last one, unless a search row followed
  std::int64_t run = 0;            ///< the run that measured the latest confirmation repeats, on `gpu`
  std::string_view gpu;
  int rounds = 0;
};

}  // namespace

std::string to_string(RowKind kind) {
  switch (kind) {
    case RowKind::confirmation:
      return "confirmation";
    case RowKind::confirmed:
      return "confirmed";
    case RowKind::reference:
      return "reference";
    case RowKind::search:
      break;
  }
  return "search";
}

std::vector<StoredRow> current_rows(std::vector<StoredRow> rows, const std::vector<RunInfo>& runs) {
  std::map<std::int64_t, const RunInfo*> run_of;
  for (const RunInfo& run : runs) run_of[run.id] = &run;
  const auto before_in_order = [](const Configuration* a, const Configuration* b) { return *a < *b; };
  std::map<const Configuration*, std::size_t, decltype(before_in_order)> seen(before_in_order);
  std::vector<Found> found;
  for (StoredRow& row : rows) {
    if (row.kind == RowKind::reference) continue;
    if (row.kind == RowKind::confirmation && !seen.contains(&row.configuration)) continue;
    const auto [place, added] = seen.emplace(&row.configuration, found.size());
    if (added) found.emplace_back();
    Found& of = found[place->second];
    if (row.kind == RowKind::confirmation) {
      if (of.run != row.run || of.gpu != row.gpu) of.rounds = 0;
      of.run = row.run;
      of.gpu = row.gpu;
      ++of.rounds;
      continue;
    }
    if (row.kind == RowKind::confirmed) {
      // A failed confirmation does not replace the search's result, unless the output was wrong.
      if (of.search && !usable(row.measurement.status) && row.measurement.status != Status::wrong_result) continue;
      if (const auto run = run_of.find(row.run); run != run_of.end()) {
        row.confirmed_for = run->second->objective;
        row.rounds = of.rounds > 0 && of.run == row.run ? of.rounds : run->second->confirmed;
        row.certainty = run->second->certainty;
      }
      of.confirmed = &row;
      continue;
    }
    of.confirmed = nullptr;
    const int before = of.search ? standing(of.search->measurement.status) : -1;
    const int now = standing(row.measurement.status);
    // what was screened by its time, and has its energy since
    const bool completes =
        now > 0 && now == before && !of.search->measurement.value("energy") && row.measurement.value("energy");
    if (now > before || before == 0 || completes) of.search = &row;
  }
  std::vector<StoredRow> result;
  result.reserve(found.size());
  for (const Found& of : found) {
    if (of.confirmed && of.search) of.confirmed->searched = std::move(of.search->measurement);
    result.push_back(std::move(of.confirmed ? *of.confirmed : *of.search));
  }
  return result;
}

}  // namespace ergotune
