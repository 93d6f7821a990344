#include "cli/findings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ergotune::cli {

std::string certainty_text(int rounds, double probability_best, std::optional<double> expected_loss) {
  std::string text = fmt::format("measured again {} times beside its rivals: with {:.0f} % probability the best of them",
                                 rounds, 100 * probability_best);
  if (expected_loss) text += fmt::format(", expected loss {:.2g} %", 100 * *expected_loss);
  return text;
}

void print_importance(const std::vector<Parameter>& parameters, const Importance& importance) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, importance.shares.size()); ++i) {
    const auto& share = importance.shares[i];
    std::string names;
    for (const std::size_t p : share.parameters) names += (names.empty() ? "" : " with ") + parameters[p].name;
    text += fmt::format("{}{} {:.0f} % ({:.0f} to {:.0f})", i == 0 ? "" : ", ", names, 100 * share.share, 100 * share.low,
                        100 * share.high);
  }
  if (!text.empty()) fmt::print("\nWhat matters (share of the variance, modelled): {}\n", text);
  text.clear();
  for (std::size_t i = 0; i < std::min(kShown, importance.ruled_out.size()); ++i) {
    const auto& out = importance.ruled_out[i];
    text += fmt::format("{}{} = {} ({} tried)", i == 0 ? "" : ", ", parameters[out.parameter].name, out.value.to_literal(),
                        out.tried);
  }
  if (!text.empty()) fmt::print("Never worked: {}\n", text);
}

}  // namespace ergotune::cli
