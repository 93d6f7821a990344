// Strategies that do not use outcomes: brute force and three kinds of sampling.
#include <algorithm>
#include <numeric>

#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

/// All configurations in order.
class BruteForce : public StrategyBase {
 public:
  explicit BruteForce(const StrategyContext& context) : StrategyBase("brute_force", context) {}

 protected:
  bool concurrent() const override { return true; }
  void advance(std::size_t wanted) override {
    for (; next_ < memory().size() && queued() < wanted; ++next_) propose(next_);
  }

 private:
  ConfigurationIndex next_ = 0;
};

/// Uniform random sampling without replacement.
class RandomSampling : public StrategyBase {
 public:
  explicit RandomSampling(const StrategyContext& context) : StrategyBase("random", context) {
    // a lazily shuffled deck where it fits in memory: as fast for the last configuration as for the first
    if (memory().size() <= kDeckLimit) {
      deck_.resize(memory().size());
      std::iota(deck_.begin(), deck_.end(), std::uint32_t{0});
    }
  }

 protected:
  bool concurrent() const override { return true; }
  void advance(std::size_t wanted) override {
    while (queued() < wanted && memory().fresh_count() > 0) {
      if (deck_.empty()) {
        propose(*memory().random_fresh(random()));
        continue;
      }
      std::swap(deck_[random().below(deck_.size())], deck_.back());
      const ConfigurationIndex index = deck_.back();
      deck_.pop_back();
      propose(index);
    }
  }

 private:
  static constexpr std::uint64_t kDeckLimit = 8'000'000;
  std::vector<std::uint32_t> deck_;
};

/// Space-filling designs: the first has the size of the budget (or `first`), each further one doubles the total.
class SpaceFilling : public StrategyBase {
 protected:
  using StrategyBase::StrategyBase;
  bool concurrent() const override { return true; }
  virtual std::vector<ConfigurationIndex> design(std::size_t count) = 0;
  void advance(std::size_t) override {
    if (total_ == 0) total_ = context().budget > 0 ? context().budget : static_cast<std::uint64_t>(integer("first"));
    if (total_ * 2 > memory().size())
      return;  // more than half of the space: the base class requests the rest in
               // random order
    const auto points = design(total_);
    propose_all(points);
    total_ *= 2;
  }

 private:
  std::uint64_t total_ = 0;
};

class LatinHypercube : public SpaceFilling {
 public:
  explicit LatinHypercube(const StrategyContext& context) : SpaceFilling("latin_hypercube", context) {}

 protected:
  std::vector<ConfigurationIndex> design(std::size_t count) override {
    return space().latin_hypercube(count, random());
  }
};

class LowDiscrepancy : public SpaceFilling {
 public:
  explicit LowDiscrepancy(const StrategyContext& context) : SpaceFilling("low_discrepancy", context) {}

 protected:
  std::vector<ConfigurationIndex> design(std::size_t count) override {
    return space().low_discrepancy(count, random());
  }
};

}  // namespace

void add_sampling(StrategyList& list) {
  list.push_back(describe_strategy<BruteForce>("brute_force", "every configuration, in order"));
  list.push_back(describe_strategy<RandomSampling>("random", "uniformly at random, without replacement"));
  const StrategyOption first{"first", "size of the first design when no budget is given", 64, {16, 32, 64, 128, 256}};
  list.push_back(describe_strategy<LatinHypercube>("latin_hypercube", "Latin hypercube designs", {first}));
  list.push_back(describe_strategy<LowDiscrepancy>("low_discrepancy", "a scrambled low-discrepancy sequence", {first}));
}

}  // namespace ergotune::search
