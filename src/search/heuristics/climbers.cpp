// Strategies that consist of climbs: multi-start and iterated local search, variable neighbourhood, basin hopping; and
// tabu search.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "search/heuristics/moves.hpp"
#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

/// Climbs from a start by first or best improvement. At a local optimum the derived strategy chooses the next start.
class LocalSearch : public StrategyBase {
 protected:
  /// The options "improvement" and "neighbourhood" select how it climbs.
  LocalSearch(std::string name, const StrategyContext& context);

  /// The next start after a local optimum; nullopt: a random fresh configuration. A known start is not evaluated again.
  virtual std::optional<ConfigurationIndex> next_start(ConfigurationIndex optimum) = 0;
  /// The first start; nullopt: a random configuration.
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

/// Whether option "improvement" is "first" rather than "best". Throws UserError for any other value.
bool takes_first_improvement(const StrategyContext& context);
Neighbourhood neighbourhood_option(const StrategyContext& context);
StrategyOption improvement_option(const std::string& standard);
StrategyOption neighbourhood_choice(const std::string& standard);

LocalSearch::LocalSearch(std::string name, const StrategyContext& context)
    : StrategyBase(std::move(name), context),
      takes_first_(takes_first_improvement(context)),
      neighbourhood_(neighbourhood_option(context)),
      moves_(space()) {}

void LocalSearch::start_at(std::optional<ConfigurationIndex> start) {
  if (!start) start = memory().random_fresh(random());
  pending_start_ = start;
  if (start && !memory().known(*start)) propose(*start);
}

void LocalSearch::advance(std::size_t) {
  // Each iteration moves to a strictly better configuration or to another start, so few iterations make no new
  // proposal.
  constexpr int kFreeTurns = 12;
  for (int turn = 0; turn < kFreeTurns && queued() == 0; ++turn) {
    if (!begun_) {
      begun_ = true;
      start_at(first_start());
      continue;
    }
    if (pending_start_) {
      if (!memory().known(*pending_start_)) return;
      // no climbing from a failed start
      current_ = std::isfinite(value(*pending_start_)) ? pending_start_ : std::nullopt;
      pending_start_.reset();
      if (!current_) start_at(std::nullopt);
      continue;
    }
    if (!current_) {
      start_at(std::nullopt);
      continue;
    }
    space().neighbours(*current_, neighbourhood_, list_);
    const auto better =
        std::min_element(list_.begin(), list_.end(), [&](auto a, auto b) { return value(a) < value(b); });
    const bool improves = better != list_.end() && value(*better) < value(*current_);
    if (improves && takes_first_) {
      current_ = *better;
      continue;
    }
    if (takes_first_) random().shuffle(std::span<ConfigurationIndex>(list_));
    for (const ConfigurationIndex index : list_) propose(index);
    if (queued() > 0) return;
    if (improves)
      current_ = *better;
    else
      start_at(next_start(*current_));
  }
}

void LocalSearch::learn(ConfigurationIndex index, double value_now, const Outcome&) {
  if (!takes_first_ || !current_ || pending_start_) return;
  if (value_now < value(*current_)) {
    current_ = index;
    clear_queue();
  }
}

bool takes_first_improvement(const StrategyContext& context) {
  const std::string text = context.options.at("improvement").to_string();
  if (text != "first" && text != "best")
    throw UserError(fmt::format("option improvement takes \"first\" or \"best\", not \"{}\"", text));
  return text == "first";
}

Neighbourhood neighbourhood_option(const StrategyContext& context) {
  const std::string text = context.options.at("neighbourhood").to_string();
  if (text == "hamming") return Neighbourhood::hamming;
  if (text == "adjacent") return Neighbourhood::strictly_adjacent;
  throw UserError(fmt::format("option neighbourhood takes \"hamming\" or \"adjacent\", not \"{}\"", text));
}

StrategyOption improvement_option(const std::string& standard) {
  return {"improvement", "move to the first better neighbour, or to the best of all", standard, {"first", "best"}};
}
StrategyOption neighbourhood_choice(const std::string& standard) {
  return {"neighbourhood",
          "one parameter takes any other value (hamming) or the next one (adjacent)",
          standard,
          {"hamming", "adjacent"}};
}

/// Climbs, and restarts from random configurations.
class HillClimbing : public LocalSearch {
 public:
  explicit HillClimbing(const StrategyContext& c) : LocalSearch("hill_climbing", c) {}

