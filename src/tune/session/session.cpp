#include "tune/session/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "measure/execution_parameters.hpp"
#include "search/strategy_base.hpp"
#include "tune/ledger/fair_source.hpp"
#include "tune/ledger/leaderboard.hpp"
#include "tune/ledger/screening_source.hpp"
#include "tune/ledger/strategy_source.hpp"
#include "tune/session/confirmation.hpp"

namespace ergotune {
namespace {

/// The index of a part's default in the whole.
std::optional<ConfigurationIndex> default_of(const SearchSpace& space, const SearchSpace& whole) {
  const auto index = space.default_configuration();
  return index ? whole.index_of(space.configuration(*index)) : std::nullopt;
}

/// One search, from what is known to the answer.
class Search {
 public:
  Search(Ledger& ledger, const SearchSpace& space, Objective& objective, const SessionOptions& options)
      : ledger_(ledger),
        space_(space),
        objective_(objective),
        options_(options),
        started_(ledger.now()),
        waited_before_(ledger.waited()),
        own_before_(ledger.evaluator_overhead_seconds()),
        default_(default_of(space, ledger.space())),
        standing_(ledger, objective),
        source_(space, standing_, options, started_,
                [this](const ConfigurationResult& entry, bool fresh, bool again) {
                  if (!again) fresh ? ++evaluated_ : ++known_;
                  progress(&entry, {});
                }),
        confirmation_(ledger, objective, standing_, default_,
                      [this](double left) { progress(nullptr, "confirming the best", left); }) {
    screens_ = can_screen();
    if (options.confirm && space.size() > 1)  // one has no rival
      source_.keep_for_confirmation([this] { return kept_for_confirmation(); });
  }

  SessionResult run();

 private:
  std::string measure(std::vector<ConfigurationIndex> list);
  std::string begin();
  /// `left`: s to the end of a phase that is no search.
  void progress(const ConfigurationResult* last, const std::string& phase, std::optional<double> left = std::nullopt);
  Confidence confirm();
  RepeatCost kept_for_confirmation();
  std::size_t repeats_left(const RepeatCost& so_far) const;
  std::string search();
  /// Whether times say which energies are worth measuring: for least energy, at one setting of one device.
  bool can_screen() const;

