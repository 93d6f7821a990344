#include "tune/plans/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "measure/execution_parameters.hpp"
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

// Plans on a prepared session, for the command and for Python.
namespace {

// In live measurements, stages with more configurations are searched instead of enumerated.
constexpr std::uint64_t kExhaustiveLive = 200;
// Largest space whose true optimum in a simulation or recording is determined by enumeration.
constexpr std::uint64_t kTruthLimit = 1'000'000;

}  // namespace

std::string prepare_for_plans(Problem& problem, SetupOptions& setup, const std::string& names) {
  setup.energy = true;
  const std::vector<Plan> plans = find_plans(names, problem);
  setup.needs_model = std::ranges::any_of(plans, [](const Plan& plan) { return plan.needs_device_model(); });
  const bool has_clocks =
      !problem.execution_parameters.empty() || std::ranges::any_of(problem.parameters, [](const Parameter& parameter) {
        return execution_kind(parameter) != ParameterKind::code;
      });
  if (has_clocks) return {};
  if (!setup.run.device.starts_with("sim:")) {
    const auto fits = [](const Plan& plan) {
      return std::ranges::any_of(plan.stages, [](const PlanStage& s) { return s.kind == PlanStage::Kind::fit_model; });
    };
    const auto plan = std::ranges::find_if(plans, fits);
    if (plan == plans.end()) return {};
    return fmt::format(
        "the problem has no clock to set ([execution] core_clock_mhz and --control): plan {} fits no model, and tunes "
        "code alone",
        plan->name);
  }
  constexpr int kClocks = 15;
  ExecutionParameterSpec clock;
  clock.kind = ParameterKind::core_clock_mhz;
  clock.choice = ExecutionParameterSpec::Choice::equidistant;
  clock.count = kClocks;
  problem.execution_parameters.push_back(clock);
  return fmt::format("the problem has no [execution] parameters; {} core clocks of the profile are added", kClocks);
}

PlanComparison run_plans(PreparedSession& prepared, const std::string& names, const SessionOptions& options,
                         const std::function<void(const SessionProgress&)>& progress) {
  const std::vector<Plan> plans = find_plans(names, prepared.problem);
  const SearchSpace& space = *prepared.space;
  TrueEnergy truth;
  if (prepared.truth && space.size() <= kTruthLimit) {
    truth = [&](ConfigurationIndex index) -> std::optional<double> {
      const auto known = prepared.truth(space.configuration(index));
      return known && usable(known->status) ? known->value("energy") : std::nullopt;
    };
  }
  PlanOptions plan_options;
  plan_options.seed = options.seed;
  plan_options.budget = options.budget;
  plan_options.strategy = options.strategy == "auto" ? "" : options.strategy;
  plan_options.strategy_options = options.strategy_options;
  plan_options.constants = prepared.constants;
  plan_options.base_clock_mhz = prepared.base_clock_mhz;
  plan_options.device_model = prepared.device_model;
  plan_options.confirm = options.confirm;
  plan_options.interrupted = options.interrupted;
  if (prepared.evaluator->provenance() == Provenance::measured) plan_options.exhaustive = kExhaustiveLive;
  plan_options.progress = [&](const std::string& plan, const std::string& stage, const SessionProgress& now) {
    if (!progress) return;
    SessionProgress shown = now;
    shown.phase = fmt::format("{}, stage {}", plan, stage);
    progress(shown);
  };
  const auto ledger = prepared.open_ledger({}, options.interrupted, options.further_metrics);
  return compare_plans(plans, prepared.problem, *ledger, plan_options, truth);
}

}  // namespace ergotune
