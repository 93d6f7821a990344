#include "cli/results.hpp"

#include <algorithm>
#include <fstream>
#include <map>

namespace ergotune::cli {

namespace {

bool dominates(const std::vector<double>& a, const std::vector<double>& b) {
  bool better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better = better || a[i] < b[i];
  }
  return better;
}

/// Keeps what nothing dominates, in the order of the first objective.
void keep_front(std::vector<std::size_t>& rows, const std::map<std::size_t, Outcome>& outcomes) {
  // In ascending order of the first value (and the others for equal ones) only earlier rows can dominate
  // later ones.
  std::sort(rows.begin(), rows.end(),
            [&](std::size_t a, std::size_t b) { return outcomes.at(a).values < outcomes.at(b).values; });
  std::vector<std::size_t> front;
  for (const std::size_t row : rows) {
    const bool dominated = std::any_of(front.begin(), front.end(), [&](std::size_t other) {
      return dominates(outcomes.at(other).values, outcomes.at(row).values);
    });
    if (!dominated) front.push_back(row);
  }
  rows = std::move(front);
}

}  // namespace

bool is_store(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string header(15, '\0');
  stream.read(header.data(), static_cast<std::streamsize>(header.size()));
  return header == "SQLite format 3";
}

ResultSet load_results(const std::filesystem::path& file, std::int64_t session) {
  std::error_code error;
  // Store::open() says what to do about a store that is not there.
  if (is_store(file) || !std::filesystem::exists(file, error))
    return result_set(Store::open(file, true), session);
  return result_set(load_recording(file));
}

RankedResults rank(ResultSet results, const std::optional<std::string>& objective) {
  if (objective) {
    results.goal = {*objective, std::nullopt, {}};
    results.objective = *objective;
  }
  Objective parsed = Objective::parse(results.goal, results.metrics);
  RankedResults ranked{std::move(results), std::move(parsed), {}, {}};
  const auto& rows = ranked.results.rows;
  ranked.results.objective = ranked.objective.name();
  for (const StoredRow& row : rows) {
    ++ranked.statuses[to_string(row.measurement.status)];
    ranked.objective.outcome(row.measurement);  // so that best(quantity) is known before anything is compared
  }
  std::map<std::size_t, Outcome> outcomes;
  std::map<Configuration, std::size_t> seen;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Outcome outcome = ranked.objective.outcome(rows[i].measurement);
    if (!outcome.ok || !seen.emplace(rows[i].configuration, i).second) continue;
    outcomes.emplace(i, std::move(outcome));
    ranked.best.push_back(i);
  }
  if (ranked.objective.kind() == Objective::Kind::pareto) {
    keep_front(ranked.best, outcomes);
  } else {
    std::stable_sort(ranked.best.begin(), ranked.best.end(), [&](std::size_t a, std::size_t b) {
      return ranked.objective.better(rows[a].measurement, rows[b].measurement);
    });
  }
  return ranked;
}

std::vector<RankedResults> load_all_ranked(const std::filesystem::path& file, std::int64_t session,
                                           const std::optional<std::string>& objective) {
  std::vector<RankedResults> all;
  std::error_code error;
  if (session == 0 && is_store(file)) {
    const Store store = Store::open(file, true);
    for (const SessionInfo& info : store.sessions())
      all.push_back(rank(result_set(store, info.id), objective));
  }
  if (all.empty()) all.push_back(rank(load_results(file, session), objective));
  return all;
}

std::optional<BestResult> best_of(const RankedResults& ranked) {
  if (ranked.best.empty()) return std::nullopt;
  const StoredRow& row = ranked.results.rows[ranked.best.front()];
  return BestResult{ranked.results.problem,   ranked.results.device,     ranked.results.objective,
                    ranked.results.constants, ranked.results.parameters, row.configuration,
                    row.measurement};
}

}  // namespace ergotune::cli
