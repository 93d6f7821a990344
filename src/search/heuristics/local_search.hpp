// Climbing to local optima; what happens there makes the strategy.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "search/heuristics/moves.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {

/// Climbs from a start by first or best improvement. At a local optimum the derived strategy names the next
/// start.
class LocalSearch : public StrategyBase {
 protected:
  /// Options "improvement" and "neighbourhood" say how it climbs.
  LocalSearch(std::string name, const StrategyContext& context);

  /// The next start after a local optimum was reached; nullopt for a random fresh configuration. The start
  /// may be known: then climbing goes on from its recorded value.
  virtual std::optional<ConfigurationIndex> next_start(ConfigurationIndex optimum) = 0;
  /// The first start.
  virtual std::optional<ConfigurationIndex> first_start() { return std::nullopt; }

  void advance(std::size_t wanted) override;
  void learn(ConfigurationIndex index, double value, const Outcome& outcome) override;
  Moves& moves() { return moves_; }

 private:
  void start_at(std::optional<ConfigurationIndex> start);

  bool takes_first_;
  Neighbourhood neighbourhood_;
  Moves moves_;
  std::optional<ConfigurationIndex> current_;
  std::optional<ConfigurationIndex> pending_start_;
  std::vector<ConfigurationIndex> list_;
  bool begun_ = false;
};

/// "first" or "best". Throws UserError otherwise.
bool takes_first_improvement(const StrategyContext& context);
Neighbourhood neighbourhood_option(const StrategyContext& context);
StrategyOption improvement_option(const std::string& standard);
StrategyOption neighbourhood_choice(const std::string& standard);

}  // namespace ergotune::search
