// What is running right now, so that the death of a session is known by its culprit.
#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "store/formats/json_values.hpp"
#include "store/sqlite/store_state.hpp"

namespace ergotune {
namespace {

/// Nullopt for a damaged one: its configuration runs again.
std::optional<Configuration> readable_configuration(const std::string& text) {
  try {
    return configuration_from(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

void Store::begin(std::int64_t session, const Configuration& configuration, const Configuration* ended) {
  Transaction transaction(state_->database);
  if (ended) {
    state_->delete_running->bind(1, session).bind(2, configuration_text(*ended));
    state_->delete_running->run();
  }
  state_->insert_running->bind(1, session).bind(2, configuration_text(configuration)).bind(3, wall_seconds());
  state_->insert_running->run();
  transaction.commit();
  state_->flusher->wrote();
}

std::vector<Configuration> Store::unfinished(std::int64_t session) const {
  std::vector<Configuration> result;
  Statement rows(state_->database,
                 "SELECT configuration FROM running WHERE session = ? AND under_way = 1 ORDER BY since");
  rows.bind(1, session);
  while (rows.step()) {
    if (auto configuration = readable_configuration(rows.text(0))) result.push_back(std::move(*configuration));
  }
  return result;
}

std::vector<Configuration> Store::note_deaths(std::int64_t session) {
  Transaction transaction(state_->database);
  Statement died(state_->database,
                 "UPDATE running SET under_way = 0, deaths = deaths + 1 WHERE session = ? AND under_way = 1");
  died.bind(1, session).run();
  std::vector<Configuration> culprits;
  {
    Statement rows(state_->database,
                   "SELECT configuration FROM running WHERE session = ? AND deaths > 1 ORDER BY since");
    rows.bind(1, session);
    while (rows.step()) {
      if (auto configuration = readable_configuration(rows.text(0))) culprits.push_back(std::move(*configuration));
    }
  }
  transaction.commit();
  state_->flusher->wrote();
  return culprits;
}

void Store::withdraw(std::int64_t session, const Configuration& configuration) {
  state_->change(state_->delete_running->bind(1, session).bind(2, configuration_text(configuration)));
}

}  // namespace ergotune
