// What each restriction does, and which of them leave nothing.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "space/search_space_state.hpp"

namespace ergotune {
namespace {

double count_with(const std::vector<Parameter>& parameters, const std::vector<Restriction>& restrictions,
                  const SpaceOptions& options) {
  return build_diagrams(parameters, restrictions, options, Unevaluable::stays).approximate_size;
}

}  // namespace

std::vector<RestrictionEffect> SearchSpace::explain() const {
  const auto& all = state_->restrictions;
  const auto& parameters = state_->given_parameters;
  const double unrestricted = count_with(parameters, {}, state_->options);
  std::vector<RestrictionEffect> effects;
  for (std::size_t r = 0; r < all.size(); ++r) {
    RestrictionEffect effect;
    effect.label = all[r].label();
    effect.expression = all[r].function ? "" : all[r].expression.text();
    effect.restriction_class = all[r].restriction_class;
    effect.removed_alone = unrestricted - count_with(parameters, {all[r]}, state_->options);
    auto others = all;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(r));
    effect.removed_only_by_it = count_with(parameters, others, state_->options) - static_cast<double>(size());
    effect.redundant = effect.removed_only_by_it == 0;
    effects.push_back(std::move(effect));
  }
  return effects;
}

std::string SearchSpace::why_empty() const {
  if (!empty()) return fmt::format("the search space is not empty: it has {} configurations", size());
  if (state_->restrictions.empty()) return "there are no configurations";
  // drop restrictions one by one as long as the space stays empty: what is left contradicts itself, and no
  // part of it
  auto remaining = state_->restrictions;
  for (std::size_t r = remaining.size(); r-- > 0 && remaining.size() > 0;) {
    auto fewer = remaining;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(r));
    if (count_with(state_->given_parameters, fewer, state_->options) == 0) remaining = std::move(fewer);
  }
  if (remaining.empty()) return "the parameters' ranges leave no configuration, even without restrictions";
  std::vector<std::string> labels;
  for (const auto& restriction : remaining) {
    const std::string label = restriction.label();
    const std::string& text = restriction.expression.text();
    labels.push_back(restriction.name.empty() || restriction.function
                         ? fmt::format("\"{}\"", label)
                         : fmt::format("\"{}\" ({})", label, text));
  }
  if (labels.size() == 1) return fmt::format("no configuration meets the restriction {}", labels[0]);
  return fmt::format(
      "no configuration meets these {} restrictions together, though any {} of them can be met: {}",
      labels.size(), labels.size() == 2 ? "one" : fmt::format("{}", labels.size() - 1),
      fmt::join(labels, ", "));
}

}  // namespace ergotune
