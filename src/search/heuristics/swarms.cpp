// Populations that move through the space of value positions: differential evolution, particle swarm, firefly and grey
// wolf.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "search/heuristics/population.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

/// DE/rand-to-best/1/bin (Storn and Price, 1997).
class DifferentialEvolution : public Population {
 public:
  explicit DifferentialEvolution(const StrategyContext& c) : Population("differential_evolution", c) {}

 protected:
  std::vector<Member> breed() override {
    const auto& m = members();
    const auto best = std::min_element(m.begin(), m.end(), [](auto& a, auto& b) { return a.value < b.value; });
    std::vector<Member> trials;
    for (const Member& parent : m) {
      const Member& a = m[random().below(m.size())];
      const Member& b = m[random().below(m.size())];
      const double f = real("weight"), pull = real("pull");
      std::vector<double> point = parent.point;
      const std::size_t forced = moves().free().empty() ? 0 : moves().free()[random().below(moves().free().size())];
      for (const std::size_t p : moves().free()) {
        if (p != forced && !random().chance(real("crossover"))) continue;
        point[p] += pull * (best->point[p] - parent.point[p]) + f * (a.point[p] - b.point[p]);
        // random offsets, without which members on common grid points would never leave them
        point[p] += 0.5 * (random().uniform() - 0.5);
      }
      trials.push_back(member_at(std::move(point), parent.index));
    }
    return trials;
  }
  void select(std::vector<Member>& members, std::vector<Member>& trials) override {
    auto member = members.begin();
    for (Member& trial : trials) {
      if (trial.value <= member->value) *member = std::move(trial);
      ++member;
    }
  }
};

/// Kennedy and Eberhart, 1995, with the constriction of Clerc and Kennedy (2002) as its default weights.
class ParticleSwarm : public Population {
 public:
  explicit ParticleSwarm(const StrategyContext& c) : Population("particle_swarm", c) {}

 protected:
  std::vector<Member> breed() override {
    const auto& m = members();
    if (own_best_.size() != m.size()) {
      own_best_.assign(m.begin(), m.end());
      velocity_.assign(m.size(), std::vector<double>(moves().dimensions(), 0.0));
      for (auto& v : velocity_)
        for (const std::size_t p : moves().free()) v[p] = 0.25 * moves().count(p) * (random().uniform() - 0.5);
    }
    for (std::size_t i = 0; i < m.size(); ++i)
      if (m[i].value < own_best_[i].value) own_best_[i] = m[i];
    const auto leader =
        *std::min_element(own_best_.begin(), own_best_.end(), [](auto& a, auto& b) { return a.value < b.value; });
    std::vector<Member> moved;
    for (std::size_t i = 0; i < m.size(); ++i) {
      std::vector<double> point = m[i].point;
      for (const std::size_t p : moves().free()) {
        double& v = velocity_[i][p];
        v = real("inertia") * v + real("own") * random().uniform() * (own_best_[i].point[p] - point[p]) +
            real("social") * random().uniform() * (leader.point[p] - point[p]);
        const double limit = 0.5 * moves().count(p);
        v = std::clamp(v, -limit, limit);
        point[p] += v;
      }
      moved.push_back(member_at(std::move(point), m[i].index));
    }
    return moved;
  }

 private:
  std::vector<Member> own_best_;
  std::vector<std::vector<double>> velocity_;
};

/// Yang, 2009: each member is attracted by all brighter ones, less over larger distances.
class Firefly : public Population {
 public:
  explicit Firefly(const StrategyContext& c) : Population("firefly", c) {}

