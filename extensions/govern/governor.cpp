#include "govern/governor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace ergotune {
namespace {

constexpr double kSame = 0.08;          ///< relative difference of powers and rates within one phase
constexpr double kLargestStep = 0.12;   ///< largest step downwards, relative to the highest clock
constexpr double kTrySeconds = 1.0;     ///< shortest time for which a clock is tried,
constexpr double kTryError = 0.01;      ///< until the relative error of its rate is this,
constexpr double kMostTrySeconds = 10;  ///< or for this time at most
constexpr double kNoticing = 0.5;       ///< share of the bound that may be lost until the end of a phase is noticed
constexpr double kErrors = 2;           ///< number of standard errors that counts as certain
constexpr double kNoise = 0.0002;       ///< relative error of a rate besides its counting error
constexpr int kRefinements = 2;
constexpr double kApart = 0.02;  ///< relative to the highest clock: clocks closer than this count as equal
constexpr std::size_t kMostTried = 10;
constexpr int kReview = 10;  ///< samples of an explored phase after which it is checked whether a lower clock is
                             ///< allowed
constexpr double kWorthwhile = 0.0075;  ///< relative to the highest clock: smallest step worth trying
constexpr double kLongestSample = 3.2;  ///< s

bool near(double a, double b, double tolerance) {
  if (a <= 0 || b <= 0) return a <= 0 && b <= 0;
  return std::abs(std::log(a / b)) <= tolerance;
}

double counting_error(double work, double error) { return work > 0 ? error / work : 0; }

}  // namespace

void Governor::Tried::add(const GovernorSample& sample, double clock_mhz) {
  const double rate = sample.work / sample.seconds;
  seconds += sample.seconds;
  joules += sample.joules;
  work += sample.work;
  counting = std::max(counting, sample.work_error);  // within one interval only the ends contribute, not the middle
  clock_seconds += sample.seconds * sample.clock_mhz.value_or(clock_mhz);
  rate_squares += sample.seconds * rate * rate;
  ++samples;
}

void Governor::Tried::add(const Tried& other) {
  seconds += other.seconds;
  joules += other.joules;
  work += other.work;
  counting = std::hypot(counting, other.counting);
  clock_seconds += other.clock_seconds;
  rate_squares += other.rate_squares;
  samples += other.samples;
}

double Governor::Tried::rate_error() const {
  if (work <= 0) return 0;
  const double each = seconds / static_cast<double>(samples), one = counting > 0 ? 1 : 0;
  const double by_counting = one / 6 / (each * each);  // variance of a sample's rate: its ends are uniformly
                                                       // distributed within a unit
  const double variance = std::max(0.0, rate_squares / seconds - rate() * rate() - by_counting);
  return std::hypot(0.41 * counting / work, std::sqrt(variance / static_cast<double>(samples)) / rate());
}

Governor::Governor(std::vector<double> clocks, GovernorOptions options)
    : clocks_(std::move(clocks)), options_(options), at_(clocks_.size() - 1) {}

bool Governor::fits(const Tried& known, const GovernorSample& sample) const {
  const double seconds = sample.seconds;
  const double counted = counting_error(known.rate() * seconds, sample.work_error);
  // The power of a chip that cools down after a heavier phase drifts within the same phase, which was recognised a
  // moment ago.
  const double watts = sample.joules / seconds;
  return (near(known.watts(), watts, recent_watts_ ? kSame : 2 * kSame) ||
          (recent_watts_ && near(*recent_watts_, watts, 0.5 * kSame))) &&
         near(known.rate(), sample.work / seconds, kSame + 2 * counted);
}

bool Governor::is_exploring() const { return !phase_ || !phases_[*phase_].explored; }

void Governor::go(std::size_t clock) {
  if (clock != at_) recent_watts_.reset();
  at_ = clock;
}

void Governor::identify() {
  unknown_clock_ = clock();
  phase_.reset();
  unknown_.clear();
  steady_ = 0;
  go(clocks_.size() - 1);
}

void Governor::pass(double seconds, double joules) {
  total_seconds_ += seconds;
  if (phase_) {
    const double beyond = clocks_.back() / clock() - 1;
    lost_seconds_ += seconds * (1 - 1 / (1 + phases_[*phase_].follows * beyond));
  }
  exploring_seconds_ += seconds;
  exploring_joules_ += joules;
}

