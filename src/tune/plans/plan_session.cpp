// Plans on a prepared session, for the command and for Python.
#include <fmt/format.h>

#include <algorithm>

#include "model/execution_kind.hpp"
#include "tune/plans/plan.hpp"

namespace ergotune {
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