  Ledger& ledger_;
  const SearchSpace& space_;
  Objective& objective_;
  const SessionOptions& options_;
  double started_, waited_before_, own_before_, confirming_ = 0;
  std::optional<ConfigurationIndex> default_;
  Leaderboard standing_;
  StrategySource source_;
  Confirmation confirmation_;
  bool screens_ = false;
  std::uint64_t evaluated_ = 0, known_ = 0, retried_ = 0;
  std::vector<DeviceShare> gpus_;
  double gpus_at_ = -1e300;  ///< when they were looked at
};

void Search::progress(const ConfigurationResult* last, const std::string& phase, std::optional<double> left) {
  if (!options_.progress && !ledger_.shows()) return;
  SessionProgress progress;
  progress.evaluated = evaluated_;
  progress.resumed = known_;
  progress.failed = standing_.failed();
  progress.total = space_.size();
  const Budget& budget = options_.budget;
  const std::uint64_t uncounted = standing_.order().size() - standing_.evaluations();
  if (budget.evaluations > 0) progress.total = std::min<std::uint64_t>(progress.total, budget.evaluations + uncounted);
  progress.seconds = ledger_.now() - started_;
  progress.best = standing_.best_value();
  progress.seconds_left = left;
  if (!left && evaluated_ > 0) {
    const std::uint64_t done = evaluated_ + known_;
    const double each = progress.seconds / static_cast<double>(evaluated_);
    progress.seconds_left = each * static_cast<double>(progress.total > done ? progress.total - done : 0);
  }
  if (progress.seconds_left && budget.seconds > 0)
    progress.seconds_left = std::min(*progress.seconds_left, std::max(0.0, budget.seconds - source_.seconds()));
  if (progress.seconds + started_ - gpus_at_ >= 1) {
    gpus_at_ = progress.seconds + started_;
    gpus_ = ledger_.evaluator().gpus();
  }
  progress.gpus = gpus_;
  progress.phase = phase;
  progress.last = last;
  ledger_.report(progress);
  if (options_.progress) options_.progress(progress);
}

/// Measures a list that belongs to the search, as far as its budget goes.
std::string Search::measure(std::vector<ConfigurationIndex> list) {
  class Listed : public ListSource {
   public:
    Listed(std::vector<ConfigurationIndex> list, StrategySource& search, bool times_alone)
        : ListSource(std::move(list),
                     [&search](const ConfigurationRequest& wanted, const Measurement& m, bool fresh) {
                       search.learn(wanted, m, fresh);
                       return search.evaluations_left();
                     }),
          search_(search),
          times_alone_(times_alone) {}
    std::vector<ConfigurationRequest> next(std::size_t room) override {
      if (!search_.evaluations_left()) return {};
      std::vector<ConfigurationRequest> list = ListSource::next(std::min<std::size_t>(room, 1));
      for (ConfigurationRequest& wanted : list)
        if (times_alone_) wanted.energy_up_to = 0;
      return list;
    }
    std::string stop() override { return search_.stop(); }

   private:
    StrategySource& search_;
    bool times_alone_;
  };
  Listed listed(std::move(list), source_, screens_);
  return ledger_.drive(listed);
}

/// Adds known results, the default configuration and retried failures. Returns why the search must end here; empty to
/// continue.
std::string Search::begin() {
  if (objective_.needs("energy")) ledger_.want_energy(screens_);
  if (&space_ == &ledger_.space()) {
    for (const ConfigurationIndex index : ledger_.order()) {
      // what an earlier search screened: here its energy is wanted
      if (!screens_ && objective_.needs("energy") && lacks_energy(ledger_.find(index)->measurement)) continue;
      standing_.see(index);
      ++known_;
    }
  }
  // The default comes first: gains are relative to it, and where results are checked against the
  // first correct configuration, the user's own choice is the one to trust.
  std::string why;
  if (default_ && !standing_.seen(*default_)) why = measure({*default_});
  if (why.empty()) {
    std::vector<ConfigurationIndex> again = ledger_.to_retry();
    std::erase_if(again, [&](ConfigurationIndex index) { return standing_.seen(index); });
    if (!again.empty()) why = measure(std::move(again));
  }
  for (const ConfigurationIndex index : ledger_.to_retry()) retried_ += ledger_.find(index) != nullptr;
  return why;
}

Confidence Search::confirm() {
  if (options_.confirm && space_.size() > 1)
    confirmation_.run(evaluated_ > 0, [this](const RepeatCost& so_far) { return repeats_left(so_far); });
  confirming_ = confirmation_.seconds();
  return confirmation_.confidence();
}

/// Where an earlier run confirmed its best, it kept as much as may be kept: the same call on a finished session
/// measures nothing, although what is expected now differs from what that run expected.
RepeatCost Search::kept_for_confirmation() {
  RepeatCost cost = confirmation_.expected();
  if (evaluated_ == 0 && confirmation_.has_confirmed_best()) cost.repeats = std::numeric_limits<std::size_t>::max();
  return cost;
}

/// What the budget leaves.
std::size_t Search::repeats_left(const RepeatCost& so_far) const {
  const Budget& budget = options_.budget;
  auto left = static_cast<double>(std::numeric_limits<std::uint32_t>::max());
  const auto bound = [&](double whole, double spent, double each) {
    if (whole > 0) left = std::min(left, std::max(0.0, (whole - spent) / std::max(each, 1e-9)));
  };
  bound(static_cast<double>(budget.evaluations), static_cast<double>(standing_.evaluations() + so_far.repeats), 1);
  bound(budget.seconds, source_.seconds(), so_far.seconds);
  bound(budget.joules, source_.joules() + static_cast<double>(so_far.repeats) * so_far.joules, so_far.joules);
  return static_cast<std::size_t>(left);
}

bool Search::can_screen() const {
  const std::vector<Parameter>& parameters = space_.parameters();
  const bool at_one_setting = std::ranges::all_of(
      parameters, [](const Parameter& parameter) { return execution_kind(parameter) == ParameterKind::code; });
  const Evaluator& evaluator = ledger_.evaluator();
  return at_one_setting && &space_ == &ledger_.space() && options_.strategy == "auto" &&
         evaluator.provenance() == Provenance::measured && evaluator.gpus().size() < 2 &&
         objective_.kind() == Objective::Kind::single && objective_.quantities() == std::vector<std::string>{"energy"};
}

/// The search itself; why it stopped.
std::string Search::search() {
  std::optional<ConfigurationIndex> reference = default_;
  if (!reference || !standing_.seen(*reference) || !standing_.outcome(*reference).ok) reference = standing_.best();
  std::set<ConfigurationIndex> incumbents;
  std::deque<ConfigurationIndex> known;
  for (const PriorResults& prior : options_.priors) {
    const std::size_t share = ScreeningSource::kKnown / std::min(options_.priors.size(), ScreeningSource::kKnown);
    const auto best = search::best_of(prior, space_.size(), share);
    if (!best.empty() && incumbents.size() < ScreeningSource::kIncumbents) incumbents.insert(best.front());
    if (known.size() < ScreeningSource::kKnown) known.insert(known.end(), best.begin(), best.end());
  }
  if (screens_) confirmation_.compare_with(incumbents);
  ScreeningSource screening(source_, standing_, ledger_, reference, std::move(incumbents), std::move(known));
  BaselineRunSource fair(screens_ ? static_cast<Source&>(screening) : source_, ledger_, reference,
                         options_.reference_every);
  const std::string why = ledger_.drive(fair);
  return why.empty() ? source_.why_finished() : why;
}

/// The GPUs that measured, and their factors.
std::vector<DeviceResult> gpus_of(const Ledger& ledger) {
  std::vector<DeviceResult> list;
  for (const DeviceShare& gpu : ledger.evaluator().gpus()) {
    DeviceResult result{gpu, {}};
    for (const std::string& name : DeviceFactors::compared())
      if (const auto factor = ledger.factors().factor(gpu.gpu, name)) result.factors[name] = *factor;
    list.push_back(std::move(result));
  }
  return list;
}

SessionResult Search::run() {
  SessionResult result;
  if (space_.empty()) throw UserError("there is nothing to tune: " + space_.why_empty());
  std::string why = begin();
  source_.begin();
  if (why.empty() || (screens_ && !standing_.best())) why = search();
  // It came first, and what disturbed it may be over.
  if (default_ && standing_.seen(*default_) && ledger_.find(*default_)->disturbed) measure({*default_});
  standing_.recompute_outcomes();  // what the last baseline runs showed
  const bool time_spent = options_.budget.seconds > 0 && !source_.budget_spent({}).empty();
  const double searched = source_.seconds();
  static_cast<Confidence&>(result) = confirm();
  result.stopped_because = why;
  if (confirmation_.cut_short() && result.confirmation_repeats == 0)
    result.stopped_because += ", too little of the budget is left to confirm the best";
  else if (options_.budget.evaluations > 0 && !source_.evaluations_left() && confirmation_.measured() > 0) {
    const std::uint64_t used = standing_.evaluations() + confirmation_.measured();
    result.stopped_because += fmt::format(", {} of them to confirm the best", confirmation_.measured());
    if (used < options_.budget.evaluations)
      result.stopped_because +=
          fmt::format("; {} left, too few to repeat the best and its rivals", options_.budget.evaluations - used);
  } else if (time_spent && confirmation_.measured() > 0)
    result.stopped_because += fmt::format(", {:.2g} s of them to confirm the best", source_.seconds() - searched);
  for (const ConfigurationIndex index : standing_.order()) result.disturbed += ledger_.find(index)->disturbed;
  const std::size_t shown = std::max<std::size_t>(options_.top, 1);
  for (const ConfigurationIndex index : standing_.ranking()) result.best.push_back(*ledger_.find(index));
  if (objective_.kind() != Objective::Kind::pareto && result.best.size() > shown) result.best.resize(shown);
  result.gpus = gpus_of(ledger_);
  for (const std::string& name : objective_.quantities())
    if (const auto drift = ledger_.factors().drift(name)) result.drift[name] = *drift;
  result.evaluated = evaluated_;
  result.resumed = known_;
  result.retried = retried_;
  result.seconds = ledger_.now() - started_;
  const double waited = ledger_.waited() - waited_before_;
  result.tuner_seconds =
      std::max(0.0, result.seconds - waited - confirming_) + ledger_.evaluator_overhead_seconds() - own_before_;
  result.strategy = source_.strategy();
  result.explanation = source_.explanation();
  return result;
}

RunInfo run_info(const Objective& objective, const SessionOptions& options) {
  RunInfo info;
  info.objective = objective.spec();
  info.strategy = options.strategy;
  info.seed = options.seed;
  info.phase = "searching";
  return info;
}

}  // namespace

std::string note_of_drift(const SessionResult& result) {
  std::string ranges;
  for (const auto& [quantity, drift] : result.drift)
    ranges +=
        fmt::format("{}in {} baseline runs its {} was {:.3g} to {:.3g} times the mean", ranges.empty() ? "" : ", ",
                    drift.runs, quantity, std::exp(drift.least), std::exp(drift.most));
  if (ranges.empty()) return {};
  return fmt::format(
      "the conditions on the device changed while the default was measured at intervals ({}); what the search measured "
      "was compared without this drift, stored values are as measured",
      ranges);
}

SessionResult run_session(Ledger& ledger, const SearchSpace& space, Objective& objective,
                          const SessionOptions& options) {
  return Search(ledger, space, objective, options).run();
}

SessionResult run_session(const SearchSpace& space, Objective& objective, Evaluator& evaluator, Store* store,
                          std::int64_t store_session, const SessionOptions& options) {
  LedgerOptions kept;
  kept.store = store;
  kept.session = store_session;
  kept.problem = options.problem;
  kept.constants = options.constants;
  kept.further_metrics = options.further_metrics;
  kept.retry = options.retry;
  kept.interrupted = options.interrupted;
  Ledger ledger(space, evaluator, std::move(kept));
  ledger.begin_run(run_info(objective, options));
  SessionResult result = run_session(ledger, space, objective, options);
  ledger.end_run(result.stopped_because);
  return result;
}

namespace {

[[noreturn]] void refuse(std::string_view part) {
  throw UserError(
      fmt::format("the budget \"{}\" is none: write evaluations (25), time (90s, 10min, 2h) or energy (500J, 2kJ), "
                  "several with commas",
                  part));
}

void add_part(Budget& budget, std::string_view part) {
  double number = 0;
  const char* const end = part.data() + part.size();
  const auto [rest, error] = std::from_chars(part.data(), end, number);
  if (error != std::errc() || !(number > 0) || !std::isfinite(number)) refuse(part);
  const std::string_view unit = trimmed({rest, static_cast<std::size_t>(end - rest)});
  if (unit.empty() || unit == "evaluations") {
    if (number != std::floor(number) || number > 1e15) refuse(part);
    budget.evaluations = static_cast<std::uint64_t>(number);
  } else if (unit == "s" || unit == "sec") {
    budget.seconds = number;
  } else if (unit == "min" || unit == "m") {
    budget.seconds = number * 60;
  } else if (unit == "h") {
    budget.seconds = number * 3600;
  } else if (unit == "J") {
    budget.joules = number;
  } else if (unit == "kJ") {
    budget.joules = number * 1e3;
  } else {
    refuse(part);
  }
}

}  // namespace

Budget Budget::parse(const std::string& text) {
  if (text.empty()) refuse(text);
  Budget budget;
  for (const std::string& part : split(text)) add_part(budget, trimmed(part));
  return budget;
}

}  // namespace ergotune
