// The default strategy: chooses a strategy for the space, the budget and the objective, and its successor for when its
// model has become too expensive.
#include <fmt/format.h>

#include <unordered_set>

#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

struct Choice {
  std::string strategy;
  std::string reason;
  /// Evaluations after which the successor continues; 0: never.
  std::uint64_t hand_over_at = 0;
  std::string successor;
};

Choice choose(const StrategyContext& context) {
  constexpr std::uint64_t kTrivial = 4, kModelLimit = 1200;
  const std::uint64_t size = context.space->size();
  if (size <= kTrivial)
    return {"brute_force", fmt::format("{} configuration{} no search", size, size == 1 ? " needs" : "s need"), 0, {}};
  if (context.objectives > 1)
    return {"bayesian_pareto", fmt::format("{} objectives", context.objectives), kModelLimit, "nsga2"};
  std::string reason =
      fmt::format("a Gaussian process over {} of {} configurations", size <= 20000 ? "all" : "a sample", size);
  if (context.budget > 0)
    reason += fmt::format(", for about {} evaluation{}", context.budget, context.budget == 1 ? "" : "s");
  for (std::size_t i = 0; i < context.priors.size(); ++i)
    reason += fmt::format("{}{} ({} outcomes)", i == 0 ? ", starting from " : ", ", context.priors[i].name,
                          context.priors[i].outcomes.size());
  return {"bayesian", reason, kModelLimit, "genetic"};
}

class Auto : public Strategy {
 public:
  explicit Auto(const StrategyContext& context) : context_(context), choice_(choose(context)) {
    context_.options.clear();
    context_.known.clear();
    strategy_ = make_strategy(choice_.strategy, context_);
  }
  std::string name() const override { return "auto"; }
  std::string explanation() const override {
    std::string text = fmt::format("{}: {}", choice_.strategy, choice_.reason);
    if (handed_over_)
      text += fmt::format("; {} since evaluation {}, a model of more would cost too much", choice_.successor,
                          choice_.hand_over_at);
    if (const std::string own = strategy_->explanation(); !own.empty()) text += "; " + own;
    return text;
  }

  std::optional<double> prospect() const override { return strategy_->prospect(); }
  bool ends_early() const override { return choice_.strategy != "brute_force" && context_.objectives == 1; }

  std::vector<ConfigurationIndex> ask(std::size_t count) override {
    if (!handed_over_ && choice_.hand_over_at > 0 && tell_count_.size() >= choice_.hand_over_at) {
      if (!outstanding_.empty()) return {};  // the successor must know all outcomes
      handed_over_ = true;
      strategy_ = make_strategy(choice_.successor, context_);
      for (const auto& [index, outcome] : tell_count_) strategy_->tell(index, outcome);
      tell_count_.clear();
    }
    std::vector<ConfigurationIndex> requested = strategy_->ask(count);
    outstanding_.insert(requested.begin(), requested.end());
    return requested;
  }
  void tell(ConfigurationIndex index, const Outcome& outcome) override {
    outstanding_.erase(index);
    strategy_->tell(index, outcome);
    if (!handed_over_ && choice_.hand_over_at > 0) tell_count_.emplace_back(index, outcome);
  }

 private:
  StrategyContext context_;
  Choice choice_;
  std::unique_ptr<Strategy> strategy_;
  std::vector<std::pair<ConfigurationIndex, Outcome>> tell_count_;
  std::unordered_set<ConfigurationIndex> outstanding_;
  bool handed_over_ = false;
};

}  // namespace

void add_auto(StrategyList& list) {
  auto description = describe_strategy<Auto>("auto", "the best of these for the space, the budget and the objective");
  description.multi_objective = true;
  list.insert(list.begin(), std::move(description));
}

}  // namespace ergotune::search
