#include "cli/output/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "search/known_names.hpp"
#include "search/ranking.hpp"

namespace ergotune::cli {

void print_warnings(const std::filesystem::path& file, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print(stderr, "warning: {}: {}\n", file.string(), warning);
}

ResultSet load_results(const std::filesystem::path& file, std::int64_t session) {
  std::error_code error;
  // Store::open() says what to do about a store that is not there.
  if (is_store(file) || !std::filesystem::exists(file, error)) return load_session(Store::open(file, true), session);
  const Recording recording = load_recording(file);
  print_warnings(file, recording.warnings);
  return result_set(recording);
}

ResultSet load_session(const Store& store, std::int64_t session) {
  ResultSet results = result_set(store, session);
  print_warnings(store.file(), results.warnings);
  return results;
}

namespace {

/// An objective that was asked for and that none of the results can answer.
void refuse(const Objective& objective, const ResultSet& results) {
  std::vector<const Measurement*> all;
  for (const StoredRow& row : results.rows) all.push_back(&row.measurement);
  validate_measured_quantities(objective, all);
}

}  // namespace

RankedResults rank_results(ResultSet results, const std::optional<std::string>& objective) {
  if (objective) {
    results.goal = {*objective, std::nullopt, {}};
    results.objective = *objective;
  }
  std::set<std::string> names;
  for (const StoredRow& row : results.rows)
    for (const auto& [name, quantity] : row.measurement.quantities) names.insert(name);
  Objective parsed = Objective::parse(results.goal, with_names(results.metrics, {names.begin(), names.end()}));
  RankedResults ranked{std::move(results), std::move(parsed), {}, {}, {}};
  ranked.results.objective = ranked.objective.name();
  std::vector<const Measurement*> measurements;
  std::vector<std::size_t> row_of;
  std::set<Configuration> seen;
  for (std::size_t i = 0; i < ranked.results.rows.size(); ++i) {
    const StoredRow& row = ranked.results.rows[i];
    ++ranked.statuses[to_string(row.measurement.status)];
    // of a configuration that is recorded twice the first that worked
    if (!ranked.objective.value(row.measurement) || !seen.insert(row.configuration).second) continue;
    measurements.push_back(&row.measurement);
    row_of.push_back(i);
  }
  const auto confirmed = [&](std::size_t i) { return ranked.is_confirmed(row_of[i]); };
  for (const Ranked& entry : rank(ranked.objective, measurements, confirmed))
    ranked.best.push_back(row_of[entry.position]);
  std::vector<MeasuredTwice> pairs;
  for (const std::size_t row : row_of) {
    const StoredRow& twice = ranked.results.rows[row];
    if (ranked.is_confirmed(row) && twice.searched) pairs.emplace_back(&*twice.searched, &twice.measurement);
  }
  ranked.repeats = repeats_of(ranked.objective, pairs);
  return ranked;
}

RankedResults load_ranked(const std::filesystem::path& file, std::int64_t session,
                          const std::optional<std::string>& objective) {
  RankedResults ranked = rank_results(load_results(file, session), objective);
  if (objective) refuse(ranked.objective, ranked.results);
  return ranked;
}

std::vector<RankedResults> load_all_ranked(const std::filesystem::path& file, std::int64_t session,
                                           const std::optional<std::string>& objective) {
  std::vector<RankedResults> all;
  if (session == 0 && is_store(file)) {
    const Store store = Store::open(file, true);
    for (const SessionInfo& info : store.sessions())
      all.push_back(rank_results(load_session(store, info.id), objective));
  }
  if (all.empty()) all.push_back(load_ranked(file, session, objective));
  return all;
}

Importance importance_of(const RankedResults& ranked) {
  if (ranked.objective.kind() == Objective::Kind::pareto) return {};
  std::vector<Judged> judged;
  for (const StoredRow& row : ranked.results.rows)
    judged.push_back({row.configuration, ranked.objective.value(row.measurement)});
  return ergotune::importance_of(ranked.results.parameters, std::move(judged));
}

std::optional<Certainty> certainty_of(const RankedResults& ranked) {
  if (ranked.objective.kind() == Objective::Kind::pareto || ranked.best.empty()) return std::nullopt;
  if (!ranked.is_confirmed(ranked.best.front())) return std::nullopt;
  return ranked.results.rows[ranked.best.front()].certainty;
}

std::optional<Unconfirmed> RankedResults::unconfirmed(std::size_t row) const {
  if (best.empty() || !is_confirmed(best.front()) || is_confirmed(row)) return std::nullopt;
  return ergotune::unconfirmed(objective, results.rows[row].measurement, results.rows[best.front()].measurement,
                               repeats);
}

std::optional<BestResult> best_of(const RankedResults& ranked) {
  if (ranked.best.empty()) return std::nullopt;
  const StoredRow& row = ranked.results.rows[ranked.best.front()];
  return BestResult{ranked.results.problem,   ranked.results.device,     ranked.results.objective,
                    ranked.results.constants, ranked.results.parameters, row.configuration,
                    row.measurement};
}

}  // namespace ergotune::cli
