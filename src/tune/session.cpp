#include "ergotune/tune/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>

#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/base/statistics.hpp"
#include "ergotune/measure/metrics.hpp"
#include "tune/session_confirm.hpp"
#include "tune/session_recorder.hpp"

namespace ergotune {
namespace {

constexpr int kConfirmationRounds = 3;
constexpr std::size_t kConfirmedCandidates = 3;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// One run, from what the store knows to the answer.
class SessionRun {
 public:
  SessionRun(const SearchSpace& space, Objective& objective, Evaluator& evaluator, Store* store,
             std::int64_t store_session, const SessionOptions& options)
      : space_(space),
        objective_(objective),
        evaluator_(evaluator),
        options_(options),
        started_(host_seconds()),
        default_(default_of(space)),
        lock_(store ? std::make_unique<SessionLock>(store->file(), store_session) : nullptr),
        recorder_(store, store_session) {
    resume(store, store_session);
    evaluator_.set_journal(&recorder_);
  }

  ~SessionRun() {
    drop_outstanding();
    evaluator_.set_journal(nullptr);
  }

  SessionResult run();

 private:
  struct Known {
    Measurement measurement;
    Outcome outcome;
    bool resumed = false;
  };

  void resume(Store* store, std::int64_t session);
  void remember(ConfigurationIndex index, Measurement measurement, bool resumed);
  bool evaluations_left() const;
  void judge_again(Strategy* strategy);
  std::string why_end_now() const;
  bool interrupted() const { return options_.interrupted && options_.interrupted->load(); }
  void submit(ConfigurationIndex index);
  /// Ends what was submitted and has no result; it is not held against those configurations.
  void drop_outstanding();
  /// Measures these and waits for them, as far as the budget goes.
  void measure(std::span<const ConfigurationIndex> list);
  void measure_default();
  void retry();
  void search();
  void take(EvaluationResult result, Strategy* strategy);
  void report_durable();
  void report(const EvaluationResult* last);
  void complete(Measurement& measurement, const Configuration& configuration) const;
  double give_up_above() const;
  bool improvement_unlikely() const;
  std::vector<ConfigurationIndex> ranking() const;
  void confirm(std::vector<ConfigurationIndex>& order, SessionResult& result);
  void summarise(SessionResult& result);

  const SearchSpace& space_;
  Objective& objective_;
  Evaluator& evaluator_;
  const SessionOptions& options_;
  double started_;
  std::optional<ConfigurationIndex> default_;

