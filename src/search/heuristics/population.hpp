// Base of strategies with a population: one generation is evaluated, then the next is bred.
#pragma once

#include <string>
#include <vector>

#include "search/heuristics/moves.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {

/// A member of the population: a point in the continuous space of value positions, and the configuration evaluated for
/// it.
struct Member {
  std::vector<double> point;
  ConfigurationIndex index = 0;
  double value = 0;  ///< infinity for a failure
};

class Population : public StrategyBase {
 protected:
  Population(std::string name, const StrategyContext& context);

  /// The next generation, bred from members(), whose values are known.
  virtual std::vector<Member> breed() = 0;
  /// Selects the survivors once the offspring is evaluated; by default it replaces the old generation.
  virtual void select(std::vector<Member>& members, std::vector<Member>& offspring) { members.swap(offspring); }

  void advance(std::size_t wanted) final;
  const std::vector<Member>& members() const { return members_; }
  /// A member at a real-valued point. Its configuration is the one that Moves::towards() reaches from `from`; its point
  /// stays as given.
  Member member_at(std::vector<double> point, ConfigurationIndex from);
  Member member_of(ConfigurationIndex index);
  /// A child of two members: uniform crossover, then mutation of single parameters (option "mutation"). If the result
  /// is known already, it is mutated a few more times until it is new.
  Member child_of(const Member& a, const Member& b);
  Moves& moves() { return moves_; }
  std::size_t population() const;

 private:
  bool all_known(const std::vector<Member>& list) const;
  void settle(std::vector<Member>& list);

  Moves moves_;
  std::vector<Member> members_, offspring_;
  bool begun_ = false;
};

}  // namespace ergotune::search