void Governor::observe(const GovernorSample& sample) {
  if (!(sample.seconds > 0)) return;
  total_seconds_ += sample.seconds;
  if (is_exploring()) {
    exploring_seconds_ += sample.seconds;
    exploring_joules_ += sample.joules;
  }
  if (!phase_) {
    unknown_.push_back(sample);
    return recognise();
  }
  Phase& phase = phases_[*phase_];
  const Tried& top = phase.tried.at(clocks_.size() - 1);
  const auto known = phase.tried.find(at_);
  bool same = true;
  if (known != phase.tried.end()) {
    same = fits(known->second, sample);
  } else {
    // A lower clock reduces the power and slows down work by at most the ratio of the clocks.
    const double ratio = clock() / clocks_.back(), rate = sample.work / sample.seconds;
    const double slack = kSame + 2 * counting_error(sample.work, sample.work_error);
    same = sample.joules / sample.seconds <= top.watts() * (1 + kSame) && rate <= top.rate() * (1 + slack) &&
           rate >= top.rate() * ratio * (1 - slack);
  }
  if (!same) {
    unknown_seconds_ = 0.5 * sample.seconds;  // the phase ended during this sample
    // A program whose phases are too short to follow is treated as one phase and sampled for longer.
    if (phase.explored && steady_ < 10) sample_seconds_ = std::min(2 * sample_seconds_, kLongestSample);
    return identify();
  }
  ++steady_;
  recent_watts_ = sample.joules / sample.seconds;
  phase.tried[at_].add(sample, clock());
  phase.seconds += sample.seconds;
  phase.joules += sample.joules;
  phase.work += sample.work;
  if (top.rate() > 0) lost_seconds_ += sample.seconds - sample.work / top.rate();
  if (!phase.explored) return plan(phase);
  if (review(phase)) return;
  // The bound applies to the whole program: compensate for the cost of recognising phases.
  const double spent = slowdown() / options_.max_slowdown;
  if (at_ != clocks_.size() - 1 && spent > 0.99)
    go(clocks_.size() - 1);
  else if (at_ == clocks_.size() - 1 && spent < 0.98)
    go(phase.best);
}

/// Whether an explored phase is to be explored further: the longer it lasts, the more precisely its rates are known,
/// and the closer to the bound it may run.
bool Governor::review(Phase& phase) {
  if (phase.tried.size() >= kMostTried || at_ != phase.best || steady_ % kReview != 0 ||
      phase.best != phase.tried.begin()->first)
    return false;
  const double step = kWorthwhile * clocks_.back();
  if (clocks_[lowest_allowed(phase, kErrors)] < clock() - step) {
    phase.explored = false;
    plan(phase);
    return true;
  }
  return false;
}

void Governor::recognise() {
  const std::size_t count = unknown_.size();
  if (count < 2) return;
  Tried seen;
  seen.add(unknown_[count - 2], clock());
  if (!fits(seen, unknown_[count - 1])) {
    if (count >= 6) {
      sample_seconds_ = std::min(2 * sample_seconds_, kLongestSample);
      unknown_.clear();
    }
    return;
  }
  seen.add(unknown_[count - 1], clock());
  unknown_.clear();
  const std::size_t top = clocks_.size() - 1;
  double nearest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    const Tried& known = phases_[i].tried.at(top);
    const double counted = counting_error(seen.work, seen.counting);
    if (!near(known.watts(), seen.watts(), kSame) || !near(known.rate(), seen.rate(), kSame + counted)) continue;
    const double distance =
        std::abs(known.watts() / seen.watts() - 1) + (seen.rate() > 0 ? std::abs(known.rate() / seen.rate() - 1) : 0.0);
    if (distance < nearest) nearest = distance, phase_ = i;
  }
  if (!phase_) {
    phase_ = phases_.size();
    phases_.emplace_back().best = top;
  }
  Phase& phase = phases_[*phase_];
  phase.tried[top].add(seen);
  ++phase.visits;
  lost_seconds_ +=
      unknown_seconds_ * (1 - 1 / (1 + phase.follows * (clocks_.back() / std::max(unknown_clock_, 1e-9) - 1)));
  unknown_seconds_ = 0;
  phase.seconds += seen.seconds, phase.joules += seen.joules, phase.work += seen.work;
  if (phase.explored)
    go(phase.best);
  else
    plan(phase);
}

/// Time per unit of work at a tried clock, relative to that at the highest clock.
double Governor::time_ratio(const Phase& phase, std::size_t clock) const {
  return phase.tried.at(clocks_.size() - 1).rate() / phase.tried.at(clock).rate();
}

/// Relative standard error of time_ratio().
double Governor::margin(const Phase& phase, std::size_t clock) const {
  return std::hypot(phase.tried.at(clocks_.size() - 1).rate_error(), phase.tried.at(clock).rate_error());
}

/// The lowest clock at which the time per unit of work satisfies the bound: t(f) = a + b / f with the largest b that is
/// consistent with the tried clocks.
std::size_t Governor::lowest_allowed(const Phase& phase, double errors, double* share) const {
  const std::size_t top = clocks_.size() - 1;
  const double bound = options_.max_slowdown, highest = phase.tried.at(top).clock();
  double follows = 1, lowest = clocks_.back(), too_slow = 0;
  for (const auto& [clock, tried] : phase.tried) {
    lowest = std::min(lowest, clocks_[clock]);
    const double beyond = highest / tried.clock() - 1, slower = time_ratio(phase, clock) - 1;
    if (slower > options_.max_slowdown) too_slow = std::max(too_slow, clocks_[clock]);
    if (beyond > 0.01)
      follows = std::min(follows, std::max(0.0, slower + errors * margin(phase, clock) + kNoise) / beyond);
  }
  if (share) *share = follows;
  const double allowed = follows > 0 ? highest / (1 + bound / follows) : 0.0;
  // The next phase begins at this phase's clock until the change is noticed: the shorter a phase, the closer its clock
  // must be to the highest.
  const double stays = phase.seconds / std::max(1, phase.visits);
  const double noticed = clocks_.back() / (1 + kNoticing * options_.max_slowdown * stays / (1.5 * sample_seconds_));
  const double least = std::max({allowed, noticed, lowest - kLargestStep * clocks_.back()});
  for (std::size_t i = 0; i < clocks_.size(); ++i)
    if (clocks_[i] >= least && clocks_[i] > too_slow) return i;
  return top;
}