  std::unordered_map<ConfigurationIndex, Known> known_;
  std::vector<ConfigurationIndex> order_of_arrival_;
  std::optional<ConfigurationIndex> best_;
  std::map<std::uint64_t, ConfigurationIndex> outstanding_;
  std::deque<std::pair<std::uint64_t, ConfigurationIndex>> unreported_;
  std::vector<ConfigurationIndex> to_retry_;
  std::uint64_t next_id_ = 1, evaluated_ = 0, resumed_ = 0, failed_ = 0;
  std::size_t last_improvement_ = 0;  ///< usable measurements when the best was last improved by over 1 %
  std::size_t usable_ = 0;
  double best_then_ = 0;
  std::uint64_t revision_ = 0;  ///< of the objective, when outcomes were last told
  double joules_ = 0, waiting_ = 0, evaluators_own_ = 0, confirming_ = 0;
  std::string strategy_name_, explanation_, stopped_because_;
  std::unique_ptr<SessionLock> lock_;  ///< held longer than anything is written
  SessionRecorder recorder_;
};

void SessionRun::resume(Store* store, std::int64_t session) {
  if (!store) return;
  for (const Configuration& configuration : store->unfinished(session)) {
    Measurement measurement;
    measurement.status = Status::runtime_error;
    measurement.message = "the session died while this configuration ran";
    measurement.finished_at = wall_seconds();
    store->add(session, configuration, measurement);
  }
  for (StoredRow& row : store->results(session)) {
    const auto index = space_.index_of(row.configuration);
    if (!index) continue;
    if (options_.retry.contains(row.measurement.status))
      to_retry_.push_back(*index);
    else
      remember(*index, std::move(row.measurement), true);
  }
}

void SessionRun::complete(Measurement& measurement, const Configuration& configuration) const {
  if (!options_.problem || options_.problem->metrics.empty() || !usable(measurement.status)) return;
  evaluate_metrics(measurement, options_.problem->metrics, options_.problem->parameters, configuration,
                   options_.constants);
}

void SessionRun::remember(ConfigurationIndex index, Measurement measurement, bool resumed) {
  complete(measurement, resumed && options_.problem ? space_.configuration(index) : Configuration());
  Known known;
  known.outcome = objective_.outcome(measurement);
  known.measurement = std::move(measurement);
  known.resumed = resumed;
  const bool fresh = !known_.contains(index);
  if (fresh) {
    order_of_arrival_.push_back(index);
    resumed ? ++resumed_ : ++evaluated_;
  }
  if (!known.outcome.ok && fresh) ++failed_;
  const Known& stored = known_[index] = std::move(known);
  if (!stored.outcome.ok) return;
  ++usable_;
  if (!best_ || objective_.better(stored.measurement, known_.at(*best_).measurement)) {
    best_ = index;
    const double value = objective_.value(stored.measurement).value_or(0);
    if (usable_ == 1 || std::abs(value - best_then_) > 0.01 * std::abs(best_then_)) {
      last_improvement_ = usable_;
      best_then_ = value;
    }
  }
}

bool SessionRun::evaluations_left() const {
  const std::uint64_t spent = known_.size() + outstanding_.size();
  return options_.budget.evaluations == 0 || spent < options_.budget.evaluations;
}

/// Why the search must end at once, with what is running; empty to go on.
std::string SessionRun::why_end_now() const {
  const Budget& budget = options_.budget;
  if (interrupted()) return "interrupted";
  if (budget.seconds > 0 && host_seconds() - started_ >= budget.seconds) {
    return fmt::format("the time budget of {:g} s is spent", budget.seconds);
  }
  if (budget.joules > 0 && joules_ >= budget.joules) {
    return fmt::format("the energy budget of {:g} J is spent", budget.joules);
  }
  if (options_.early_stop && improvement_unlikely()) {
    return fmt::format("no improvement above 1 % in the last {} of {} usable configurations",
                       usable_ - last_improvement_, usable_);
  }
  return {};
}

// If configurations came in random order, the chance that the next n bring a new best would be n / (usable +
// n); a search that has gone through as many again as it needed for its best is past an even chance.
bool SessionRun::improvement_unlikely() const {
  const std::size_t floor = 40 + 4 * space_.dimensions();
  return usable_ >= floor && usable_ - last_improvement_ >= std::max(floor / 2, last_improvement_);
}

/// Above this no candidate can win any more: the upper end of the best one's interval.
double SessionRun::give_up_above() const {
  if (!best_ || objective_.kind() != Objective::Kind::single) return 1e300;
  const std::string& name = objective_.name();
  if ((name != "time" && name != "energy") || objective_.direction() != Direction::minimise) return 1e300;
  const Measurement& best = known_.at(*best_).measurement;
  return best.value(name).value_or(1e300) + 2 * best.standard_error(name);
}

void SessionRun::submit(ConfigurationIndex index) {
  EvaluationRequest request;
  request.id = next_id_++;
  request.index = index;
  request.configuration = space_.configuration(index);
  if (index != default_) request.give_up_above = give_up_above();
  request.objective_quantity = objective_.name() == "energy" ? "energy" : "time";
  outstanding_[request.id] = index;
  evaluator_.submit(std::move(request));
}

void SessionRun::take(EvaluationResult result, Strategy* strategy) {
  const auto asked = outstanding_.find(result.id);
  if (asked == outstanding_.end()) return;
  const ConfigurationIndex index = asked->second;
  outstanding_.erase(asked);
  Measurement& measurement = result.measurement;
  const Configuration configuration = space_.configuration(index);
  complete(measurement, configuration);
  evaluators_own_ += measurement.tuner_seconds;
  if (const auto energy = measurement.value("energy"), time = measurement.value("time");
      energy && time && *time > 0) {
    joules_ += *energy / *time * measurement.measure_seconds;
  }
  unreported_.emplace_back(recorder_.add(result.id, configuration, measurement), index);
  remember(index, std::move(measurement), false);
  if (objective_.revision() != revision_) {
    judge_again(strategy);
  } else if (strategy) {
    strategy->tell(index, known_.at(index).outcome);
  }
}

// A constraint relative to best(quantity) has moved: what was allowed before may no longer be, and the other way round.
void SessionRun::judge_again(Strategy* strategy) {
  revision_ = objective_.revision();
  best_.reset();
  for (const ConfigurationIndex index : order_of_arrival_) {
    Known& known = known_.at(index);
    known.outcome = objective_.outcome(known.measurement);
    if (strategy) strategy->tell(index, known.outcome);
    if (known.outcome.ok && (!best_ || objective_.better(known.measurement, known_.at(*best_).measurement))) best_ = index;
  }
}

void SessionRun::report_durable() {
  if (unreported_.empty()) return;
  const std::uint64_t durable = recorder_.durable();
  while (!unreported_.empty() && unreported_.front().first <= durable) {
    const ConfigurationIndex index = unreported_.front().second;
    unreported_.pop_front();
    if (!options_.progress) continue;
    const EvaluationResult last{0, index, known_.at(index).measurement};
    report(&last);
  }
}

void SessionRun::report(const EvaluationResult* last) {
  if (!options_.progress) return;
  SessionProgress progress;
  progress.evaluated = evaluated_;
  progress.resumed = resumed_;
  progress.failed = failed_;
  progress.total = space_.size();
  const Budget& budget = options_.budget;
  if (budget.evaluations > 0) progress.total = std::min<std::uint64_t>(progress.total, budget.evaluations);
  progress.seconds = host_seconds() - started_;
  if (best_) progress.best = objective_.value(known_.at(*best_).measurement);
  if (evaluated_ > 0) {
    const std::uint64_t done = evaluated_ + resumed_;
    const double each = progress.seconds / static_cast<double>(evaluated_);
    double left = each * static_cast<double>(progress.total > done ? progress.total - done : 0);
    if (budget.seconds > 0) left = std::min(left, std::max(0.0, budget.seconds - progress.seconds));
    progress.seconds_left = left;
  }
  progress.last = last;
  options_.progress(progress);
}

void SessionRun::drop_outstanding() {
  evaluator_.cancel();
  outstanding_.clear();
  recorder_.withdraw_open();
}

void SessionRun::measure(std::span<const ConfigurationIndex> list) {
  const std::size_t capacity = std::max<std::size_t>(1, evaluator_.capacity());
  std::size_t next = 0;
  while (!interrupted()) {
    while (next < list.size() && outstanding_.size() < capacity && evaluations_left() &&
           why_end_now().empty())
      submit(list[next++]);
    if (outstanding_.empty()) break;
    const double before = host_seconds();
    auto result = evaluator_.wait(0.05);
    waiting_ += host_seconds() - before;
    if (result) take(std::move(*result), nullptr);
    recorder_.kick();
    report_durable();
  }
}

// The default comes first: what tuning gains is told against it, and where results are checked against the
// first correct configuration, the user's own choice is the one to trust.
void SessionRun::measure_default() {
  if (default_ && !known_.contains(*default_)) measure(std::span(&*default_, 1));
}

void SessionRun::retry() {
  std::vector<ConfigurationIndex> list = to_retry_;
  std::erase_if(list, [&](ConfigurationIndex index) { return known_.contains(index); });  // the default
  measure(list);
}

void SessionRun::search() {
  StrategyContext context;
  context.space = &space_;
  context.seed = options_.seed;
  context.budget = options_.budget.evaluations;
  context.objectives = objective_.count();
  context.options = options_.strategy_options;
  judge_again(nullptr);
  for (const ConfigurationIndex index : order_of_arrival_)
    context.known.emplace_back(index, known_.at(index).outcome);
  const std::unique_ptr<Strategy> strategy = make_strategy(options_.strategy, context);
  strategy_name_ = strategy->name();
  explanation_ = strategy->explanation();

  while (true) {
    stopped_because_ = why_end_now();
    if (!stopped_because_.empty()) break;
    bool finished = false;
    const std::size_t capacity = std::max<std::size_t>(1, evaluator_.capacity());
    while (outstanding_.size() < capacity && evaluations_left()) {
      std::size_t count = capacity - outstanding_.size();
      if (options_.budget.evaluations > 0) {
        count =
            std::min<std::size_t>(count, options_.budget.evaluations - known_.size() - outstanding_.size());
      }
      const std::vector<ConfigurationIndex> asked = strategy->ask(count);
      if (asked.empty()) {
        finished = outstanding_.empty();
        break;
      }
      for (const ConfigurationIndex index : asked) {
        if (const auto known = known_.find(index); known != known_.end()) {
          strategy->tell(index, known->second.outcome);
        } else {
          submit(index);
        }
      }
    }
    if (outstanding_.empty() && !evaluations_left()) {
      stopped_because_ = fmt::format("the budget of {} evaluations is spent", options_.budget.evaluations);
      break;
    }
    if (finished) {
      stopped_because_ =
          known_.size() == space_.size() ? "the whole space is measured" : "the strategy has finished";
      break;
    }
    const double before = host_seconds();
    auto result = evaluator_.wait(unreported_.empty() ? 0.1 : 0.002);
    waiting_ += host_seconds() - before;
    if (result) {
      take(std::move(*result), strategy.get());
    } else {
      recorder_.kick();
    }
    report_durable();
  }
  drop_outstanding();
  recorder_.flush();
  report_durable();
  if (explanation_.empty()) explanation_ = strategy->explanation();
}

/// Usable configurations, best first (Pareto: the front only, in the order of its first objective).
std::vector<ConfigurationIndex> SessionRun::ranking() const {
  std::vector<ConfigurationIndex> order;
  for (const ConfigurationIndex index : order_of_arrival_) {
    if (known_.at(index).outcome.ok) order.push_back(index);
  }
  if (objective_.kind() == Objective::Kind::pareto) {
    const auto dominates = [&](ConfigurationIndex a, ConfigurationIndex b) {
      const auto& x = known_.at(a).outcome.values;
      const auto& y = known_.at(b).outcome.values;
      bool better = false;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (x[i] > y[i]) return false;
        better = better || x[i] < y[i];
      }
      return better;
    };
    std::sort(order.begin(), order.end(), [&](ConfigurationIndex a, ConfigurationIndex b) {
      return known_.at(a).outcome.values < known_.at(b).outcome.values;
    });
    std::vector<ConfigurationIndex> front;
    // In this order nothing is dominated by what comes after it, and the front is all that need be asked.
    for (const ConfigurationIndex index : order) {
      const bool dominated = std::any_of(front.begin(), front.end(),
                                         [&](ConfigurationIndex other) { return dominates(other, index); });
      if (!dominated) front.push_back(index);
    }
    return front;
  }
  const std::size_t top = std::min(order.size(), std::max<std::size_t>(options_.top, kConfirmedCandidates));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top), order.end(),
                    [&](ConfigurationIndex a, ConfigurationIndex b) {
                      return objective_.better(known_.at(a).measurement, known_.at(b).measurement);
                    });
  order.resize(top);
  return order;
}

