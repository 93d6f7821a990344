#include "cli/output/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/output/progress.hpp"

namespace ergotune::cli {

std::string unconfirmed_text(const Unconfirmed& result, const std::string& unit) {
  constexpr double kWorthConfirming = 0.003;
  return fmt::format("not confirmed, {} expected{}", human(result.expected, unit),
                     result.expected_gain >= kWorthConfirming ? ", may be better" : "");
}

void print_confidence(const Confidence& confidence) {
  if (confidence.probability_best) {
    fmt::print("  confirmed in {} paired repeats with its rivals: the best of them with {:.0f} % probability",
               confidence.confirmation_repeats, 100 * *confidence.probability_best);
    if (confidence.expected_loss) fmt::print(", expected loss {:.2g} %", 100 * *confidence.expected_loss);
    fmt::print("\n");
    constexpr double kSure = 0.6;
    if (*confidence.probability_best < kSure)
      fmt::print(
          "  below {:.0f} %: the rivals are as good within the noise; any of them will do where the expected loss is "
          "small, else give a larger --budget, on a quiet machine\n",
          100 * kSure);
  }
  if (const std::string note = repeats_note(confidence.search_repeats); !note.empty()) fmt::print("  note: {}\n", note);
}

void print_screened(std::uint64_t screened) {
  if (screened == 0) return;
  fmt::print("\n{} screened: only the time was measured, by which the energy is not the least\n",
             counted(screened, "configuration"));
}

void print_importance(const std::vector<Parameter>& parameters, const Importance& importance) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(kShown, importance.shares.size()); ++i) {
    const auto& share = importance.shares[i];
    std::string names;
    for (const std::size_t p : share.parameters) names += (names.empty() ? "" : " with ") + parameters[p].name;
    text += fmt::format("{}{} {:.0f} % ({:.0f} to {:.0f})", i == 0 ? "" : ", ", names, 100 * share.share,
                        100 * share.low, 100 * share.high);
  }
  if (!text.empty())
    fmt::print("\nWhat matters (share of the variance; modelled, the model explains {:.0f} % of it): {}\n",
               100 * importance.explained.value_or(0), text);
  if (importance.only_noise())
    fmt::print("\nWhat matters: no parameter has an effect that can be distinguished from noise\n");
  text.clear();
  for (std::size_t i = 0; i < std::min(kShown, importance.ruled_out.size()); ++i) {
    const auto& out = importance.ruled_out[i];
    text += fmt::format("{}{} = {} ({} tried)", i == 0 ? "" : ", ", parameters[out.parameter].name,
                        out.value.to_literal(), out.tried);
  }
  if (!text.empty()) fmt::print("Never worked: {}\n", text);
}

}  // namespace ergotune::cli
