#include "tune/ledger/strategy_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ergotune/problem.hpp"
#include "measure/metrics.hpp"
#include "search/ranking.hpp"

namespace ergotune {

StrategySource::StrategySource(const SearchSpace& space, Leaderboard& standing, const SessionOptions& options,
                               double started,
                               std::function<void(const ConfigurationResult&, bool fresh, bool again)> report)
    : space_(space), standing_(standing), options_(options), started_(started), report_(std::move(report)) {
  paused_before_ = standing.ledger().paused();
}

ConfigurationIndex StrategySource::whole_index(ConfigurationIndex part) const {
  if (whole()) return part;
  return standing_.ledger().space().index_of(space_.configuration(part)).value();
}

std::optional<ConfigurationIndex> StrategySource::part_index(ConfigurationIndex index) const {
  if (whole()) return index;
  return space_.index_of(standing_.ledger().space().configuration(index));
}

void StrategySource::begin() {
  StrategyContext context;
  context.space = &space_;
  context.seed = options_.seed;
  context.budget = options_.budget.evaluations;
  context.objectives = standing_.objective().count();
  context.options = options_.strategy_options;
  if (measures()) context.clock = [this] { return standing_.ledger().now(); };
  if (whole()) context.priors = options_.priors;
  standing_.recompute_outcomes();
  for (const ConfigurationIndex index : standing_.order()) {
    if (const auto part = part_index(index)) context.known.emplace_back(*part, reported(index));
  }
  if (expected_) kept_ = expected_();
  strategy_ = make_strategy(options_.strategy, context);
  name_ = strategy_->name();
}

bool StrategySource::measures() const { return standing_.ledger().evaluator().provenance() == Provenance::measured; }

Outcome StrategySource::reported(ConfigurationIndex index) const {
  Outcome outcome = standing_.outcome(index);
  const Measurement& m = standing_.measurement(index);
  const double measured = m.verify_seconds + m.measure_seconds;
  if (!measures()) {  // the same result each time, independent of this machine's load
    outcome.seconds = m.compile_seconds + measured;
    return outcome;
  }
  // compilation runs ahead of measuring, in parallel
  const std::size_t capacity = standing_.ledger().evaluator().capacity();
  const double beside = static_cast<double>(capacity > kAhead ? capacity - kAhead : 1);
  outcome.seconds = std::max(measured, m.compile_seconds / beside);
  // with several devices, results arrive faster than one device measures
  if (came_.size() == kPaced)
    outcome.seconds = std::min(outcome.seconds, (came_.back() - came_.front()) / (kPaced - 1));
  return outcome;
}

const RepeatCost& StrategySource::kept() const {
  if (expected_ && learned_ > kept_at_ + kept_at_ / 50) {
    kept_at_ = learned_;
    kept_ = expected_();
  }
  return kept_;
}

double StrategySource::most_kept(double budget, double each, const Kept& keep) {
  const double fewest = keep.fewest * each;
  return fewest > kMostKept * budget ? 0 : std::max(keep.share * budget, fewest);
}

std::uint64_t StrategySource::evaluations() const {
  const std::uint64_t budget = options_.budget.evaluations;
  const auto most = static_cast<std::uint64_t>(most_kept(static_cast<double>(budget), 1, {}));
  if (standing_.evaluations() + under_way_ < budget - most) return budget - most;  // what is kept is not asked yet
  return budget - std::min<std::uint64_t>(most, kept().repeats);
}

bool StrategySource::evaluations_left() const {
  return options_.budget.evaluations == 0 || standing_.evaluations() + under_way_ < evaluations();
}

std::vector<ConfigurationRequest> StrategySource::next(std::size_t room) {
  std::vector<ConfigurationRequest> list;
  if (!evaluations_left()) return list;
  if (const std::uint64_t budget = options_.budget.evaluations; budget > 0)
    room = std::min<std::size_t>(room, evaluations() - standing_.evaluations() - under_way_);
  for (const ConfigurationIndex index : strategy_->ask(room)) {
    ConfigurationRequest wanted;
    wanted.index = whole_index(index);
    const RaceBound bound = bound_of(wanted.index);
    wanted.give_up_above = bound.above;
    wanted.objective_quantity = bound.quantity;
    list.push_back(std::move(wanted));
  }
  under_way_ += list.size();
  return list;
}

RaceBound StrategySource::bound_of(ConfigurationIndex whole) const {
  const auto best = standing_.best();
  if (!best) return {standing_.objective().name() == "energy" ? "energy" : "time", 1e300};
  const Outcome& outcome = standing_.outcome(*best);
  const ErrorEstimate error = error_of(outcome);
  return race_bound(
      standing_.objective(), options_.problem, options_.constants, standing_.ledger().space(), whole,
      {&standing_.measurement(*best), outcome.values.front(), half_width_95(error.standard_error, error.degrees)});
}

void StrategySource::take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) {
  if (under_way_ > 0) --under_way_;
  known_in_a_row_ = fresh ? 0 : known_in_a_row_ + 1;
  learn(wanted, measurement, fresh);
}