void Governor::plan(Phase& phase) {
  const std::size_t top = clocks_.size() - 1;
  const Tried& now = phase.tried.at(at_);
  // All other clocks are compared with the highest clock, which needs higher precision.
  const double error = at_ == top ? std::min(kTryError, 0.05 * options_.max_slowdown) : kTryError;
  const bool known = now.seconds >= kTrySeconds && now.rate_error() <= error;
  if (!known && now.seconds < kMostTrySeconds) return;
  if (!(phase.tried.at(top).work > 0)) {  // no work that depends on the clock
    phase.explored = true;
    phase.best = top;
    return go(top);
  }
  phase.best = top;
  for (const auto& [clock, tried] : phase.tried)
    if (tried.work > 0 && time_ratio(phase, clock) <= 1 + options_.max_slowdown &&
        tried.cost() < phase.tried.at(phase.best).cost())
      phase.best = clock;
  const std::size_t lowest = phase.tried.begin()->first, floor = lowest_allowed(phase, kErrors, &phase.follows);
  const double least = phase.tried.at(phase.best).cost();
  if (clocks_[floor] < clocks_[lowest] - kWorthwhile * clocks_.back() && phase.tried.at(lowest).cost() <= 1.01 * least)
    return go(floor);
  // The minimum is between neighbours: use the vertex of the parabola.
  if (phase.refinements < kRefinements && phase.tried.size() >= 3 && phase.best != top) {
    ++phase.refinements;
    auto middle = phase.tried.find(phase.best);
    if (middle == phase.tried.begin()) ++middle;
    if (std::next(middle) == phase.tried.end()) --middle;
    const auto below = std::prev(middle), above = std::next(middle);
    const double x0 = clocks_[below->first], x1 = clocks_[middle->first], x2 = clocks_[above->first];
    const double y0 = below->second.cost(), y1 = middle->second.cost(), y2 = above->second.cost();
    const double up = (x1 - x0) * (x1 - x0) * (y1 - y2) - (x1 - x2) * (x1 - x2) * (y1 - y0);
    const double down = (x1 - x0) * (y1 - y2) - (x1 - x2) * (y1 - y0);
    const auto unknown = [&](double mhz) -> std::optional<std::size_t> {
      const auto nearest =
          std::ranges::min_element(clocks_, [&](double a, double b) { return std::abs(a - mhz) < std::abs(b - mhz); });
      const auto clock = static_cast<std::size_t>(nearest - clocks_.begin());
      const bool new_one = std::ranges::all_of(phase.tried, [&](const auto& one) {
        return std::abs(clocks_[one.first] - *nearest) > kApart * clocks_.back();
      });
      return new_one && clock >= floor ? std::optional(clock) : std::nullopt;
    };
    if (down != 0)
      if (const auto vertex = unknown(std::clamp(x1 - 0.5 * up / down, x0, x2))) return go(*vertex);
    // Power has a kink where the voltage begins to rise, which a parabola does not represent.
    const double best = clocks_[phase.best], next = clocks_[std::next(phase.tried.find(phase.best))->first];
    if (const auto middle = unknown(0.5 * (best + next))) return go(*middle);
  }
  phase.explored = true;
  go(phase.best);
}

std::vector<GovernedPhase> Governor::phases() const {
  std::vector<GovernedPhase> out;
  for (const Phase& phase : phases_) {
    const Tried &top = phase.tried.at(clocks_.size() - 1), &best = phase.tried.at(phase.best);
    GovernedPhase one;
    one.clock_mhz = clocks_[phase.best];
    one.explored = phase.explored;
    one.seconds = phase.seconds, one.joules = phase.joules, one.work = phase.work;
    one.watts = top.watts(), one.rate = top.rate();
    if (top.work > 0 && best.work > 0) {
      one.slowdown = time_ratio(phase, phase.best) - 1;
      one.saved = 1 - best.cost() / top.cost();
    }
    one.clocks_tried = phase.tried.size();
    out.push_back(one);
  }
  return out;
}

double Governor::exploring_cost() const {
  double cost = 0;
  for (const Phase& phase : phases_)
    if (const Tried& best = phase.tried.at(phase.best); best.work > 0) cost += phase.joules - phase.work * best.cost();
  return cost;
}

double Governor::slowdown() const {
  const double needed = total_seconds_ - lost_seconds_;
  return needed > 0 ? lost_seconds_ / needed : 0;
}

}  // namespace ergotune
