#include "tune/plans/plan_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/clock.hpp"
#include "base/statistics.hpp"
#include "search/objective.hpp"
#include "tune/session/confirmation.hpp"

namespace ergotune::plans {
PlanRun::PlanRun(const Plan& plan, const Problem& problem, Ledger& ledger, const PlanOptions& options)
    : plan_(plan),
      problem_(problem),
      ledger_(ledger),
      space_(ledger.space()),
      options_(options),
      known_before_(ledger.order().begin(), ledger.order().end()) {
  for (const Parameter& parameter : space_.parameters()) kinds_.push_back(execution_kind(parameter));
  result_.plan = plan.name;
  result_.summary = plan.summary;
  result_.provenance = ledger.evaluator().provenance();
}

PlanResult PlanRun::run() {
  if (space_.empty()) {
    result_.why_not = "the search space is empty";
    return result_;
  }
  state_.current = default_positions(space_, kinds_);
  state_.base_clock = options_.base_clock_mhz;
  if (plan_.needs_device_model()) use_device_model();
  for (const PlanStage& stage : plan_.stages) {
    if (!result_.why_not.empty()) break;
    ledger_.set_stage(plan_.name + "/" + stage.name);
    ledger_.set_phase("stage " + stage.name);
    if (stage.kind == PlanStage::Kind::fit_model) {
      fit_model(stage);
    } else {
      tune(stage);
    }
    if (interrupted()) result_.why_not = fmt::format("interrupted in stage \"{}\"", stage.name);
  }
  ledger_.set_stage({});
  result_.requested = requested_.size();
  for (const ConfigurationIndex index : requested_) {
    const Measurement& m = *find(index);
    result_.seconds += m.compile_seconds + m.verify_seconds + m.measure_seconds + m.tuner_seconds;
  }
  result_.known = result_.requested - result_.evaluated;
  if (result_.why_not.empty() && !result_.stages.empty()) result_.best = result_.stages.back().best;
  return result_;
}

void PlanRun::note_requested(ConfigurationIndex index) {
  if (requested_.insert(index).second) result_.evaluated += !known_before_.contains(index);
}

const Measurement* PlanRun::find(ConfigurationIndex index) const {
  const ConfigurationResult* entry = ledger_.find(index);
  if (!entry) return nullptr;
  return entry->searched ? &*entry->searched : &entry->measurement;
}

void PlanRun::evaluate(const PlanStage& stage, std::vector<ConfigurationIndex> indices, const Each& each) {
  SessionProgress progress;
  progress.total = indices.size();
  began_ = host_seconds();
  ListSource list(std::move(indices),
                  [&](const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) {
                    note_requested(wanted.index);
                    report(stage, wanted.index, measurement, fresh, progress);
                    return !each || each(wanted.index, measurement, fresh);
                  });
  list.set_objective_quantity("energy");
  ledger_.drive(list);
}

void PlanRun::report(const PlanStage& stage, ConfigurationIndex index, const Measurement& measurement, bool fresh,
                     SessionProgress& progress) {
  if (!options_.progress) return;
  fresh ? ++progress.evaluated : ++progress.resumed;
  progress.failed += !usable(measurement.status);
  progress.last = ledger_.find(index);
  progress.seconds = host_seconds() - began_;
  if (progress.evaluated > 0) {
    const auto left =
        static_cast<double>(progress.total - std::min(progress.total, progress.evaluated + progress.resumed));
    progress.seconds_left = progress.seconds / static_cast<double>(progress.evaluated) * left;
  }
  options_.progress(plan_.name, stage.name, progress);
}

std::optional<PlanPoint> PlanRun::best(std::span<const ConfigurationIndex> indices, Objective objective) const {
  // First pass all results to the objective: which is best may depend on best(time) and similar terms.
  std::vector<ConfigurationIndex> usable_ones;
  for (const ConfigurationIndex index : indices) {
    const Measurement* measurement = find(index);
    if (measurement != nullptr && objective.outcome(*measurement).ok) usable_ones.push_back(index);
  }
  if (usable_ones.empty()) return std::nullopt;
  // A constrained or lexicographic objective cannot be judged by its value alone.
  const bool by_interval = result_.provenance == Provenance::measured && objective.kind() == Objective::Kind::single;
  const auto at_worst = [&](ConfigurationIndex index) {
    const Outcome outcome = objective.outcome(*find(index));
    const ErrorEstimate error = error_of(outcome);
    return outcome.values.front() + half_width_95(error.standard_error, error.degrees);
  };
  ConfigurationIndex best = usable_ones.front();
  for (const ConfigurationIndex index : usable_ones) {
    if (by_interval ? at_worst(index) < at_worst(best) : objective.better(*find(index), *find(best))) best = index;
  }
  return PlanPoint{best, space_.configuration(best), *find(best)};
}

Objective PlanRun::objective(const std::string& text) const {
  ObjectiveSpec spec;
  if (text.empty()) {
    spec = problem_.objective;
  } else {
    spec.text = text;
  }
  Objective out = Objective::parse(spec, known_metrics(problem_));
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

void PlanRun::note_base_clock(const PlanStage& stage) {
  const bool wanted = std::ranges::any_of(stage.fixed, [](const auto& fixed) { return fixed.second == Value("base"); });
  if (wanted && !state_.base_clock && core_clock())
    result_.notes.push_back("the base clock is unknown: the default clock is used instead");
}

std::vector<PlanPoint> PlanRun::by_setting(const PlanStage& stage, const std::vector<ConfigurationIndex>& seen) const {
  std::map<std::vector<std::uint32_t>, std::vector<ConfigurationIndex>> groups;
  std::vector<std::uint32_t> positions(kinds_.size());
  for (const ConfigurationIndex index : seen) {
    space_.values_at(index, positions);
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      if (kinds_[i] == ParameterKind::code) positions[i] = 0;
    }
    groups[positions].push_back(index);
  }
  std::vector<PlanPoint> list;
  if (groups.size() < 2) return list;
  const ObjectiveSpec wanted = objective(stage.objective).spec();
  for (auto& [setting, indices] : groups) {
    const auto is_confirmed = [&](ConfigurationIndex index) { return ledger_.find(index)->confirmed_for == wanted; };
    if (std::ranges::any_of(indices, is_confirmed))
      std::erase_if(indices, [&](ConfigurationIndex index) { return !is_confirmed(index); });
    auto point = best(indices, objective(stage.objective));
    if (!point) continue;
    point->measurement = ledger_.find(point->index)->measurement;
    list.push_back(*std::move(point));
  }
  return list;
}

std::optional<PlanPoint> PlanRun::confirmed(const PlanStage& stage, const std::vector<ConfigurationIndex>& seen) {
  Objective wanted = objective(stage.objective);
  Leaderboard standing(ledger_, wanted);
  for (const ConfigurationIndex index : seen) standing.see(index);
  standing.recompute_outcomes();
  const double before = host_seconds();
  Confirmation confirmation(ledger_, wanted, standing, std::nullopt, [&](double left) {
    SessionProgress progress;
    progress.best = standing.best_value();
    progress.objective = wanted.name();
    progress.unit = wanted.unit();
    progress.evaluated = progress.total = seen.size();
    progress.seconds_left = left;
    if (options_.progress) options_.progress(plan_.name, stage.name + ", confirming", progress);
  });
  if (options_.confirm) confirmation.run(ledger_.evaluated() > 0);
  result_.seconds += host_seconds() - before;
  static_cast<Confidence&>(result_) = confirmation.confidence();
  const std::vector<ConfigurationIndex> ranking = standing.ranking();
  if (ranking.empty()) return std::nullopt;
  return PlanPoint{ranking.front(), space_.configuration(ranking.front()), ledger_.find(ranking.front())->measurement};
}

std::string PlanRun::failure_among(const std::vector<ConfigurationIndex>& seen) const {
  for (const ConfigurationIndex index : seen) {
    const Measurement& last = ledger_.find(index)->measurement;
    if (!usable(last.status)) return fmt::format("{} ({})", last.message, to_string(last.status));
  }
  return "none has what the objective asks for";
}

void PlanRun::tune(const PlanStage& stage) {
  StageResult result;
  result.name = stage.name;
  result.objective = stage.objective.empty() ? problem_.objective.text : stage.objective;
  const std::uint64_t before = requested_.size(), measured_before = result_.evaluated;

  std::size_t freed = 0;
  for (const std::string& name : stage.free) {
    const std::size_t some = parameters_named(name, space_.parameters(), kinds_).size();
    // Without settings to free, a stage for code and settings would be one for code alone: skip it.
    if (some == 0 && stage.free.front() == "code") {
      freed = 0;
      break;
    }
    freed += some;
  }
  if (freed == 0) {
    result_.why_not = fmt::format("stage \"{}\" frees {}, and this problem has no such parameters", stage.name,
                                  stage.free.empty() ? "nothing" : fmt::format("{}", fmt::join(stage.free, " and ")));
    return;
  }
  // A clock chosen with inefficient code would be wrong for efficient code: a few other configurations are measured
  // beside the default, and "default" refers to the best of them.
  PlanStage following = stage;
  if (const auto fixed = stage.fixed.find("code"); fixed != stage.fixed.end() && fixed->second == Value("default")) {
    if (const auto stand_in = representative(stage)) {
      space_.values_at(*stand_in, state_.current);
      following.fixed.erase("code");
    }
  }
  note_base_clock(stage);
  const Allowed allowed = allowed_positions(following, space_, kinds_, state_);
  std::vector<ConfigurationIndex> seen = search(following, allowed, result);
  auto best = this->best(seen, objective(stage.objective));
  if (!best) {
    result_.why_not = fmt::format("no configuration of stage \"{}\" worked", stage.name);
  } else {
    if (stage.in_model_range) extend_range(stage, seen, *best);
    const bool last = &stage == &plan_.stages.back();
    if (last && result_.provenance == Provenance::measured && !interrupted()) best = confirmed(stage, seen);
    if (best) {
      space_.values_at(best->index, state_.current);
    } else {
      result_.why_not =
          fmt::format("what stage \"{}\" found could not be confirmed: {}", stage.name, failure_among(seen));
    }
  }
  result.best = best;
  result.by_setting = by_setting(stage, seen);
  result.requested = requested_.size() - before;
  result.evaluated = result_.evaluated - measured_before;
  result_.stages.push_back(std::move(result));
  seen_before_ = std::move(seen);
  objective_before_ = stage.objective;
}

}  // namespace ergotune::plans
