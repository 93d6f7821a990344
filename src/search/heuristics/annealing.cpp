// Walks that sometimes accept a worse configuration: simulated annealing, threshold accepting, dual annealing.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "search/heuristics/moves.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

/// A walk with a falling temperature. Rises are relative to the current value, so that one schedule is valid for
/// microseconds and seconds. It cools over the budget (or `length` evaluations), then restarts from the best.
class Walk : public StrategyBase {
 protected:
  Walk(std::string name, const StrategyContext& c)
      : StrategyBase(std::move(name), c),
        moves_(space()),
        hot_(real("hot")),
        fall_(real("cold") / hot_),
        adjacent_(real("adjacent")),
        length_(integer("length")) {
    if (c.budget > 0)
      length_ = std::min(length_, static_cast<std::int64_t>(std::min<std::uint64_t>(c.budget, INT64_MAX)));
  }

  virtual bool accepts(double rise, double temperature) = 0;
  virtual ConfigurationIndex candidate(ConfigurationIndex from) {
    return random().chance(adjacent_) ? moves_.random_adjacent(from, random())
                                      : moves_.random_neighbour(from, random());
  }
  double temperature() const {
    const auto length = static_cast<double>(length_);
    const double progress = std::fmod(static_cast<double>(tell_count()), length) / length;
    return hot_ * std::pow(fall_, progress);
  }
  double hot() const { return hot_; }

  void advance(std::size_t wanted) override {
    constexpr int kFreeSteps = 300;
    if (!has_current_) {
      const auto starts = static_cast<std::size_t>(integer("sample"));
      if (tell_count() == 0 && starts > 1) {
        propose_all(space().latin_hypercube(starts, random()));
      } else if (std::isfinite(best_value())) {
        move_to(best());
      }
      if (!has_current_) return;
    }
    for (int step = 0; step < kFreeSteps && queued() < wanted; ++step) {
      const ConfigurationIndex next = candidate(current_);
      if (memory().known(next))
        consider(next);
      else
        propose(next);
    }
    if (queued() == 0)
      has_current_ = false;  // walked in circles: continue from the best, or from a random
                             // configuration
  }
  void learn(ConfigurationIndex index, double now, const Outcome&) override {
    if (has_current_)
      consider(index);
    else if (std::isfinite(now) && now <= best_value() && tell_count() >= static_cast<std::uint64_t>(integer("sample")))
      move_to(index);
  }
  void consider(ConfigurationIndex index) {
    const double now = value(index);
    if (!std::isfinite(now)) return;
    const double rise = (now - value(current_)) / std::max(std::abs(value(current_)), 1e-300);
    if (rise <= 0 || accepts(rise, temperature())) move_to(index);
  }
  void move_to(ConfigurationIndex index) {
    current_ = index;
    has_current_ = true;
  }
  Moves& moves() { return moves_; }

 private:
  Moves moves_;
  double hot_, fall_, adjacent_;  // options, read once: lookup by name is too slow for each step
  std::int64_t length_;
  ConfigurationIndex current_ = 0;
  bool has_current_ = false;
};

class SimulatedAnnealing : public Walk {
 public:
  explicit SimulatedAnnealing(const StrategyContext& c) : Walk("simulated_annealing", c) {}

 protected:
  bool accepts(double rise, double temperature) override { return random().uniform() < std::exp(-rise / temperature); }
};

class ThresholdAccepting : public Walk {
 public:
  explicit ThresholdAccepting(const StrategyContext& c) : Walk("threshold_accepting", c) {}

 protected:
  bool accepts(double rise, double temperature) override { return rise < temperature; }
};

/// Generalised simulated annealing: heavy-tailed jumps and Tsallis' acceptance (Xiang et al., 1997), with the
/// small steps of a local search in between.
class DualAnnealing : public Walk {
 public:
  explicit DualAnnealing(const StrategyContext& c) : Walk("dual_annealing", c) {}

 protected:
  ConfigurationIndex candidate(ConfigurationIndex from) override {
    if (random().chance(real("local"))) return moves().random_neighbour(from, random());
    std::vector<double> point = moves().point(from);
    // Cauchy steps whose width falls with the temperature
    const double width = std::max(0.05, std::sqrt(temperature() / hot()));
    for (const std::size_t p : moves().free()) {
      const double reach = 0.5 * width * static_cast<double>(moves().count(p));
      point[p] += reach * std::tan(std::numbers::pi * (random().uniform() - 0.5)) * 0.5;
      const double span = static_cast<double>(moves().count(p));
      point[p] = point[p] - span * std::floor((point[p] + 0.5) / span);  // points beyond one side re-enter on the other
    }
    return moves().towards(from, point, random());
  }
  bool accepts(double rise, double temperature) override {
    const double q = real("acceptance");
    const double base = 1 - (1 - q) * rise / temperature;
    return base > 0 && random().uniform() < std::pow(base, 1 / (1 - q));
  }
};

}  // namespace

void add_annealing(StrategyList& list) {
  const std::vector<StrategyOption> common = {
      {"hot", "relative rise taken for granted at the start", 0.5, {0.1, 0.3, 0.5, 1.0}},
      {"cold", "the same at the end of the schedule", 0.005, {0.001, 0.005, 0.02}},
      {"length", "evaluations of one schedule (at most the budget)", 200, {100, 200, 400, 1000}},
      {"adjacent", "share of steps to the next value instead of to any", 0.5, {0.0, 0.25, 0.5, 0.75}},
      {"sample", "spread sample that the walk starts from", 8, {1, 4, 8, 16}}};
  list.push_back(describe_strategy<SimulatedAnnealing>("simulated_annealing", "a walk that cools", common));
  list.push_back(
      describe_strategy<ThresholdAccepting>("threshold_accepting", "a walk with a falling threshold", common));
  auto dual = common;
  dual.push_back({"acceptance", "Tsallis' parameter of the acceptance rule", -5.0, {-10.0, -5.0, -2.0}});
  dual.push_back({"local", "share of one-parameter steps", 0.6, {0.3, 0.6, 0.8}});
  list.push_back(describe_strategy<DualAnnealing>("dual_annealing", "heavy-tailed jumps and a local search", dual));
}

}  // namespace ergotune::search
