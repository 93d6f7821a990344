#include <algorithm>
#include <map>
#include <utility>

#include "ergotune/store/store.hpp"
#include "measure/combine.hpp"

namespace ergotune {
namespace {

int standing(Status status) { return status == Status::ok ? 2 : usable(status) ? 1 : 0; }

/// What is known of one configuration while its rows go by.
struct Found {
  StoredRow search;  ///< the best of its search rows
  bool has_search = false;
  std::int64_t last_search = 0;                           ///< id of its last search row
  std::map<std::int64_t, std::vector<StoredRow>> rounds;  ///< by run
};

StoredRow mean_of_rounds(std::vector<StoredRow> rounds, const RunInfo& run) {
  std::vector<Measurement> measurements;
  for (const StoredRow& round : rounds) measurements.push_back(round.measurement);
  StoredRow row = std::move(rounds.back());
  row.measurement = combine(measurements);
  row.rounds = static_cast<int>(measurements.size());
  row.confirmed_for = run.objective;
  return row;
}

}  // namespace

std::string to_string(RowKind kind) { return kind == RowKind::confirmation ? "confirmation" : "search"; }

std::vector<StoredRow> counting_rows(std::vector<StoredRow> rows, const std::vector<RunInfo>& runs) {
  std::map<std::int64_t, const RunInfo*> confirming;
  for (const RunInfo& run : runs) {
    if (run.confirmed > 0) confirming[run.id] = &run;
  }
  std::map<Configuration, std::size_t> seen;
  std::vector<Found> found;
  for (StoredRow& row : rows) {
    const auto [place, added] = seen.emplace(row.configuration, found.size());
    if (added) found.emplace_back();
    Found& of = found[place->second];
    if (row.kind == RowKind::confirmation) {
      if (confirming.contains(row.run)) of.rounds[row.run].push_back(std::move(row));
      continue;
    }
    of.last_search = row.id;
    const int before = of.has_search ? standing(of.search.measurement.status) : -1;
    if (standing(row.measurement.status) > before || before == 0) of.search = std::move(row);
    of.has_search = true;
  }
  std::vector<StoredRow> result;
  for (Found& of : found) {
    // The last confirmation counts, unless it was measured anew since: a failure that was tried again.
    if (!of.rounds.empty() && of.rounds.rbegin()->second.back().id > of.last_search) {
      auto& [run, rounds] = *of.rounds.rbegin();
      result.push_back(mean_of_rounds(std::move(rounds), *confirming.at(run)));
    } else if (of.has_search) {
      result.push_back(std::move(of.search));
    }
  }
  return result;
}

}  // namespace ergotune
