#include "tune/plans/plan.hpp"

#include "search/objective.hpp"
#include "tune/plans/plan_run.hpp"

namespace ergotune {
namespace {

LedgerOptions keeping_nothing(const Problem& problem, const PlanOptions& options) {
  LedgerOptions kept;
  kept.problem = &problem;
  kept.constants = options.constants;
  kept.interrupted = options.interrupted;
  return kept;
}

bool interrupted(const PlanOptions& options) { return options.interrupted != nullptr && options.interrupted->load(); }

ObjectiveSpec last_objective(const Plan& plan, const Problem& problem) {
  if (plan.stages.empty()) return {};
  ObjectiveSpec spec = problem.objective;
  if (const std::string& text = plan.stages.back().objective; !text.empty()) {
    spec = {};
    spec.text = text;
  }
  return Objective::parse(spec, known_metrics(problem)).spec();
}

std::optional<double> least_energy(const SearchSpace& space, const PlanOptions& options, const TrueEnergy& truth) {
  std::optional<double> least;
  for (ConfigurationIndex index = 0; truth && index < space.size(); ++index) {
    if (interrupted(options)) return std::nullopt;
    const auto energy = truth(index);
    if (energy && *energy > 0 && (!least || *energy < *least)) least = energy;
  }
  return least;
}

template <class Run>
PlanComparison compare(const std::vector<Plan>& plans, const Problem& problem, const SearchSpace& space,
                       const Evaluator& evaluator, const PlanOptions& options, const TrueEnergy& truth, Run&& run) {
  PlanComparison comparison;
  comparison.problem = problem.name;
  comparison.device = evaluator.description();
  comparison.provenance = evaluator.provenance();
  comparison.space = space.size();
  comparison.optimum = least_energy(space, options, truth);
  for (const Plan& plan : plans) {
    if (interrupted(options)) break;
    PlanResult result = run(plan);
    if (result.best && comparison.optimum) {
      result.true_energy = truth(result.best->index);
      if (result.true_energy) result.above_optimum_percent = 100 * (*result.true_energy / *comparison.optimum - 1);
    }
    comparison.plans.push_back(std::move(result));
  }
  return comparison;
}

}  // namespace

PlanResult run_plan(const Plan& plan, const Problem& problem, Ledger& ledger, const PlanOptions& options) {
  return plans::PlanRun(plan, problem, ledger, options).run();
}

PlanResult run_plan(const Plan& plan, const Problem& problem, const SearchSpace& space, Evaluator& evaluator,
                    const PlanOptions& options) {
  Ledger ledger(space, evaluator, keeping_nothing(problem, options));
  return run_plan(plan, problem, ledger, options);
}

PlanComparison compare_plans(const std::vector<Plan>& plans, const Problem& problem, Ledger& ledger,
                             const PlanOptions& options, const TrueEnergy& truth) {
  PlanComparison comparison =
      compare(plans, problem, ledger.space(), ledger.evaluator(), options, truth, [&](const Plan& plan) {
        RunInfo info;
        // The objective in which the winner is best, so that show and report name the same winner.
        info.objective = last_objective(plan, problem);
        info.plan = plan.name;
        info.strategy = options.strategy;
        info.seed = options.seed;
        ledger.begin_run(info);
        PlanResult result = run_plan(plan, problem, ledger, options);
        ledger.end_run(interrupted(options) ? "interrupted" : result.why_not.empty() ? "finished" : result.why_not);
        return result;
      });
  // A later plan may have confirmed an earlier plan's winner again: all plans show the current values.
  const auto refresh = [&](PlanPoint& point) { point.measurement = ledger.find(point.index)->measurement; };
  for (PlanResult& result : comparison.plans) {
    if (result.best) refresh(*result.best);
    for (StageResult& stage : result.stages) {
      if (stage.best) refresh(*stage.best);
      for (PlanPoint& point : stage.by_setting) refresh(point);
    }
  }
  return comparison;
}

PlanComparison compare_plans(const std::vector<Plan>& plans, const Problem& problem, const SearchSpace& space,
                             Evaluator& evaluator, const PlanOptions& options, const TrueEnergy& truth) {
  return compare(plans, problem, space, evaluator, options, truth,
                 [&](const Plan& plan) { return run_plan(plan, problem, space, evaluator, options); });
}

}  // namespace ergotune