void StrategySource::learn(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) {
  ++learned_;
  if (fresh) {
    timeouts_ += measurement.status == Status::timeout;
    wrong_results_ += measurement.status == Status::wrong_result;
    if (!usable(measurement.status))
      failures_.add(learned_, measurement.status, most_informative_line(measurement.message));
    came_.push_back(standing_.ledger().now());
    if (came_.size() > kPaced) came_.pop_front();
    const auto energy = measurement.value("energy"), time = measurement.value("time");
    if (energy && time && *time > 0) joules_ += *energy / *time * measurement.measure_seconds;
  }
  const bool again = standing_.seen(wanted.index);
  if (standing_.see(wanted.index)) {
    // A constraint relative to best(quantity) has moved: configurations may have become allowed or disallowed.
    standing_.recompute_outcomes();
    for (const ConfigurationIndex index : standing_.order()) {
      if (const auto part = strategy_ ? part_index(index) : std::nullopt) strategy_->tell(*part, reported(index));
    }
  } else if (strategy_) {
    if (const auto part = part_index(wanted.index)) strategy_->tell(*part, reported(wanted.index));
  }
  if (report_) report_(*standing_.ledger().find(wanted.index), fresh, again);
}

double StrategySource::share_spent() const {
  const Budget& budget = options_.budget;
  double share = 0;
  if (budget.evaluations > 0)
    share = static_cast<double>(standing_.evaluations()) / static_cast<double>(budget.evaluations);
  if (budget.seconds > 0) share = std::max(share, seconds() / budget.seconds);
  if (budget.joules > 0) share = std::max(share, joules_ / budget.joules);
  return share;
}

std::string StrategySource::budget_spent(const Kept& keep, double ahead) const {
  const Budget& budget = options_.budget;
  const auto spent = [&](double so_far, double further, double whole, double RepeatCost::*each) {
    const double then = so_far + further;
    if (!(whole > 0) || then < (1 - kMostKept) * whole) return false;
    const double one = kept().*each, most = most_kept(whole, one, keep);
    // nothing is kept where it would be too little
    const bool fits = keep.fewest * one <= std::min(most, whole - so_far);
    return then + (fits ? std::min(most, static_cast<double>(kept().repeats) * one) : 0) >= whole;
  };
  // preparing may take longer than a short budget: the first configuration is evaluated all the same
  const bool answered = !standing_.order().empty();
  if (answered && spent(seconds(), ahead, budget.seconds, &RepeatCost::seconds))
    return fmt::format("the time budget of {:g} s is spent", budget.seconds);
  if (spent(joules_, 0, budget.joules, &RepeatCost::joules))
    return fmt::format("the energy budget of {:g} J is spent", budget.joules);
  return {};
}

std::string StrategySource::must_stop(const Kept& keep) {
  if (standing_.ledger().take_confirm_request()) return "the web page asked to confirm the best so far";
  if (std::string why = budget_spent(keep); !why.empty()) return why;
  if (options_.early_stop && measures() && timeouts_ >= kMostTimeouts && standing_.usable() == 0)
    return fmt::format(
        "nothing has worked, and {} configurations ended at their time limit: a smaller problem or a longer limit is "
        "needed, or a default that is known to work; --no-early-stop goes on",
        timeouts_);
  if (options_.early_stop && measures() && wrong_results_ >= kMostWrongResults && standing_.usable() == 0)
    return fmt::format(
        "nothing has worked, and the outputs of {} configurations differ from the reference: the reference, the inputs "
        "or the tolerance are more likely wrong than all of them; --no-early-stop goes on",
        wrong_results_);
  if (options_.early_stop && measures() && learned_ >= kMostCompileErrors && standing_.usable() == 0) {
    const std::vector<FailureGroup> failures = failures_.list();
    if (failures.size() == 1 && failures[0].status == Status::compile_error && failures[0].count >= kMostCompileErrors)
      return fmt::format(
          "nothing has worked, and {} configurations fail to compile with the same message ({}): correct the source or "
          "its compiler options, or give a default that is known to compile; --no-early-stop goes on",
          failures[0].count, failures[0].message);
  }
  constexpr std::size_t kPatience = 1000;
  if (known_in_a_row_ > kPatience + 2 * standing_.order().size())
    return fmt::format("the strategy asked {} times in a row for configurations that are known already",
                       known_in_a_row_);
  return {};
}