void SessionRun::confirm(std::vector<ConfigurationIndex>& order, SessionResult& result) {
  const bool wanted = options_.confirm && evaluator_.provenance() == Provenance::measured && evaluated_ > 0 &&
                      objective_.kind() != Objective::Kind::pareto && !order.empty() && !interrupted();
  if (!wanted) return;
  const double before = host_seconds();
  if (options_.progress) {
    SessionProgress progress;
    progress.evaluated = evaluated_;
    progress.resumed = resumed_;
    progress.failed = failed_;
    progress.total = evaluated_ + resumed_;
    progress.seconds = before - started_;
    progress.best = objective_.value(known_.at(order.front()).measurement);
    progress.phase = "confirming the best";
    options_.progress(progress);
  }
  std::vector<Candidate> candidates;
  const auto add = [&](ConfigurationIndex index) {
    Candidate candidate;
    candidate.index = index;
    candidate.configuration = space_.configuration(index);
    candidate.is_default = index == default_;
    candidates.push_back(std::move(candidate));
  };
  for (std::size_t i = 0; i < std::min(order.size(), kConfirmedCandidates); ++i) add(order[i]);
  const bool default_among =
      std::any_of(candidates.begin(), candidates.end(), [](const auto& c) { return c.is_default; });
  if (default_ && !default_among && known_.contains(*default_) && known_.at(*default_).outcome.ok)
    add(*default_);
  const bool done = measure_side_by_side(
      evaluator_, candidates, kConfirmationRounds,
      [this](Measurement& m, const Configuration& c) { complete(m, c); }, [this] { return interrupted(); });
  confirming_ = host_seconds() - before;
  if (!done) return;

  std::vector<std::pair<ConfigurationIndex, Measurement>> confirmed;
  std::vector<double> values, errors;
  for (const Candidate& candidate : candidates) {
    Measurement mean = combine(candidate.rounds);
    if (!usable(mean.status)) continue;  // worked once, failed now: no winner
    complete(mean, candidate.configuration);
    const Outcome outcome = objective_.outcome(mean);
    if (!outcome.ok) continue;
    known_.at(candidate.index).measurement = mean;
    confirmed.emplace_back(candidate.index, std::move(mean));
    values.push_back(outcome.values.front());
    errors.push_back(outcome.standard_errors.empty() ? 0.0 : outcome.standard_errors.front());
  }
  if (confirmed.empty()) return;
  result.confirmation_rounds = kConfirmationRounds;
  const std::vector<double> chances = probability_of_being_best(values, errors);
  std::size_t best = 0;
  for (std::size_t i = 1; i < confirmed.size(); ++i) {
    if (objective_.better(confirmed[i].second, confirmed[best].second)) best = i;
  }
  result.probability_best = chances[best];
  // The winner is one that was confirmed; behind it everything stands where its best-known values put it.
  const ConfigurationIndex winner = confirmed[best].first;
  std::erase(order, winner);
  const auto failed_now = [&](ConfigurationIndex index) {
    const bool tried =
        std::any_of(candidates.begin(), candidates.end(), [&](const auto& c) { return c.index == index; });
    return tried && std::none_of(confirmed.begin(), confirmed.end(),
                                 [&](const auto& entry) { return entry.first == index; });
  };
  std::erase_if(order, failed_now);
  std::sort(order.begin(), order.end(), [&](ConfigurationIndex a, ConfigurationIndex b) {
    return objective_.better(known_.at(a).measurement, known_.at(b).measurement);
  });
  order.insert(order.begin(), winner);
}