 protected:
  std::vector<Member> breed() override {
    const auto& m = members();
    std::vector<Member> moved;
    for (const Member& self : m) {
      std::vector<double> point = self.point;
      for (const Member& other : m) {
        if (!(other.value < self.value)) continue;
        double distance = 0;
        for (const std::size_t p : moves().free()) {
          const double d = (other.point[p] - self.point[p]) / moves().count(p);
          distance += d * d;
        }
        const double attraction = real("attraction") * std::exp(-real("absorption") * distance);
        for (const std::size_t p : moves().free()) point[p] += attraction * (other.point[p] - point[p]);
      }
      for (const std::size_t p : moves().free())
        point[p] += real("noise") * moves().count(p) * (random().uniform() - 0.5);
      moved.push_back(member_at(std::move(point), self.index));
    }
    return moved;
  }
  void select(std::vector<Member>& members, std::vector<Member>& moved) override {
    auto member = members.begin();
    for (Member& fly : moved) {
      if (fly.value <= member->value || random().chance(0.1)) *member = std::move(fly);
      ++member;
    }
  }
};

/// Mirjalili et al., 2014: the population moves towards its three best members.
class GreyWolf : public Population {
 public:
  explicit GreyWolf(const StrategyContext& c) : Population("grey_wolf", c) {}

 protected:
  std::vector<Member> breed() override {
    std::vector<Member> pack(members().begin(), members().end());
    std::sort(pack.begin(), pack.end(), [](auto& a, auto& b) { return a.value < b.value; });
    for (const Member& member : pack) remember(member);
    const double length = static_cast<double>(context().budget > 0 ? context().budget : 300);
    const double progress = std::fmod(static_cast<double>(tell_count()), length) / length;
    const double a = 2 * (1 - progress);
    std::vector<Member> moved;
    for (const Member& wolf : members()) {
      std::vector<double> point(wolf.point);
      for (const std::size_t p : moves().free()) {
        double sum = 0;
        for (const Member& leader : leaders_) {
          const double reach = a * (2 * random().uniform() - 1);
          sum += leader.point[p] - reach * std::abs(2 * random().uniform() * leader.point[p] - wolf.point[p]);
        }
        point[p] = sum / static_cast<double>(leaders_.size());
        if (random().chance(real("mutation"))) point[p] = random().uniform() * moves().count(p) - 0.5;
      }
      moved.push_back(member_at(std::move(point), wolf.index));
    }
    return moved;
  }

 private:
  void remember(const Member& member) {
    for (const Member& leader : leaders_)
      if (leader.index == member.index) return;
    leaders_.push_back(member);
    std::sort(leaders_.begin(), leaders_.end(), [](auto& a, auto& b) { return a.value < b.value; });
    if (leaders_.size() > 3) leaders_.pop_back();
  }
  std::vector<Member> leaders_;
};

}  // namespace

void add_swarms(StrategyList& list) {
  const StrategyOption size{"population", "members (fewer where the budget is small)", 20, {10, 20, 30, 50}};
  list.push_back(
      describe_strategy<DifferentialEvolution>("differential_evolution", "differences of members move members",
                                               {size,
                                                {"weight", "of a difference", 0.7, {0.4, 0.7, 0.9}},
                                                {"pull", "towards the best", 0.4, {0.0, 0.2, 0.4, 0.7}},
                                                {"crossover", "share of parameters that move", 0.6, {0.3, 0.6, 0.9}}}));
  list.push_back(describe_strategy<ParticleSwarm>("particle_swarm", "particles drawn to their own and the swarm's best",
                                                  {size,
                                                   {"inertia", "velocity kept", 0.73, {0.5, 0.73, 0.9}},
                                                   {"own", "pull to the own best", 1.5, {1.0, 1.5, 2.0}},
                                                   {"social", "pull to the swarm's best", 1.5, {1.0, 1.5, 2.0}}}));
  list.push_back(
      describe_strategy<Firefly>("firefly", "each is drawn to every brighter one",
                                 {size,
                                  {"attraction", "at no distance", 0.4, {0.2, 0.4, 0.8}},
                                  {"absorption", "loss over distance", 1.0, {0.3, 1.0, 3.0}},
                                  {"noise", "random part of a step, share of the range", 0.15, {0.05, 0.15, 0.3}}}));
  list.push_back(describe_strategy<GreyWolf>(
      "grey_wolf", "a pack closes in on its three best",
      {size, {"mutation", "share of parameters drawn afresh", 0.05, {0.0, 0.05, 0.1, 0.2}}}));
}

}  // namespace ergotune::search
