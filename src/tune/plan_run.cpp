#include "tune/plan_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace ergotune::plans {
namespace {

// Code configurations that follow the best clock out of the model's range.
constexpr std::size_t kFollowers = 3;
// Nearer clocks are not told apart when leaving the model's range.
constexpr double kClockStep = 0.02;

}  // namespace

PlanRun::PlanRun(const Plan& plan, const Problem& problem, const SearchSpace& space, Evaluator& evaluator,
                 const PlanOptions& options)
    : plan_(plan),
      problem_(problem),
      space_(space),
      options_(options),
      memory_(problem, space, evaluator, options.constants) {
  for (const Parameter& parameter : space.parameters()) kinds_.push_back(execution_kind(parameter));
  result_.plan = plan.name;
  result_.summary = plan.summary;
  result_.provenance = evaluator.provenance();
}

PlanResult PlanRun::run() {
  if (space_.empty()) {
    result_.why_not = "the search space is empty";
    return result_;
  }
  state_.current = default_positions(space_, kinds_);
  for (const PlanStage& stage : plan_.stages) {
    if (stage.kind == PlanStage::Kind::fit_model) {
      fit_model(stage);
    } else {
      tune(stage);
    }
    if (!result_.why_not.empty()) break;
  }
  result_.evaluated = memory_.evaluated();
  result_.seconds = memory_.seconds();
  if (result_.why_not.empty() && !result_.stages.empty()) result_.best = result_.stages.back().best;
  return result_;
}

Objective PlanRun::objective(const std::string& text) const {
  ObjectiveSpec spec;
  if (text.empty()) {
    spec = problem_.objective;
  } else {
    spec.text = text;
  }
  Objective out = Objective::parse(spec, problem_.metrics);
  if (out.kind() == Objective::Kind::pareto) {
    throw UserError(
        fmt::format("plan {}: a stage needs one best configuration, \"{}\" has many", plan_.name, spec.text));
  }
  return out;
}

std::vector<std::uint32_t> PlanRun::code_of(ConfigurationIndex index) const {
  std::vector<std::uint32_t> positions(kinds_.size());
  space_.values_at(index, positions);
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    if (kinds_[i] != ParameterKind::code) positions[i] = 0;
  }
  return positions;
}

std::optional<std::size_t> PlanRun::core_clock() const {
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    if (kinds_[i] == ParameterKind::core_clock_mhz && space_.parameters()[i].values.size() > 1) return i;
  }
  return std::nullopt;
}

std::vector<ConfigurationIndex> PlanRun::search(const PlanStage& stage, const Allowed& allowed,
                                                StageResult& result) {
  auto indices = indices_of(space_, allowed);
  if (indices && stage.keep_within > 0 && !seen_before_.empty()) {
    // The code configurations that were near the best before.
    Objective before = objective(objective_before_);
    const auto best = memory_.best(seen_before_, before);
    std::set<std::vector<std::uint32_t>> kept;
    if (best) {
      for (const ConfigurationIndex index : seen_before_) before.outcome(*memory_.find(index));
      const double limit = *before.value(best->measurement);
      for (const ConfigurationIndex index : seen_before_) {
        const auto value = before.value(*memory_.find(index));
        if (value && std::abs(*value - limit) <= stage.keep_within * std::abs(limit))
          kept.insert(code_of(index));
      }
      std::erase_if(*indices, [&](ConfigurationIndex index) { return !kept.contains(code_of(index)); });
    }
  }
  result.space = indices ? indices->size() : 0;
  if (indices && indices->empty()) return {};

  const std::string strategy = !stage.strategy.empty() ? stage.strategy : options_.strategy;
  const Budget budget = stage.budget.empty() ? options_.budget : Budget::parse(stage.budget);
  const bool bounded = budget.evaluations > 0 || budget.seconds > 0 || budget.joules > 0;
  if (strategy.empty() && !bounded && indices && indices->size() <= options_.exhaustive) {
    result.strategy = "every configuration";
    SessionProgress progress;
    progress.total = indices->size();
    memory_.evaluate(*indices, [&](ConfigurationIndex, const Measurement& measurement) {
      ++progress.evaluated;
      progress.failed += !usable(measurement.status);
      if (options_.progress) options_.progress(plan_.name, stage.name, progress);
      return !interrupted();
    });
    return *indices;
  }

  const SearchSpace part = part_of(problem_, space_, allowed, indices, options_.constants);
  result.space = part.size();
  if (part.empty()) return {};
  PartEvaluator evaluator(memory_);
  Objective wanted = objective(stage.objective);
  SessionOptions session;
  session.strategy = strategy.empty() ? "auto" : strategy;
  session.strategy_options =
      strategy == options_.strategy ? options_.strategy_options : std::map<std::string, Value>{};
  session.budget = budget;
  if (!bounded) session.budget.evaluations = std::clamp<std::uint64_t>(part.size() / 20, 100, 1000);
  session.seed = options_.seed;
  session.confirm = false;
  session.interrupted = options_.interrupted;
  std::vector<ConfigurationIndex> seen;
  session.progress = [&](const SessionProgress& progress) {
    if (options_.progress) options_.progress(plan_.name, stage.name, progress);
    if (progress.last == nullptr) return;
    if (const auto whole = space_.index_of(part.configuration(progress.last->index))) seen.push_back(*whole);
  };
  const SessionResult found = run_session(part, wanted, evaluator, nullptr, 0, session);
  result.strategy = found.strategy;
  for (const EvaluationResult& best : found.best) {
    if (const auto whole = space_.index_of(part.configuration(best.index))) seen.push_back(*whole);
  }
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  return seen;
}

