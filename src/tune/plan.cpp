#include "ergotune/tune/plan.hpp"

#include "tune/plan_run.hpp"

namespace ergotune {

PlanResult run_plan(const Plan& plan, const Problem& problem, const SearchSpace& space, Evaluator& evaluator,
                    const PlanOptions& options) {
  return plans::PlanRun(plan, problem, space, evaluator, options).run();
}

PlanComparison compare_plans(const std::vector<Plan>& plans, const Problem& problem, const SearchSpace& space,
                             Evaluator& evaluator, const PlanOptions& options, const TrueEnergy& truth) {
  PlanComparison comparison;
  comparison.problem = problem.name;
  comparison.device = evaluator.description();
  comparison.provenance = evaluator.provenance();
  comparison.space = space.size();
  if (truth) {
    for (ConfigurationIndex index = 0; index < space.size(); ++index) {
      const auto energy = truth(index);
      if (energy && *energy > 0 && (!comparison.optimum || *energy < *comparison.optimum))
        comparison.optimum = energy;
    }
  }
  for (const Plan& plan : plans) {
    if (options.interrupted != nullptr && options.interrupted->load()) break;
    PlanResult result = run_plan(plan, problem, space, evaluator, options);
    if (result.best && comparison.optimum) {
      if (const auto energy = truth(result.best->index)) {
        result.above_optimum_percent = 100 * (*energy / *comparison.optimum - 1);
      }
    }
    comparison.plans.push_back(std::move(result));
  }
  return comparison;
}

}  // namespace ergotune
