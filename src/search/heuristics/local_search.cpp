#include "search/heuristics/local_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "search/builtin.hpp"

namespace ergotune::search {

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
  // each turn moves to a strictly better configuration or to another start, so few turns are free of new
  // proposals
  constexpr int kFreeTurns = 12;
  for (int turn = 0; turn < kFreeTurns && queued() == 0; ++turn) {
    if (!begun_) {
      begun_ = true;
      start_at(first_start());
      continue;
    }
    if (pending_start_) {
      if (!memory().known(*pending_start_)) return;
      // a start that failed leads nowhere
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

}  // namespace ergotune::search