 protected:
  std::optional<ConfigurationIndex> next_start(ConfigurationIndex) override { return std::nullopt; }
};

/// Evaluates a space-filling sample first and then climbs from its best members, one after the other.
class MultiStart : public LocalSearch {
 public:
  explicit MultiStart(const StrategyContext& c) : LocalSearch("multi_start_local_search", c) {}

 protected:
  void advance(std::size_t wanted) override {
    if (!sampled_ && tell_count() == 0) {
      sampled_ = true;
      starts_ = space().latin_hypercube(static_cast<std::size_t>(integer("sample")), random());
      propose_all(starts_);
      if (queued() > 0) return;
    }
    LocalSearch::advance(wanted);
  }
  std::optional<ConfigurationIndex> first_start() override { return next_start(0); }
  std::optional<ConfigurationIndex> next_start(ConfigurationIndex) override {
    if (starts_.empty()) return std::nullopt;
    const auto it =
        std::min_element(starts_.begin(), starts_.end(), [&](auto a, auto b) { return value(a) < value(b); });
    const ConfigurationIndex start = *it;
    starts_.erase(it);
    return start;
  }

 private:
  std::vector<ConfigurationIndex> starts_;
  bool sampled_ = false;
};

/// Restarts from the best optimum found, perturbed; discards it after some climbs without improvement.
class FromBestOptimum : public LocalSearch {
 protected:
  using LocalSearch::LocalSearch;
  /// The number of parameters to change at random after `failures` climbs from this optimum without improvement;
  /// nullopt: discard the optimum.
  virtual std::optional<std::int64_t> strength(std::int64_t failures) = 0;

  std::optional<ConfigurationIndex> next_start(ConfigurationIndex optimum) final {
    if (!home_ || value(optimum) < value(*home_)) {
      home_ = optimum;
      failures_ = 0;
    } else {
      ++failures_;
    }
    const auto changed = strength(failures_);
    if (!changed) {
      home_.reset();
      return std::nullopt;
    }
    return moves().perturbed(*home_, static_cast<std::size_t>(*changed), random());
  }

 private:
  std::optional<ConfigurationIndex> home_;
  std::int64_t failures_ = 0;
};

/// Perturbs by the same strength each time (Lourenco, Martin and Stuetzle, 2003).
class IteratedLocalSearch : public FromBestOptimum {
 public:
  explicit IteratedLocalSearch(const StrategyContext& c) : FromBestOptimum("iterated_local_search", c) {}

 protected:
  std::optional<std::int64_t> strength(std::int64_t failures) override {
    if (failures > integer("patience")) return std::nullopt;
    return integer("strength");
  }
};

/// Perturbs more strongly after each failure to improve, and starts with the weakest perturbation after an improvement
/// (Mladenovic and Hansen, 1997).
class VariableNeighbourhood : public FromBestOptimum {
 public:
  explicit VariableNeighbourhood(const StrategyContext& c) : FromBestOptimum("variable_neighbourhood", c) {}

 protected:
  std::optional<std::int64_t> strength(std::int64_t failures) override {
    if (failures + 1 > integer("largest_shake")) return std::nullopt;
    return failures + 1;
  }
};

/// Metropolis' rule between local optima (Wales and Doye, 1997).
class BasinHopping : public LocalSearch {
 public:
  explicit BasinHopping(const StrategyContext& c) : LocalSearch("basin_hopping", c) {}

 protected:
  std::optional<ConfigurationIndex> next_start(ConfigurationIndex optimum) override {
    const double temperature = real("temperature");
    const double rise = has_home_ ? (value(optimum) - value(home_)) / std::max(std::abs(value(home_)), 1e-300) : -1.0;
    if (rise <= 0 || random().uniform() < std::exp(-rise / temperature)) {
      home_ = optimum;
      has_home_ = true;
    }
    return moves().perturbed(home_, static_cast<std::size_t>(integer("strength")), random());
  }