std::string StrategySource::stop() {
  if (std::string why = must_stop(); !why.empty()) return why;
  if (options_.early_stop && strategy_ && strategy_->ends_early() && half_spent() && improvement_unlikely()) {
    const std::size_t usable = standing_.usable(), since = usable - standing_.last_improvement();
    return fmt::format(
        "nothing better is likely: no improvement above 1 % in the last {} of {} usable configurations; to be surer, "
        "--no-early-stop goes on",
        since, usable);
  }
  return {};
}

double StrategySource::seconds() const {
  return options_.spent_seconds + standing_.ledger().now() - started_ - (standing_.ledger().paused() - paused_before_);
}

/// A budget is meant to be used, at least half of it. True if none was given.
bool StrategySource::half_spent() const {
  const Budget& budget = options_.budget;
  return 2 * standing_.evaluations() >= budget.evaluations && 2 * seconds() >= budget.seconds &&
         2 * joules_ >= budget.joules;
}

std::string StrategySource::why_finished() const {
  if (!evaluations_left()) return fmt::format("the budget of {} evaluations is spent", options_.budget.evaluations);
  return standing_.order().size() >= space_.size() ? "the whole space is measured" : "the strategy has finished";
}

std::string StrategySource::explanation() const { return strategy_ ? strategy_->explanation() : std::string(); }

// If configurations came in random order, the probability that the next n contain a new best would be n / (usable + n).
// They do not, so that a minimum count is required as well: a search in a basin may leave it late (on the recorded
// convolution of an MI250X after some 90 usable configurations without a new best, after which the time halved).
bool StrategySource::improvement_unlikely() const {
  const std::size_t without = standing_.usable() - standing_.last_improvement();
  // a few remaining configurations are measured as well
  const std::uint64_t left = space_.size() - std::min<std::uint64_t>(space_.size(), standing_.order().size());
  return without >= std::max(kEnoughWithout, standing_.last_improvement()) && left > without;
}

RaceBound race_bound(const Objective& objective, const Problem* problem, const Constants& constants,
                     const SearchSpace& space, ConfigurationIndex index, const RaceLeader& leader) {
  RaceBound bound;
  const std::vector<std::string> needed = objective.quantities();
  const bool one = needed.size() == 1 && (needed.front() == "time" || needed.front() == "energy");
  if (!one || objective.kind() != Objective::Kind::single) return bound;
  bound.quantity = needed.front();
  const auto best = leader.measurement->value(bound.quantity);
  if (!best || !(*best > 0)) return bound;
  if (objective.name() == bound.quantity) {
    if (objective.direction() == Direction::minimise)
      bound.above = *best + leader.measurement->half_width(bound.quantity);
    return bound;
  }
  if (problem == nullptr) return bound;

  const Configuration configuration = space.configuration(index);
  const auto at = [&](double quantity) {
    Measurement measurement;
    measurement.quantities[bound.quantity].value = quantity;
    evaluate_metrics(measurement, problem->metrics, space.parameters(), configuration, constants);
    const auto value = objective.value(measurement);
    if (!value) return std::numeric_limits<double>::quiet_NaN();
    return objective.direction() == Direction::maximise ? -*value : *value;
  };
  // worse with more of it, as far as a few looks tell
  constexpr std::array kLooks{1 / 64.0, 1 / 8.0, 0.5, 1.0, 2.0, 8.0, 64.0};
  double before = -std::numeric_limits<double>::infinity();
  for (const double factor : kLooks) {
    const double here = at(factor * *best);
    if (!(here > before)) return bound;
    before = here;
  }
  const double limit = leader.value + leader.half_width;
  if (!(at(kLooks.back() * *best) > limit)) return bound;
  double low = std::log(kLooks.front() * *best), high = std::log(kLooks.back() * *best);
  for (int i = 0; i < 30; ++i) {
    const double middle = 0.5 * (low + high);
    (at(std::exp(middle)) > limit ? high : low) = middle;
  }
  bound.above = std::exp(high);
  return bound;
}

}  // namespace ergotune