void SessionRun::summarise(SessionResult& result) {
  std::vector<double> values;
  std::map<std::string, std::uint64_t> failures;
  for (const ConfigurationIndex index : order_of_arrival_) {
    const Known& known = known_.at(index);
    ++result.statuses[to_string(known.measurement.status)];
    if (known.outcome.ok) {
      if (const auto value = objective_.value(known.measurement)) values.push_back(*value);
    } else {
      const std::string words = known.measurement.message.empty()
                                    ? "no value for the objective " + objective_.name()
                                    : first_line(known.measurement.message);
      ++failures[to_string(known.measurement.status) + ": " + words];
    }
  }
  if (!values.empty() && objective_.kind() != Objective::Kind::pareto) result.median_value = median(values);
  for (const auto& [words, count] : failures) {
    if (count > result.commonest_failure_count) {
      result.commonest_failure = words;
      result.commonest_failure_count = count;
    }
  }
}

SessionResult SessionRun::run() {
  SessionResult result;
  if (space_.empty()) throw UserError("there is nothing to tune: " + space_.why_empty());
  measure_default();
  retry();
  search();
  std::vector<ConfigurationIndex> order = ranking();
  summarise(result);
  confirm(order, result);
  recorder_.flush();
  for (const ConfigurationIndex index : order)
    result.best.push_back({0, index, known_.at(index).measurement});
  if (objective_.kind() != Objective::Kind::pareto && result.best.size() > options_.top) {
    result.best.resize(std::max<std::size_t>(options_.top, 1));
  }
  if (default_ && known_.contains(*default_)) {
    result.default_result = EvaluationResult{0, *default_, known_.at(*default_).measurement};
  }
  result.evaluated = evaluated_;
  result.resumed = resumed_;
  result.retried = static_cast<std::uint64_t>(
      std::count_if(to_retry_.begin(), to_retry_.end(), [&](auto index) { return known_.contains(index); }));
  result.seconds = host_seconds() - started_;
  result.tuner_seconds = std::max(0.0, result.seconds - waiting_ - confirming_) + evaluators_own_;
  result.strategy = strategy_name_;
  result.explanation = explanation_;
  result.stopped_because = stopped_because_;
  return result;
}

}  // namespace

std::optional<ConfigurationIndex> default_of(const SearchSpace& space) {
  Configuration configuration;
  for (const Parameter& parameter : space.parameters()) {
    if (parameter.default_value) {
      configuration.push_back(*parameter.default_value);
    } else if (!parameter.values.empty()) {
      configuration.push_back(parameter.values.front());
    } else {
      return std::nullopt;
    }
  }
  return space.index_of(configuration);
}

SessionResult run_session(const SearchSpace& space, Objective& objective, Evaluator& evaluator, Store* store,
                          std::int64_t store_session, const SessionOptions& options) {
  return SessionRun(space, objective, evaluator, store, store_session, options).run();
}

}  // namespace ergotune
