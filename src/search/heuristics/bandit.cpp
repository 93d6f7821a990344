// A bandit over other strategies, as in OpenTuner (Ansel et al., 2014) and ATF: strategies with recent improvements are
// asked more often. Every outcome is passed to all of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <unordered_map>

#include "base/text.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

class Bandit : public StrategyBase {
 public:
  explicit Bandit(const StrategyContext& c) : StrategyBase("bandit", c) {
    for (const std::string& name : split(text("members"), '+')) {
      if (name == "bandit" || name == "auto") throw UserError("strategy bandit: it cannot be its own member");
      StrategyContext child = c;
      child.options.clear();
      child.known.clear();
      child.seed = random()();
      arms_.push_back({name, make_strategy(name, child), {}});
    }
    if (arms_.empty()) throw UserError("strategy bandit: option members names no strategy");
  }
  std::string explanation() const override {
    std::string text = "asked so far:";
    for (const Arm& arm : arms_) text += fmt::format(" {} {}", arm.name, arm.uses);
    return text;
  }

 protected:
  bool concurrent() const override { return true; }

  void advance(std::size_t) override {
    std::vector<std::size_t> order(arms_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::vector<double> merits;
    for (const Arm& arm : arms_) merits.push_back(merit(arm) + 1e-9 * random().uniform());
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return merits[a] > merits[b]; });
    for (const std::size_t i : order) {
      for (const ConfigurationIndex index : arms_[i].strategy->ask(1)) {
        ++arms_[i].uses;
        if (propose(index)) {
          owner_[index] = i;
          return;
        }
      }
    }
  }
  void learn(ConfigurationIndex index, double value, const Outcome& outcome) override {
    const bool improves = value < last_best_;
    last_best_ = std::min(last_best_, value);
    if (const auto it = owner_.find(index); it != owner_.end()) {
      window_.emplace_back(it->second, improves);
      owner_.erase(it);
      if (window_.size() > static_cast<std::size_t>(integer("window"))) window_.pop_front();
    }
    for (Arm& arm : arms_) arm.strategy->tell(index, outcome);
  }

 private:
  struct Arm {
    std::string name;
    std::unique_ptr<Strategy> strategy;
    std::uint64_t uses = 0;
  };

  /// Area under the curve of its improvements within the window, weighted towards later ones, plus an exploration
  /// bonus.
  double merit(const Arm& arm) const {
    const auto self = static_cast<std::size_t>(&arm - arms_.data());
    double area = 0, rank = 0;
    for (const auto& [owner, improved] : window_) {
      if (owner != self) continue;
      rank += 1;
      if (improved) area += rank;
    }
    if (rank == 0) return 1e9;
    const double exploitation = 2 * area / (rank * (rank + 1));
    return exploitation + real("exploration") * std::sqrt(2 * std::log(static_cast<double>(window_.size()) + 1) / rank);
  }

  std::vector<Arm> arms_;
  std::unordered_map<ConfigurationIndex, std::size_t> owner_;
  std::deque<std::pair<std::size_t, bool>> window_;
  double last_best_ = std::numeric_limits<double>::infinity();
};

}  // namespace

void add_bandit(StrategyList& list) {
  list.push_back(describe_strategy<Bandit>(
      "bandit", "asks whichever of several strategies improved most lately",
      {{"members",
        "strategies, joined by +",
        "genetic+simulated_annealing+differential_evolution+iterated_local_search+estimation_of_distribution",
        {}},
       {"window", "evaluations remembered", 100, {50, 100, 200}},
       {"exploration", "weight of arms that were seldom asked", 0.1, {0.05, 0.1, 0.3}}}));
}

}  // namespace ergotune::search
