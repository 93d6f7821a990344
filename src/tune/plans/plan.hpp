// Plans: ways of tuning code and execution parameters together in stages. Each stage frees some parameters, fixes the
// others, and has an objective and a strategy. The shipped plans come from Going Green (Section V-A: race-to-idle,
// energy at the highest clock, the two-stage plans, global energy), Frericks (Section 3.5: BlockToFreq, FreqToBlock)
// and Going Green's model-steered tuning (V-D) and power capping (V-C). They can be compared on one problem: live,
// replayed or simulated.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evaluate/evaluator.hpp"
#include "measure/execution_parameters.hpp"
#include "model/power_model.hpp"
#include "tune/session/session.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {

struct Problem;

struct PlanStage {
  enum class Kind {
    tune,       ///< a search over the free parameters
    fit_model,  ///< samples a few clocks of one code configuration and fits time, power and energy over the
                ///< clock
  };
  Kind kind = Kind::tune;
  std::string name;
  /// Parameter names, or "code", "clocks" (core and memory clocks), "power", "all".
  std::vector<std::string> free;
  /// Values of parameters that are not free. Numbers may be given as "max", "min", "default", "base" (the vendor's base
  /// clock; the default for other parameters) or "model" (the best clock of the plan's own fit, else of the GPU's
  /// model). Parameters in neither list keep the value that the preceding stage found, or their default.
  std::map<std::string, Value> fixed;
  /// Restricts clocks to the range that the model suggests; the range is extended while the best configuration lies at
  /// its end.
  bool in_model_range = false;
  /// Restricts code configurations to those whose objective in the preceding stage was within this share of its best;
  /// 0: no restriction.
  double keep_within = 0;
  /// Restricts configurations to those in which every kernel's occupancy is above this share
  /// (tune/plans/occupancy_reduction.hpp); 0: no restriction.
  double occupancy_above = 0;
  std::string objective = "energy";
  /// Empty: exhaustive if the stage is small enough, else PlanOptions::strategy.
  std::string strategy;
  std::string budget;
};

struct Plan {
  std::string name;
  std::string summary;
  std::vector<PlanStage> stages;
  /// Whether a stage fixes a parameter at "model" before the plan has fitted its own model.
  bool needs_device_model() const;
};

/// The plans that come with ergotune.
const std::vector<Plan>& shipped_plans();
/// A plan of the problem file, else a shipped one. Throws UserError that lists the available plans.
Plan find_plan(const std::string& name, const Problem& problem);
/// The plans named in "a,b,c", or all plans for "all".
std::vector<Plan> find_plans(const std::string& names, const Problem& problem);

struct PlanOptions {
  /// Strategy of stages that name none. Empty: stages of up to `exhaustive` configurations are enumerated, larger ones
  /// searched by "auto" with a budget of a twentieth of their size, between 100 and 1,000 evaluations.
  std::string strategy;
  std::map<std::string, Value> strategy_options;
  /// Budget of stages that name none.
  Budget budget;
  std::uint64_t exhaustive = 1'000'000;
  std::uint64_t seed = 1;
  /// Number of clocks that a model is fitted to.
  std::size_t model_clocks = 8;
  /// Half-width of the model's range of clocks, relative to its optimum (Going Green: 10 %).
  double model_share = 0.1;
  /// Used by metrics and by the restrictions of stages that build their own space.
  Constants constants;
  /// The values of "base" and "model"; see Target.
  std::optional<double> base_clock_mhz;
  std::shared_ptr<const DeviceModel> device_model;
  /// Measure the best configurations of the last stage again, interleaved, as a search does (SessionOptions::confirm).
  bool confirm = true;
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const std::string& plan, const std::string& stage, const SessionProgress&)> progress;
};

/// A configuration of the whole space with its measurement.
struct PlanPoint {
  ConfigurationIndex index = 0;
  Configuration configuration;
  Measurement measurement;
};

struct StageResult {
  std::string name, objective, strategy;
  std::uint64_t space = 0;      ///< configurations in the stage's part of the space
  std::uint64_t requested = 0;  ///< configurations that it requested and no earlier stage had requested
  std::uint64_t evaluated = 0;  ///< those of them that were measured in this run
  std::optional<PlanPoint> best;
  /// The best configuration for each setting of clocks and limits that it tried (Going Green, Figures 6 and 7:
  /// requested and actual clocks).
  std::vector<PlanPoint> by_setting;
};

struct PlanResult : Confidence {  // of best
  std::string plan, summary;
  Provenance provenance = Provenance::measured;
  /// nullopt if the plan could not be completed; `why_not` gives the reason.
  std::optional<PlanPoint> best;
  std::string why_not;
  std::vector<StageResult> stages;
  /// Number of distinct configurations that its stages requested: what it would measure without any earlier results.
  std::uint64_t requested = 0;
  /// The cost of these in s: compilation, verification and measurement, as measured, recorded or modelled.
  double seconds = 0;
  /// Of the requested configurations: measured in this run; known before this plan began.
  std::uint64_t evaluated = 0, known = 0;
  std::optional<PowerModel> model;
  std::optional<ClockRange> model_range;
  /// Notes, for example that the base clock is unknown.
  std::vector<std::string> notes;
  /// Energy of the best without the noise of a simulated measurement, J, and its excess over the least possible energy
  /// in per cent; nullopt if unknown.
  std::optional<double> true_energy, above_optimum_percent;
};

/// Returns the energy (or another quantity) of a configuration without evaluating it. Available for recordings and
/// simulations only.
using TrueEnergy = std::function<std::optional<double>(ConfigurationIndex)>;

/// Runs a plan over the ledger's space. Known results are not measured again. Stages are deterministic, so that a plan
/// that was killed continues where it stopped.
PlanResult run_plan(const Plan& plan, const Problem& problem, Ledger& ledger, const PlanOptions& options = {});
/// The same with a temporary ledger without a store.
PlanResult run_plan(const Plan& plan, const Problem& problem, const SearchSpace& space, Evaluator& evaluator,
                    const PlanOptions& options = {});

struct PlanComparison {
  std::string problem, device;
  Provenance provenance = Provenance::measured;
  std::uint64_t space = 0;
  /// The least energy in the whole space; nullopt: unknown.
  std::optional<double> optimum;
  std::vector<PlanResult> plans;
};

/// Runs plans one after another. Each plan counts its requests as if it started without results, but results of earlier
/// plans are not measured again. With `truth`, the optimum over the space is determined first, and each plan's choice
/// is judged by its true energy.
PlanComparison compare_plans(const std::vector<Plan>& plans, const Problem& problem, Ledger& ledger,
                             const PlanOptions& options = {}, const TrueEnergy& truth = {});
/// The same with temporary ledgers without a store: each plan makes its own measurements.
PlanComparison compare_plans(const std::vector<Plan>& plans, const Problem& problem, const SearchSpace& space,
                             Evaluator& evaluator, const PlanOptions& options = {}, const TrueEnergy& truth = {});

/// Adds what plans need to a problem, before prepare_session(): energy measurement and clocks; a simulated device
/// without clocks gets some of its profile. `names`: the plans to be run; if one of them needs it, a model of the GPU
/// is requested. Returns a note for the user on what was added; empty if nothing was.
std::string prepare_for_plans(Problem& problem, SetupOptions& setup, const std::string& names);

/// Runs the named plans ("a,b", "all") on a prepared session. Used by `tune --plan` and by Python.
PlanComparison run_plans(PreparedSession& prepared, const std::string& names, const SessionOptions& options,
                         const std::function<void(const SessionProgress&)>& progress = {});

}  // namespace ergotune
