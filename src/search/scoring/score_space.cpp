#include <fmt/format.h>

#include <cmath>

#include "search/known_names.hpp"
#include "search/objective.hpp"
#include "search/scoring/score_state.hpp"

namespace ergotune {

ScoredSpace::ScoredSpace(Recording recording, const std::string& objective_text)
    : state_(std::make_unique<State>(std::move(recording))) {
  const Recording& source = state_->table.recording();
  ObjectiveSpec spec;
  if (objective_text.empty())
    spec = source.objective;
  else
    spec.text = objective_text;
  Objective objective = Objective::parse(spec, with_names(source.metrics, column_names(source)));
  if (objective.count() != 1)
    throw UserError(fmt::format("cannot score \"{}\": strategies are scored on one objective", spec.text));

  state_->name = source.file.empty() ? source.name : source.file.filename().string();
  for (const std::string_view ending : {".gz", ".json", ".csv", ".T4"})
    if (state_->name.size() > ending.size() && state_->name.ends_with(ending))
      state_->name.resize(state_->name.size() - ending.size());

  // twice: best(...) in an objective means the best of the whole recording, known after the first pass
  const std::uint64_t size = state_->table.space().size();
  state_->values.assign(size, std::numeric_limits<double>::infinity());
  for (int pass = 0; pass < 2; ++pass) {
    for (ConfigurationIndex index = 0; index < size; ++index) {
      const Outcome outcome = objective.outcome(state_->table.measurement(index));
      state_->values[index] = outcome.ok ? outcome.values.front() : std::numeric_limits<double>::infinity();
    }
    if (objective.kind() == Objective::Kind::single && spec.text.find("best") == std::string::npos) break;
  }
  std::vector<double> values, valid_seconds, failed_seconds;
  for (ConfigurationIndex index = 0; index < size; ++index) {
    if (std::isfinite(state_->values[index])) {
      values.push_back(state_->values[index]);
      valid_seconds.push_back(state_->table.seconds(index));
    } else {
      failed_seconds.push_back(state_->table.seconds(index));
    }
  }
  if (values.empty()) throw UserError(fmt::format("{}: no configuration has a valid \"{}\"", state_->name, spec.text));
  state_->failed = failed_seconds.size();
  // a recording without costs is scored by evaluations: each counts as one second
  if (mean(valid_seconds) <= 0) {
    state_->costs_unknown = true;
    for (auto* list : {&valid_seconds, &failed_seconds}) std::fill(list->begin(), list->end(), 1.0);
  }
  state_->baseline = search::make_baseline(values, valid_seconds, failed_seconds);
}

ScoredSpace::ScoredSpace(ScoredSpace&&) noexcept = default;
ScoredSpace& ScoredSpace::operator=(ScoredSpace&&) noexcept = default;
ScoredSpace::~ScoredSpace() = default;

const std::string& ScoredSpace::name() const { return state_->name; }
const SearchSpace& ScoredSpace::space() const { return state_->table.space(); }
std::size_t ScoredSpace::failed() const { return state_->failed; }
double ScoredSpace::optimum() const { return state_->baseline.optimum; }
double ScoredSpace::budget_seconds() const { return state_->baseline.budget; }
std::size_t ScoredSpace::draws_to_cutoff() const { return state_->baseline.draws_to_cutoff; }
const std::vector<double>& ScoredSpace::times() const { return state_->baseline.times; }
const std::vector<double>& ScoredSpace::baseline() const { return state_->baseline.curve; }

}  // namespace ergotune
