// The search of a plan's stage, and the extension of the model's range of clocks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tune/plans/occupancy_reduction.hpp"
#include "tune/plans/plan_run.hpp"

namespace ergotune::plans {
namespace {

// Number of best code configurations that are also measured at clocks beyond the model's range.
constexpr std::size_t kFollowers = 3;
// Smallest relative step between clocks beyond the model's range.
constexpr double kClockStep = 0.02;

}  // namespace

void PlanRun::keep_near_best(const PlanStage& stage, std::vector<ConfigurationIndex>& indices) const {
  Objective before = objective(objective_before_);
  const auto leader = best(seen_before_, before);
  if (!leader) return;
  for (const ConfigurationIndex index : seen_before_) before.outcome(*find(index));
  const double limit = *before.value(leader->measurement);
  std::set<std::vector<std::uint32_t>> kept;
  for (const ConfigurationIndex index : seen_before_) {
    const auto value = before.value(*find(index));
    if (value && std::abs(*value - limit) <= stage.keep_within * std::abs(limit)) kept.insert(code_of(index));
  }
  std::erase_if(indices, [&](ConfigurationIndex index) { return !kept.contains(code_of(index)); });
}

std::vector<ConfigurationIndex> PlanRun::whole_stage(const PlanStage& stage, std::vector<ConfigurationIndex> indices) {
  evaluate(stage, indices);
  std::erase_if(indices, [&](ConfigurationIndex index) { return find(index) == nullptr; });
  return indices;
}

std::vector<ConfigurationIndex> PlanRun::searched_stage(const PlanStage& stage, const SearchSpace& part,
                                                        const std::string& strategy, const Budget& budget,
                                                        StageResult& result) {
  Objective wanted = objective(stage.objective);
  SessionOptions session;
  session.strategy = strategy.empty() ? "auto" : strategy;
  session.strategy_options = strategy == options_.strategy ? options_.strategy_options : std::map<std::string, Value>{};
  session.budget = budget;
  const bool bounded = budget.evaluations > 0 || budget.seconds > 0 || budget.joules > 0;
  if (!bounded) session.budget.evaluations = std::clamp<std::uint64_t>(part.size() / 20, 100, 1000);
  session.seed = options_.seed;
  session.confirm = false;
  session.early_stop = false;  // plans are compared by their cost
  std::set<ConfigurationIndex> seen;
  session.progress = [&](const SessionProgress& progress) {
    SessionProgress reported = progress;
    reported.objective = wanted.name();
    reported.unit = wanted.unit();
    if (options_.progress) options_.progress(plan_.name, stage.name, reported);
    if (progress.last == nullptr) return;
    seen.insert(progress.last->index);
    note_requested(progress.last->index);
  };
  result.strategy = run_session(ledger_, part, wanted, session).strategy;
  return {seen.begin(), seen.end()};
}

std::vector<ConfigurationIndex> PlanRun::search(const PlanStage& stage, const Allowed& allowed, StageResult& result) {
  auto indices = indices_of(space_, allowed);
  // Only code configurations near the best of the preceding stage.
  if (indices && stage.keep_within > 0 && !seen_before_.empty()) keep_near_best(stage, *indices);
  result.space = indices ? indices->size() : 0;
  if (indices && indices->empty()) return {};

  std::string strategy = !stage.strategy.empty() ? stage.strategy : options_.strategy;
  const Budget budget = stage.budget.empty() ? options_.budget : Budget::parse(stage.budget);
  const bool bounded = budget.evaluations > 0 || budget.seconds > 0 || budget.joules > 0;
  if (strategy.empty() && !bounded && indices && indices->size() <= options_.exhaustive) {
    result.strategy = "every configuration";
    return whole_stage(stage, std::move(*indices));
  }
  SearchSpace part = part_of(problem_, space_, allowed, indices, options_.constants);
  std::vector<std::string> notes;
  if (stage.occupancy_above > 0 && !part.empty()) {
    // The walk follows the values of one parameter by their occupancy. Of several it would take each alone, and end at
    // the first values of those that occupancy does not order: `auto` searches them among the shapes that are kept.
    const bool walks = has_one_parameter_each(problem_, part);
    part = reduce_by_occupancy(problem_, part, ledger_, stage.occupancy_above, notes, !walks);
    if (!walks) strategy = "auto";
  }
  result.space = part.size();
  if (part.empty()) return {};
  auto seen = searched_stage(stage, part, strategy, budget, result);
  for (const std::string& note : notes) result.strategy += "; " + note;
  return seen;
}

std::vector<std::vector<std::uint32_t>> PlanRun::best_code(const PlanStage& stage,
                                                           const std::vector<ConfigurationIndex>& seen) const {
  Objective wanted = objective(stage.objective);
  for (const ConfigurationIndex index : seen) wanted.outcome(*find(index));
  std::vector<ConfigurationIndex> order;
  for (const ConfigurationIndex index : seen) {
    if (wanted.value(*find(index))) order.push_back(index);
  }
  std::ranges::sort(order,
                    [&](ConfigurationIndex a, ConfigurationIndex b) { return wanted.better(*find(a), *find(b)); });
  std::vector<std::vector<std::uint32_t>> code;
  for (const ConfigurationIndex index : order) {
    if (code.size() >= kFollowers) break;
    if (std::ranges::find(code, code_of(index)) == code.end()) code.push_back(code_of(index));
  }
  return code;
}

std::optional<double> PlanRun::next_clock_out(double at, double edge, int direction) const {
  std::vector<double> clocks;
  for (const Value& value : space_.parameters()[*core_clock()].values) clocks.push_back(value.as_real());
  std::ranges::sort(clocks);
  // Only if the best clock is the outermost one tried so far.
  const bool outermost = std::ranges::none_of(clocks, [&](double f) {
    return direction < 0 ? f < at - 1e-6 && f >= edge - 1e-6 : f > at + 1e-6 && f <= edge + 1e-6;
  });
  if (!outermost) return std::nullopt;
  std::optional<double> next;
  for (const double f : clocks) {
    if (direction < 0 && f < at * (1 - kClockStep)) next = f;
    if (direction > 0 && f > at * (1 + kClockStep) && !next) next = f;
  }
  // A smaller step is allowed only to the first or last supported clock.
  if (!next) next = direction < 0 ? clocks.front() : clocks.back();
  if (std::abs(*next - at) < 1e-6) return std::nullopt;
  return next;
}

void PlanRun::extend_range(const PlanStage& stage, std::vector<ConfigurationIndex>& seen, PlanPoint& best) {
  const auto clock = core_clock();
  if (!clock || !state_.model_range) return;
  const auto& values = space_.parameters()[*clock].values;
  // The few best code configurations are measured as well: the best code may change with the clock.
  const auto followers = best_code(stage, seen);
  std::vector<std::uint32_t> positions(kinds_.size());
  for (const int direction : {-1, 1}) {
    double edge = direction < 0 ? state_.model_range->low_mhz : state_.model_range->high_mhz;
    while (!interrupted()) {
      space_.values_at(best.index, positions);
      const auto next = next_clock_out(values[positions[*clock]].as_real(), edge, direction);
      if (!next) break;
      const auto same = std::ranges::find_if(values, [&](const Value& v) { return v.as_real() == *next; });
      std::vector<ConfigurationIndex> tries;
      for (const auto& code : followers) {
        auto moved = positions;
        for (std::size_t i = 0; i < kinds_.size(); ++i) {
          if (kinds_[i] == ParameterKind::code) moved[i] = code[i];
        }
        moved[*clock] = static_cast<std::uint32_t>(same - values.begin());
        if (const auto index = space_.index_of(moved)) tries.push_back(*index);
      }
      if (tries.empty()) break;
      evaluate(stage, tries);
      for (const ConfigurationIndex index : tries)
        if (find(index) != nullptr) seen.push_back(index);
      tries.push_back(best.index);
      const auto better = this->best(tries, objective(stage.objective));
      if (!better || better->index == best.index) break;
      best = *better;
      edge = *next;
    }
  }
}

}  // namespace ergotune::plans
