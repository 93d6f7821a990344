#include "tune/session/prior.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ergotune/error.hpp"
#include "measure/metrics.hpp"
#include "search/models/prior.hpp"

namespace ergotune {
namespace {

/// Sessions of one store that count at most: the latest.
constexpr std::size_t kSessions = 8;
constexpr std::size_t kFewest = 1;

PriorResults results_of(const PreparedSession& prepared, const Recording& recording) {
  const auto complete = [&](Measurement& measurement, const Configuration& configuration) {
    if (usable(measurement.status) && !prepared.problem.metrics.empty())
      evaluate_metrics(measurement, prepared.problem.metrics, prepared.space->parameters(), configuration,
                       prepared.constants);
  };
  PriorResults prior = prior_results(recording, *prepared.space, *prepared.objective, complete);
  if (usable_outcomes(prior) > 0 || prepared.objective->kind() == Objective::Kind::pareto) return prior;
  // Less time is mostly less energy: what lacks the objective's quantity still shows where to begin.
  PriorResults by_time = prior_results(recording, *prepared.space, Objective::parse(ObjectiveSpec(), {}), complete);
  if (usable_outcomes(by_time) < kFewest) return prior;
  by_time.name += ", by time";
  return by_time;
}

/// Every session of this problem but `own`.
std::vector<PriorResults> of_store(const PreparedSession& prepared, const std::filesystem::path& file,
                                   std::int64_t own) {
  const Store store = Store::open(file, true);
  std::vector<SessionInfo> sessions = store.sessions();
  std::sort(sessions.begin(), sessions.end(), [](auto& a, auto& b) { return a.worked_at > b.worked_at; });
  std::vector<PriorResults> priors;
  for (const SessionInfo& session : sessions) {
    if (priors.size() == kSessions) break;
    if (session.id == own || session.problem != prepared.original.name || session.rows < kFewest) continue;
    PriorResults prior = results_of(prepared, load_recording(file, session.id));
    const char* by = prior.name.ends_with(", by time") ? ", by time" : "";
    prior.name = fmt::format("session {} on {}{}", session.id, session.device, by);
    if (usable_outcomes(prior) >= kFewest) priors.push_back(std::move(prior));
  }
  return priors;
}

}  // namespace

std::vector<PriorResults> find_priors(const PreparedSession& prepared, const std::vector<std::string>& names) {
  std::vector<PriorResults> priors;
  const auto add = [&](std::vector<PriorResults> more) {
    for (PriorResults& prior : more) priors.push_back(std::move(prior));
  };
  for (const std::string& name : names) {
    if (name == "auto") {
      if (prepared.store) add(of_store(prepared, prepared.store->file(), prepared.store_session));
      continue;
    }
    const std::filesystem::path file(name);
    if (!std::filesystem::exists(file))
      throw UserError(fmt::format("--prior {}: no such file (a recording, a store, or auto)", name));
    if (is_store(file)) {
      const bool own = prepared.store && std::filesystem::equivalent(file, prepared.store->file());
      std::vector<PriorResults> found = of_store(prepared, file, own ? prepared.store_session : 0);
      if (found.empty())
        throw UserError(
            fmt::format("--prior {}: no session of {} in this store has {} for configurations of this space", name,
                        prepared.original.name, prepared.objective->title()));
      add(std::move(found));
    } else {
      PriorResults prior = results_of(prepared, load_recording(file));
      if (usable_outcomes(prior) < kFewest)
        throw UserError(fmt::format("--prior {}: of its results {} are of this space, {} of them with a {}", name,
                                    prior.outcomes.size(), usable_outcomes(prior), prepared.objective->title()));
      priors.push_back(std::move(prior));
    }
  }
  return priors;
}

}  // namespace ergotune
