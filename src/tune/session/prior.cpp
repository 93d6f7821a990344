// Finds earlier results of the same problem as a prior for a search.
#include <fmt/format.h>

#include <algorithm>

#include "ergotune/error.hpp"
#include "measure/metrics.hpp"
#include "search/models/prior.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {
namespace {

/// Sessions of one store that count at most: the latest.
constexpr std::size_t kSessions = 8;

PriorResults results_of(const PreparedSession& prepared, const Recording& recording) {
  const auto complete = [&](Measurement& measurement, const Configuration& configuration) {
    if (usable(measurement.status))
      evaluate_metrics(measurement, prepared.problem.metrics, prepared.space->parameters(), configuration,
                       prepared.constants);
  };
  PriorResults prior = prior_results(recording, *prepared.space, *prepared.objective, complete);
  if (usable_outcomes(prior) > 0 || prepared.objective->kind() == Objective::Kind::pareto) return prior;
  // Less time is mostly less energy: with a constant power, what lacks energy still shows where to begin.
  const auto at_one_watt = [&](Measurement& measurement, const Configuration& configuration) {
    if (measurement.value("time")) measurement.quantities.emplace("energy", measurement.quantities.at("time"));
    complete(measurement, configuration);
  };
  PriorResults by_time = prior_results(recording, *prepared.space, *prepared.objective, at_one_watt);
  by_time.name += ", by time";
  return usable_outcomes(by_time) > 0 ? by_time : prior;
}

/// The sessions of this problem in a store, the latest first, without the one that is being worked on.
std::vector<std::int64_t> sessions_of(const PreparedSession& prepared, const std::filesystem::path& file) {
  const bool own = prepared.store && std::filesystem::equivalent(file, prepared.store->file());
  std::vector<SessionInfo> sessions = Store::open(file, true).sessions();
  std::ranges::sort(sessions, [](auto& a, auto& b) { return a.worked_at > b.worked_at; });
  std::vector<std::int64_t> found;
  for (const SessionInfo& session : sessions)
    if (!(own && session.id == prepared.store_session) && session.problem == prepared.original.name && session.rows > 0)
      found.push_back(session.id);
  return found;
}

}  // namespace

std::vector<PriorResults> find_priors(const PreparedSession& prepared, const std::vector<std::string>& names) {
  std::vector<PriorResults> priors;
  for (const std::string& name : names) {
    const bool any = name == "auto";
    if (any && !prepared.store) continue;
    const std::filesystem::path file = any ? prepared.store->file() : std::filesystem::path(name);
    if (!std::filesystem::exists(file))
      throw UserError(fmt::format("--prior {}: no such file (a recording, a store, or auto)", name));
    const bool stored = is_store(file);
    const std::size_t before = priors.size();
    PriorResults last;
    for (const std::int64_t session : stored ? sessions_of(prepared, file) : std::vector<std::int64_t>{0}) {
      if (priors.size() - before == kSessions) break;
      Recording recording = load_recording(file, session);
      if (stored) recording.file = fmt::format("session {}", session);  // its name in messages
      last = results_of(prepared, recording);
      if (usable_outcomes(last) > 0) priors.push_back(last);
    }
    if (any || priors.size() > before) continue;
    if (stored)
      throw UserError(fmt::format("--prior {}: no session of {} in this store has {} for configurations of this space",
                                  name, prepared.original.name, prepared.objective->title()));
    throw UserError(fmt::format("--prior {}: of its results {} are of this space, {} of them with a {}", name,
                                last.outcomes.size(), usable_outcomes(last), prepared.objective->title()));
  }
  return priors;
}

}  // namespace ergotune