 private:
  ConfigurationIndex home_ = 0;
  bool has_home_ = false;
};

/// Always moves to the best neighbour that was not visited recently, better or worse (Glover, 1989).
class Tabu : public StrategyBase {
 public:
  explicit Tabu(const StrategyContext& context) : StrategyBase("tabu", context), moves_(space()) {}

 protected:
  void advance(std::size_t) override {
    constexpr int kFreeTurns = 12;
    for (int turn = 0; turn < kFreeTurns && queued() == 0; ++turn) {
      if (!has_current_ || !memory().known(current_)) {
        if (has_current_ && queued() + outstanding() > 0) return;
        const auto start = memory().random_fresh(random());
        if (!start) return;
        current_ = *start;
        has_current_ = true;
        propose(current_);
        return;
      }
      space().neighbours(current_, neighbourhood_, list_);
      random().shuffle(std::span<ConfigurationIndex>(list_));
      std::size_t proposed = 0;
      const auto limit = static_cast<std::size_t>(integer("candidates"));
      if (!looked_) {
        for (const ConfigurationIndex index : list_)
          if (proposed < limit && propose(index)) ++proposed;
        looked_ = true;
        if (proposed > 0) return;
      }
      move();
    }
  }

 private:
  void move() {
    looked_ = false;
    ConfigurationIndex best_neighbour = 0;
    double best_found = std::numeric_limits<double>::infinity();
    for (const ConfigurationIndex index : list_) {
      if (value(index) < best_found && tabu_.count(index) == 0) {
        best_found = value(index);
        best_neighbour = index;
      }
    }
    if (!std::isfinite(best_found)) {
      has_current_ = false;
      return;
    }
    tabu_.insert(current_);
    order_.push_back(current_);
    if (order_.size() > static_cast<std::size_t>(integer("tenure"))) {
      tabu_.erase(order_.front());
      order_.pop_front();
    }
    current_ = best_neighbour;
  }

  Moves moves_;
  Neighbourhood neighbourhood_ = neighbourhood_option(context());
  std::vector<ConfigurationIndex> list_;
  std::unordered_set<ConfigurationIndex> tabu_;
  std::deque<ConfigurationIndex> order_;
  ConfigurationIndex current_ = 0;
  bool has_current_ = false, looked_ = false;
};

}  // namespace

void add_local(StrategyList& list) {
  const StrategyOption strength{"strength", "parameters changed at random to leave an optimum", 2, {1, 2, 3, 4}};
  list.push_back(describe_strategy<HillClimbing>("hill_climbing", "climbs from random starts",
                                                 {improvement_option("first"), neighbourhood_choice("hamming")}));
  list.push_back(describe_strategy<MultiStart>("multi_start_local_search", "climbs from the best of a spread sample",
                                               {improvement_option("first"),
                                                neighbourhood_choice("hamming"),
                                                {"sample", "size of the sample", 16, {8, 16, 32, 64}}}));
  list.push_back(describe_strategy<IteratedLocalSearch>(
      "iterated_local_search", "perturbs the best optimum and climbs again",
      {improvement_option("first"),
       neighbourhood_choice("hamming"),
       strength,
       {"patience", "climbs without improvement before a fresh start", 20, {5, 10, 20, 40}}}));
  list.push_back(
      describe_strategy<VariableNeighbourhood>("variable_neighbourhood", "shakes harder each time it fails to improve",
                                               {improvement_option("first"),
                                                neighbourhood_choice("adjacent"),
                                                {"largest_shake", "parameters changed at most", 5, {3, 5, 8}}}));
  list.push_back(describe_strategy<BasinHopping>(
      "basin_hopping", "Metropolis' rule between local optima",
      {improvement_option("first"),
       neighbourhood_choice("hamming"),
       strength,
       {"temperature", "relative rise accepted with probability 1/e", 0.1, {0.02, 0.05, 0.1, 0.3}}}));
  list.push_back(
      describe_strategy<Tabu>("tabu", "always the best neighbour not visited lately",
                              {neighbourhood_choice("hamming"),
                               {"tenure", "configurations remembered as visited", 100, {20, 50, 100, 200}},
                               {"candidates", "neighbours looked at before each move", 12, {6, 12, 24, 1000}}}));
}

}  // namespace ergotune::search
