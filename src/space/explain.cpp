// Effects of restrictions, and contradictions between them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/process/environment.hpp"
#include "space/build/layer_builder.hpp"
#include "space/expression/expression_tokens.hpp"
#include "space/search_space_state.hpp"

namespace ergotune {
namespace {

/// Returns NaN if the space is too large to count.
double count_with(const std::vector<Parameter>& parameters, const std::vector<Restriction>& restrictions,
                  const SpaceOptions& options) {
  try {
    return build_diagrams(parameters, restrictions, options, BuildPurpose::count).approximate_size;
  } catch (const TooManyStates&) {
    return std::numeric_limits<double>::quiet_NaN();
  }
}

/// Runs independent tasks on several threads.
void run_all(const std::vector<std::function<void()>>& tasks, unsigned threads) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t t = next++; t < tasks.size(); t = next++) {
      try {
        tasks[t]();
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  try {
    for (unsigned i = 1; i < std::min<std::size_t>(threads, tasks.size()); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // fewer threads suffice
  }
  work();
  for (auto& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

std::vector<RestrictionEffect> SearchSpace::explain() const {
  const auto& all = state_->restrictions;
  const auto& parameters = state_->given_parameters;
  const auto& options = state_->options;
  std::vector<RestrictionEffect> effects(all.size());
  double unrestricted = 0;
  std::vector<std::function<void()>> tasks{[&] { unrestricted = count_with(parameters, {}, options); }};
  for (std::size_t r = 0; r < all.size(); ++r) {
    effects[r].label = all[r].label();
    effects[r].expression = all[r].function ? "" : all[r].expression.text();
    effects[r].restriction_class = all[r].restriction_class;
    tasks.emplace_back([&, r] { effects[r].removed_alone = count_with(parameters, {all[r]}, options); });
    tasks.emplace_back([&, r] {
      auto others = all;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(r));
      effects[r].removed_only_by_it = count_with(parameters, others, options) - static_cast<double>(size());
      effects[r].redundant = effects[r].removed_only_by_it == 0;
    });
  }
  // functions given by a user need not be thread-safe
  const bool functions =
      std::ranges::any_of(all, [](const auto& restriction) { return static_cast<bool>(restriction.function); }) ||
      std::ranges::any_of(parameters, [](const auto& p) { return static_cast<bool>(p.generator); });
  const unsigned threads = options.threads > 0 ? static_cast<unsigned>(options.threads) : usable_processors();
  run_all(tasks, functions || build_seconds() < 1e-3 ? 1 : threads);
  for (auto& effect : effects) effect.removed_alone = unrestricted - effect.removed_alone;
  return effects;
}

std::string SearchSpace::why_empty() const {
  if (!empty()) return fmt::format("the search space is not empty: it has {} configurations", size());
  if (state_->restrictions.empty()) return "there are no configurations";
  // removes restrictions one by one as long as the space stays empty; the remaining ones contradict each other
  auto remaining = state_->restrictions;
  for (std::size_t r = remaining.size(); r-- > 0 && !remaining.empty();) {
    auto fewer = remaining;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(r));
    if (count_with(state_->given_parameters, fewer, state_->options) == 0) remaining = std::move(fewer);
  }
  if (remaining.empty()) return "the parameters' ranges leave no configuration, even without restrictions";
  std::vector<std::string> labels;
  for (const auto& restriction : remaining) {
    const std::string label = excerpt(restriction.label());
    const std::string text = excerpt(restriction.expression.text());
    labels.push_back(restriction.name.empty() || restriction.function ? fmt::format("\"{}\"", label)
                                                                      : fmt::format("\"{}\" ({})", label, text));
  }
  if (labels.size() == 1) return fmt::format("no configuration meets the restriction {}", labels[0]);
  return fmt::format("no configuration meets these {} restrictions together, though any {} of them can be met: {}",
                     labels.size(), labels.size() == 2 ? "one" : fmt::format("{}", labels.size() - 1),
                     fmt::join(labels, ", "));
}

}  // namespace ergotune
