#include "launcher/online_search.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/statistics.hpp"

namespace ergotune::launcher {

OnlineSearch::OnlineSearch(SearchSpace space, ConfigurationIndex start, double share)
    : RegretBound{.bound = share},
      space_(std::make_unique<SearchSpace>(std::move(space))),
      start_(start),
      running_(start) {}

std::optional<OnlineSearch::Step> OnlineSearch::next() {
  const auto started = times_.find(start_);
  if (started == times_.end() || started->second.size() < kLaunches) return Step{start_, started == times_.end()};
  if (!strategy_) {
    StrategyContext context;
    context.space = space_.get();
    context.budget = std::min(space_->size(), kMostTrials);
    const Time before = time(start_);
    context.known = {{start_, {true, {before.seconds}, {before.standard_error}, {static_cast<double>(before.n - 1)}}}};
    strategy_ = make_strategy("auto", context);
  }
  while (!candidate_ && repeats_ == 0 && tried_ < kMostTrials) {
    const std::vector<ConfigurationIndex> asked = strategy_->ask(1);
    if (asked.empty()) break;
    candidate_ = asked.front();
  }
  if (candidate_) return Step{*candidate_, !times_.contains(*candidate_)};
  // the winner of a search was selected partly by luck: both are measured again, in turns
  if (running_ == start_ || repeats_ == 2 * kLaunches) return std::nullopt;
  return Step{repeats_ % 2 == 0 ? running_ : start_, false};
}

std::uint64_t OnlineSearch::due(const Step& step) const {
  const Time before = time(start_), now = time(running_), tested = time(step.index);
  if (before.n == 0 || step.index == running_) return counted_;
  const double expected = tested.n > 0 ? std::max(0.0, tested.seconds - now.seconds) : kCaution * longest_trial;
  const double growth = (1 + bound) * before.seconds - now.seconds, missing = expected - allowance();
  if (missing <= 0) return counted_;
  return growth > 0 ? counted_ + static_cast<std::uint64_t>(std::ceil(missing / growth)) : kNever;
}

void OnlineSearch::count(std::uint64_t launches) {
  const double before = time(start_).seconds;
  if (before <= 0 || launches <= counted_) return;
  const auto more = static_cast<double>(launches - std::exchange(counted_, launches));
  spent += more * time(running_).seconds;
  with_default += more * before;
  worst = std::max(worst, ratio());
}

void OnlineSearch::take(const Step& step, std::optional<double> seconds, double excess) {
  spent += excess;
  if (step.index != running_) longest_trial = std::max(longest_trial, excess);
  worst = std::max(worst, ratio());
  std::vector<double>& times = times_[step.index];
  if (seconds) shortest_ = step.first ? *seconds : std::min(shortest_, *seconds);
  if (!step.first && seconds && (candidate_ || !strategy_)) times.push_back(*seconds);
  if (step.index == start_ && !strategy_) {
    // copies for the comparison of outputs, and a candidate that is slower, in the first trial
    if (times.size() == kLaunches) longest_trial = 4 * time(start_).seconds;
  } else if (!candidate_) {
    if (seconds) again_[step.index].push_back(*seconds);
    if (++repeats_ < 2 * kLaunches) return;
    for (auto& [index, repeated] : again_) times_[index] = std::move(repeated);
    // it was certainly faster before: a launch that was prolonged does not change that
    if (time(running_).seconds >= time(start_).seconds) running_ = start_;
  } else if (!seconds || (!step.first && shortest_ > kCaution * time(running_).seconds)) {
    // not by the first launch, in which a driver may still compile
    end_trial(seconds);
  } else if (times.size() >= kLaunches && (times.size() == kMostLaunches || faster(step.index, running_) ||
                                           time(step.index).seconds >= time(running_).seconds)) {
    end_trial(time(step.index).seconds);
  }
}

void OnlineSearch::end_trial(std::optional<double> seconds) {
  const ConfigurationIndex index = *std::exchange(candidate_, std::nullopt);
  const Time found = time(index);
  Outcome outcome;
  outcome.ok = seconds.has_value();
  if (seconds) outcome.values = {*seconds};
  if (found.n >= kLaunches) {
    outcome.standard_errors = {found.standard_error};
    outcome.degrees = {static_cast<double>(found.n - 1)};
    if (seconds && faster(index, running_)) running_ = index;
  }
  ++tried_;
  strategy_->tell(index, outcome);
}

OnlineSearch::Time OnlineSearch::time(ConfigurationIndex index) const {
  const auto found = times_.find(index);
  if (found == times_.end() || found->second.empty()) return {};
  // the median and the median deviation, as other work on the machine prolongs single launches
  const double middle = median(found->second);
  std::vector<double> deviations;
  for (const double one : found->second) deviations.push_back(std::abs(one - middle));
  constexpr double kNormal = 1.4826, kMedianError = 1.2533;
  const auto n = static_cast<double>(deviations.size());
  return {middle, kNormal * kMedianError * median(deviations) / std::sqrt(n), deviations.size()};
}

bool OnlineSearch::faster(ConfigurationIndex one, ConfigurationIndex other) const {
  const auto a = times_.find(one), b = times_.find(other);
  if (a == times_.end() || b == times_.end() || std::min(a->second.size(), b->second.size()) < kLaunches) return false;
  int reversed = 0;
  for (const double x : a->second)
    reversed += static_cast<int>(std::ranges::count_if(b->second, [&](double y) { return y <= x; }));
  // two-sided 5 % of Mann and Whitney's test (1947), by their normal approximation: 2 for five launches of each
  const auto n = static_cast<double>(a->second.size()), m = static_cast<double>(b->second.size());
  return reversed + 0.5 <= n * m / 2 - 1.96 * std::sqrt(n * m * (n + m + 1) / 12);
}

}  // namespace ergotune::launcher
