#include <fmt/format.h>

#include "tune/plans/plan.hpp"

namespace ergotune {
namespace {

PlanStage stage(std::string name, std::vector<std::string> free, std::map<std::string, Value> fixed,
                std::string objective = "energy") {
  PlanStage out;
  out.name = std::move(name);
  out.free = std::move(free);
  out.fixed = std::move(fixed);
  out.objective = std::move(objective);
  return out;
}

PlanStage fit_stage() {
  PlanStage out = stage("model", {}, {});
  out.kind = PlanStage::Kind::fit_model;
  return out;
}

std::vector<Plan> make_shipped() {
  const std::map<std::string, Value> top = {{"clocks", "max"}, {"power", "max"}};
  std::vector<Plan> plans;
  plans.push_back({"race_to_idle",
                   "the fastest configuration over everything (Going Green V-A; RaceToIdle of the thesis)",
                   {stage("time", {"all"}, {}, "time")}});
  plans.push_back(
      {"energy_at_max_clock", "least energy at the highest clock (Going Green V-A)", {stage("energy", {"code"}, top)}});
  plans.push_back({"race_to_idle_then_clocks",
                   "fastest code at the highest clock, then its best clock (Going Green V-A)",
                   {stage("time", {"code"}, top, "time"), stage("clocks", {"clocks", "power"}, {})}});
  plans.push_back({"energy_then_clocks",
                   "least energy at the base clock, then its best clock (Going Green V-A)",
                   {stage("energy", {"code"}, {{"clocks", "base"}, {"power", "default"}}),
                    stage("clocks", {"clocks", "power"}, {})}});
  plans.push_back({"global_energy",
                   "least energy over everything (Going Green V-A; GlobalEnergy of the thesis)",
                   {stage("energy", {"all"}, {})}});
  plans.push_back({"block_to_freq",
                   "code for energy at the highest clock, then the clock (BlockToFreq of the thesis)",
                   {stage("code", {"code"}, top), stage("clocks", {"clocks", "power"}, {})}});
  plans.push_back({"freq_to_block",
                   "the clock for energy with the default code, then the code (FreqToBlock of the thesis)",
                   {stage("clocks", {"clocks", "power"}, {{"code", "default"}}), stage("code", {"code"}, {})}});

  // Ridge point and optimal clock depend on device and load, not on each configuration: the code is chosen at the
  // model's clock, and only +-10 % around it is then searched, with the code configurations that are still near the
  // best.
  PlanStage at_model = stage("code", {"code"}, {{"clocks", "model"}, {"power", "default"}});
  PlanStage around = stage("around", {"all"}, {});
  around.in_model_range = true;
  around.keep_within = 0.05;
  plans.push_back({"model_steered",
                   "fit energy over the clock at a few clocks, then search only around its optimum (Going Green V-D)",
                   {fit_stage(), at_model, around}});
  plans.push_back(
      {"power_capping",
       "code for energy at the default limit, then the power limit (Going Green V-C)",
       {stage("energy", {"code"}, {{"clocks", "max"}, {"power", "default"}}), stage("limit", {"power"}, {})}});
  PlanStage walk = stage("walk", {"all"}, {});
  walk.occupancy_above = 0.8;
  walk.strategy = "coordinate";
  plans.push_back(
      {"guerreiro",
       "candidates by occupancy, the clock from the top, then kernel after kernel (Guerreiro et al., PDP 2015)",
       {walk}});
  plans.push_back({"code_and_limits",
                   "least energy over code and power limits together, clocks left at the highest (Going Green V-C)",
                   {stage("limits", {"code", "power"}, {{"clocks", "max"}})}});
  plans.push_back({"code_and_clocks",
                   "least energy over code and clocks together, under the default limit (Going Green V-C)",
                   {stage("clocks", {"code", "clocks"}, {{"power", "default"}})}});
  return plans;
}

Plan from_spec(const PlanSpec& spec) {
  Plan plan{spec.name, "from the problem file", {}};
  for (const PlanStageSpec& s : spec.stages) {
    PlanStage out =
        stage(s.name.empty() ? fmt::format("stage {}", plan.stages.size() + 1) : s.name, s.free, s.fixed, s.objective);
    out.strategy = s.strategy;
    out.budget = s.budget;
    plan.stages.push_back(std::move(out));
  }
  return plan;
}

}  // namespace

bool Plan::needs_device_model() const {
  for (const PlanStage& stage : stages) {
    if (stage.kind == PlanStage::Kind::fit_model) return false;
    for (const auto& [name, value] : stage.fixed)
      if (value == Value("model")) return true;
  }
  return false;
}

const std::vector<Plan>& shipped_plans() {
  static const std::vector<Plan> plans = make_shipped();
  return plans;
}

Plan find_plan(const std::string& name, const Problem& problem) {
  std::vector<std::string> names;
  for (const PlanSpec& spec : problem.plans) {
    if (spec.name == name) return from_spec(spec);
    names.push_back(spec.name);
  }
  for (const Plan& plan : shipped_plans()) {
    if (plan.name == name) return plan;
    names.push_back(plan.name);
  }
  throw UserError(fmt::format("there is no plan \"{}\"{}", name, suggestion(name, names)));
}

std::vector<Plan> find_plans(const std::string& names, const Problem& problem) {
  std::vector<Plan> plans;
  if (names == "all") {
    plans = shipped_plans();
    for (const PlanSpec& spec : problem.plans) plans.push_back(from_spec(spec));
    return plans;
  }
  std::string name;
  const auto take = [&] {
    if (!name.empty()) plans.push_back(find_plan(name, problem));
    name.clear();
  };
  for (const char c : names) {
    if (c == ',') {
      take();
    } else if (c != ' ') {
      name += c;
    }
  }
  take();
  if (plans.empty()) throw UserError("--plan needs the name of a plan, several with commas, or \"all\"");
  return plans;
}

}  // namespace ergotune
