// NSGA-II (Deb et al., 2002): non-dominated sorting and crowding distance over a population that breeds like that of
// the genetic strategy.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "search/heuristics/population.hpp"
#include "search/pareto.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

class Nsga2 : public Population {
 public:
  explicit Nsga2(const StrategyContext& c) : Population("nsga2", c) {}

 protected:
  void learn(ConfigurationIndex index, double, const Outcome& outcome) override {
    if (outcome.ok) values_[index] = outcome.values;
  }

  std::vector<Member> breed() override {
    const auto ranked = ranks(members());
    std::vector<Member> children;
    while (children.size() < population()) {
      const Member &a = members()[pick(ranked)], &b = members()[pick(ranked)];
      children.push_back(child_of(a, b));
    }
    return children;
  }

  void select(std::vector<Member>& members, std::vector<Member>& children) override {
    const std::size_t size = members.size();
    members.insert(members.end(), children.begin(), children.end());
    std::sort(members.begin(), members.end(), [](auto& a, auto& b) { return a.index < b.index; });
    members.erase(std::unique(members.begin(), members.end(), [](auto& a, auto& b) { return a.index == b.index; }),
                  members.end());
    const auto ranked = ranks(members);
    std::vector<std::size_t> order(members.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ranked[a] < ranked[b]; });
    std::vector<Member> kept;
    for (std::size_t i = 0; i < std::min(size, order.size()); ++i) kept.push_back(std::move(members[order[i]]));
    members = std::move(kept);
  }

 private:
  /// Front number and crowding (negated: smaller is better).
  using Rank = std::pair<std::size_t, double>;

  std::vector<Rank> ranks(const std::vector<Member>& list) const {
    std::vector<Rank> result(list.size(), {list.size() + 1, 0.0});
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < list.size(); ++i)
      if (values_.count(list[i].index) > 0) left.push_back(i);
    for (std::size_t front = 0; !left.empty(); ++front) {
      std::vector<std::size_t> first;
      for (const std::size_t i : left) {
        const bool beaten = std::any_of(left.begin(), left.end(), [&](std::size_t j) {
          return dominates(values_.at(list[j].index), values_.at(list[i].index));
        });
        if (!beaten) first.push_back(i);
      }
      const auto crowding = crowdings(list, first);
      for (std::size_t k = 0; k < first.size(); ++k) result[first[k]] = {front, -crowding[k]};
      std::erase_if(left, [&](std::size_t i) { return std::find(first.begin(), first.end(), i) != first.end(); });
    }
    return result;
  }

  std::vector<double> crowdings(const std::vector<Member>& list, const std::vector<std::size_t>& front) const {
    std::vector<double> result(front.size(), 0.0);
    const std::size_t objectives = values_.at(list[front.front()].index).size();
    std::vector<std::size_t> order(front.size());
    for (std::size_t o = 0; o < objectives; ++o) {
      std::iota(order.begin(), order.end(), std::size_t{0});
      const auto at = [&](std::size_t k) { return values_.at(list[front[k]].index)[o]; };
      std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return at(a) < at(b); });
      result[order.front()] = result[order.back()] = std::numeric_limits<double>::infinity();
      const double span = at(order.back()) - at(order.front());
      for (std::size_t k = 1; k + 1 < order.size() && span > 0; ++k)
        result[order[k]] += (at(order[k + 1]) - at(order[k - 1])) / span;
    }
    return result;
  }

  std::size_t pick(const std::vector<Rank>& ranked) {
    const std::size_t a = random().below(ranked.size()), b = random().below(ranked.size());
    return ranked[a] < ranked[b] ? a : b;
  }

  std::unordered_map<ConfigurationIndex, std::vector<double>> values_;
};

}  // namespace

void add_nsga2(StrategyList& list) {
  auto description =
      describe_strategy<Nsga2>("nsga2", "non-dominated sorting genetic algorithm, for Pareto objectives",
                               {{"population", "members (fewer where the budget is small)", 24, {12, 24, 40}},
                                {"mutation", "share of children that mutate", 0.5, {0.2, 0.5, 0.8}}});
  description.multi_objective = true;
  list.push_back(std::move(description));
}

}  // namespace ergotune::search
