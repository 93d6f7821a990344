// Coordinate search as Guerreiro et al. use it for concurrent kernels (PDP 2015, Algorithms 1 to 4).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <unordered_map>

#include "search/strategy_base.hpp"

namespace ergotune::search {
namespace {

using Positions = std::vector<std::uint32_t>;

/// Walks along the values of one parameter, the most promising first (code: in the order of the list; clocks and
/// limits: from the highest), until a value is worse than its predecessor by more than their intervals. Clocks are
/// walked first and only decrease; then the code parameters, those of the slowest kernel first. A change restarts the
/// walks. Each step recomputes the search from its beginning: known outcomes cost nothing, and the first unknown
/// configuration is requested.
class Coordinate : public Strategy {
 public:
  explicit Coordinate(const StrategyContext& context) : space_(*context.space) {
    const auto& parameters = space_.parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i)
      (parameters[i].kind == ParameterKind::code ? code_ : clocks_).push_back(i);
    collect_values();
  }
  std::string name() const override { return "coordinate"; }

  std::vector<ConfigurationIndex> ask(std::size_t count) override {
    if (count == 0 || waiting_for_ || finished_ || space_.empty()) return {};
    wanted_.reset();
    search();
    if (!wanted_) finished_ = true;
    waiting_for_ = wanted_;
    return wanted_ ? std::vector{*wanted_} : std::vector<ConfigurationIndex>{};
  }

  void tell(ConfigurationIndex index, const Outcome& outcome) override {
    if (waiting_for_ == index) waiting_for_.reset();
    Seen& seen = seen_[index];
    seen.value = scalar_value(outcome);
    seen.ok = outcome.ok && std::isfinite(seen.value);
    seen.outcome = outcome;
  }

  std::string explanation() const override {
    return fmt::format("walks {} and {} one by one (Guerreiro et al., Algorithms 1 to 4)",
                       counted(clocks_.size(), "clock or limit", "clocks and limits"),
                       counted(code_.size(), "code parameter", "code parameters"));
  }

 private:
  struct Seen {
    bool ok = false;
    double value = 0;
    Outcome outcome;
  };

  static std::string counted(std::size_t count, const char* one, const char* many) {
    return fmt::format("{} {}", count, count == 1 ? one : many);
  }

  /// Collects the positions of each parameter's values in the order in which they are walked.
  void collect_values() {
    for (const Parameter& parameter : space_.parameters()) {
      std::vector<std::uint32_t> order(parameter.values.size());
      std::iota(order.begin(), order.end(), 0u);
      if (parameter.kind != ParameterKind::code)
        std::stable_sort(order.begin(), order.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return parameter.values[b] < parameter.values[a]; });
      values_.push_back(std::move(order));
    }
  }

  /// The first value of each parameter; if the space does not contain that configuration, the nearest among its first
  /// 100,000.
  Positions start() const {
    Positions first;
    for (const auto& order : values_) first.push_back(order.front());
    if (space_.index_of(first)) return first;
    constexpr ConfigurationIndex kTopCandidates = 100'000;
    Positions best, at(first.size());
    std::size_t nearest = SIZE_MAX;
    for (ConfigurationIndex i = 0; i < std::min<ConfigurationIndex>(space_.size(), kTopCandidates); ++i) {
      space_.values_at(i, at);
      std::size_t distance = 0;
      for (std::size_t p = 0; p < at.size(); ++p)
        distance +=
            static_cast<std::size_t>(std::find(values_[p].begin(), values_[p].end(), at[p]) - values_[p].begin());
      if (distance >= nearest) continue;
      nearest = distance;
      best = at;
    }
    return best;
  }

  const Seen* look(ConfigurationIndex index) {
    const auto found = seen_.find(index);
    if (found != seen_.end()) return &found->second;
    wanted_ = index;
    return nullptr;
  }

  bool worse(const Seen& now, const Seen& before) const {
    if (!before.ok) return false;
    return !now.ok || now.value > before.value + half_width_of_difference(now.outcome, before.outcome);
  }

  /// The best value of parameter `p`, starting with the `from`th, with all others fixed; nullopt while a configuration
  /// has to be measured. Values that the space does not allow are skipped.
  std::optional<std::uint32_t> walk(Positions at, std::size_t p, std::size_t from = 0) {
    const Seen* before = nullptr;
    const Seen* best = nullptr;
    std::uint32_t answer = at[p];
    for (std::size_t i = from; i < values_[p].size(); ++i) {
      at[p] = values_[p][i];
      const auto index = space_.index_of(at);
      if (!index) continue;
      const Seen* now = look(*index);
      if (!now) return std::nullopt;
      if (before && worse(*now, *before)) break;
      if (now->ok && (!best || now->value < best->value)) {
        best = now;
        answer = at[p];
      }
      before = now;
    }
    return answer;
  }

  /// Algorithm 2, lines 4 to 11: downward from the level that was kept last.
  bool walk_clocks(Positions& at) {
    for (const std::size_t p : clocks_) {
      const auto& order = values_[p];
      const auto place = static_cast<std::size_t>(std::find(order.begin(), order.end(), at[p]) - order.begin());
      const auto found = walk(at, p, place);
      if (!found) return false;
      at[p] = *found;
    }
    return true;
  }

  /// The code parameters, those of the slowest kernel first.
  std::vector<std::size_t> by_time(const Positions& at) {
    std::vector<std::size_t> order = code_;
    const auto index = space_.index_of(at);
    const auto seen = index ? seen_.find(*index) : seen_.end();
    if (seen == seen_.end()) return order;
    const auto time_of = [&](std::size_t p) {
      const std::string& name = space_.parameters()[p].name;
      const auto time = seen->second.outcome.kernel_times.find(name.substr(0, name.find('.')));
      return time == seen->second.outcome.kernel_times.end() ? 0.0 : time->second;
    };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return time_of(a) > time_of(b); });
    return order;
  }

  /// Searches from the beginning to the first unknown configuration (wanted_), or to the end.
  void search() {
    Positions at = start();
    // the configuration with all kernels comes first: its times determine the order of the kernels
    if (const auto index = space_.index_of(at); !index || !look(*index)) return;
    std::set<Positions> been;
    while (been.insert(at).second) {
      if (!walk_clocks(at)) return;
      bool changed = false;
      const std::vector<std::size_t> order = by_time(at);
      for (std::size_t i = 0; i < order.size(); ++i) {
        const auto found = walk(at, order[i]);
        if (!found) return;
        if (*found == at[order[i]]) continue;
        at[order[i]] = *found;
        changed = true;
        if (i > 0) break;  // the choices for earlier kernels may no longer be best
      }
      if (!changed) return;
    }
  }

  const SearchSpace& space_;
  std::vector<std::size_t> clocks_, code_;
  std::vector<std::vector<std::uint32_t>> values_;
  std::unordered_map<ConfigurationIndex, Seen> seen_;
  std::optional<ConfigurationIndex> wanted_, waiting_for_;
  bool finished_ = false;
};

}  // namespace

void add_coordinate(StrategyList& list) {
  list.push_back(describe_strategy<Coordinate>(
      "coordinate",
      "clocks from the top, then one parameter after the other, from the most promising value until it gets worse"));
}

}  // namespace ergotune::search