void PlanRun::leave_range(const PlanStage& stage, const std::vector<ConfigurationIndex>& seen,
                          PlanPoint& best) {
  const auto clock = core_clock();
  if (!clock || !state_.model_range) return;
  const auto& values = space_.parameters()[*clock].values;
  std::vector<double> clocks;
  for (const Value& value : values) clocks.push_back(value.as_real());
  std::vector<double> sorted = clocks;
  std::sort(sorted.begin(), sorted.end());

  // The few best code configurations go along: what is best may change with the clock.
  Objective wanted = objective(stage.objective);
  for (const ConfigurationIndex index : seen) wanted.outcome(*memory_.find(index));
  std::vector<ConfigurationIndex> order;
  for (const ConfigurationIndex index : seen) {
    if (wanted.value(*memory_.find(index))) order.push_back(index);
  }
  std::sort(order.begin(), order.end(), [&](ConfigurationIndex a, ConfigurationIndex b) {
    return wanted.better(*memory_.find(a), *memory_.find(b));
  });
  std::vector<std::vector<std::uint32_t>> followers;
  for (const ConfigurationIndex index : order) {
    if (followers.size() >= kFollowers) break;
    if (std::find(followers.begin(), followers.end(), code_of(index)) == followers.end())
      followers.push_back(code_of(index));
  }

  std::vector<std::uint32_t> positions(kinds_.size());
  for (const int direction : {-1, 1}) {
    double edge = direction < 0 ? state_.model_range->low_mhz : state_.model_range->high_mhz;
    while (!interrupted()) {
      space_.values_at(best.index, positions);
      const double at = clocks[positions[*clock]];
      // Only when the best clock is the outermost one tried so far.
      const bool outermost = std::none_of(sorted.begin(), sorted.end(), [&](double f) {
        return direction < 0 ? f < at - 1e-6 && f >= edge - 1e-6 : f > at + 1e-6 && f <= edge + 1e-6;
      });
      if (!outermost) break;
      std::optional<double> next;
      for (const double f : sorted) {
        if (direction < 0 && f < at * (1 - kClockStep)) next = f;
        if (direction > 0 && f > at * (1 + kClockStep) && !next) next = f;
      }
      // Finer steps than that only at the very end of the clocks.
      if (!next) next = direction < 0 ? sorted.front() : sorted.back();
      if (std::abs(*next - at) < 1e-6) break;
      const auto position =
          static_cast<std::uint32_t>(std::find(clocks.begin(), clocks.end(), *next) - clocks.begin());
      std::vector<ConfigurationIndex> tries;
      for (const auto& code : followers) {
        auto moved = positions;
        for (std::size_t i = 0; i < kinds_.size(); ++i) {
          if (kinds_[i] == ParameterKind::code) moved[i] = code[i];
        }
        moved[*clock] = position;
        if (const auto index = space_.index_of(moved)) tries.push_back(*index);
      }
      if (tries.empty()) break;
      memory_.evaluate(tries);
      tries.push_back(best.index);
      const auto better = memory_.best(tries, objective(stage.objective));
      if (!better || better->index == best.index) break;
      best = *better;
      edge = *next;
    }
  }
}

void PlanRun::tune(const PlanStage& stage) {
  StageResult result;
  result.name = stage.name;
  result.objective = stage.objective.empty() ? problem_.objective.text : stage.objective;
  const std::uint64_t before = memory_.evaluated();

  std::size_t freed = 0;
  for (const std::string& name : stage.free)
    freed += parameters_named(name, space_.parameters(), kinds_).size();
  if (freed == 0) {
    result_.why_not = fmt::format("stage \"{}\" frees {}, and this problem has no such parameters",
                                  stage.name, stage.free.empty() ? "nothing" : stage.free.front());
    return;
  }
  // A clock found with code that wastes energy is the wrong one for code that does not: beside the default a
  // few other configurations are looked at, and the best of them is what "default" stands for.
  PlanStage following = stage;
  if (const auto fixed = stage.fixed.find("code");
      fixed != stage.fixed.end() && fixed->second == Value("default")) {
    if (const auto stand_in = representative()) {
      space_.values_at(*stand_in, state_.current);
      following.fixed.erase("code");
    }
  }
  const Allowed allowed = allowed_positions(following, space_, kinds_, state_);
  std::vector<ConfigurationIndex> seen = search(following, allowed, result);
  auto best = memory_.best(seen, objective(stage.objective));
  if (!best) {
    result_.why_not = fmt::format("no configuration of stage \"{}\" worked", stage.name);
  } else {
    if (stage.in_model_range) leave_range(stage, seen, *best);
    space_.values_at(best->index, state_.current);
  }
  result.best = best;
  result.evaluated = memory_.evaluated() - before;
  result_.stages.push_back(std::move(result));
  seen_before_ = std::move(seen);
  objective_before_ = stage.objective;
}

}  // namespace ergotune::plans
