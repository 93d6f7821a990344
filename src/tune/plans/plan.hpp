// Plans: ways of tuning code and execution parameters together, as stages. Each stage frees some parameters
// and fixes the others, has an objective and a strategy. From Going Green (Section V-A: race-to-idle, energy
// at the highest clock, the two-stage plans, global energy), Frericks (Section 3.5: BlockToFreq, FreqToBlock)
// and Going Green's model-steered tuning (V-D) and power capping (V-C). They can be compared on one problem,
// live, replayed or simulated.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "evaluate/evaluator.hpp"
#include "model/execution_kind.hpp"
#include "model/power_model.hpp"
#include "tune/session/session.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {

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
  /// Values of parameters that are not free; for numbers "max", "min", "default", "base" (the maker's base clock; of
  /// what has none the default), "model" (the best clock of the plan's own fit, else of the GPU's model). Parameters
  /// in neither list keep the value that the stage before found, or their default.
  std::map<std::string, Value> fixed;
  /// Only clocks within the model's suggested range; the range grows where the best found lies at its end.
  bool in_model_range = false;
  /// Only code configurations whose objective in the stage before was within this share of its best; 0: all.
  double keep_within = 0;
  /// Only configurations in which every kernel's occupancy is above this share (tune/plans/occupancy_reduction.hpp); 0:
  /// all.
  double occupancy_above = 0;
  std::string objective = "energy";
  /// Empty: everything where the stage is small enough, else PlanOptions::strategy.
  std::string strategy;
  std::string budget;
};

struct Plan {
  std::string name;
  std::string summary;
  std::vector<PlanStage> stages;
  /// It fixes something at "model" before it has fitted one itself.
  bool needs_device_model() const;
};

/// The plans that come with ergotune.
const std::vector<Plan>& shipped_plans();
/// A plan of the problem file, else a shipped one. Throws UserError naming what there is.
Plan find_plan(const std::string& name, const Problem& problem);
/// "a,b,c" or "all" as plans.
std::vector<Plan> find_plans(const std::string& names, const Problem& problem);

struct PlanOptions {
  /// For stages that name none. Empty: stages of up to `exhaustive` configurations are searched whole, larger
  /// ones by "auto" with a budget of a twentieth of their size, from 100 to 1,000 evaluations.
  std::string strategy;
  std::map<std::string, Value> strategy_options;
  /// For every stage that names none.
  Budget budget;
  std::uint64_t exhaustive = 1'000'000;
  std::uint64_t seed = 1;
  /// Clocks that a model is fitted to.
  std::size_t model_clocks = 8;
  /// Half-width of the model's range (Going Green: 10 %).
  double model_share = 0.1;
  /// Seen by restrictions of stages whose space is built anew, and by metrics.
  Constants constants;
  /// What "base" and "model" stand for; see Target.
  std::optional<double> base_clock_mhz;
  std::shared_ptr<const DeviceModel> device_model;
  /// Measure what the last stage found, and its rivals, again side by side, as a search does (SessionOptions::confirm).
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
  std::uint64_t space = 0;      ///< configurations it could choose from
  std::uint64_t requested = 0;  ///< configurations that it requested and no earlier stage had
  std::uint64_t evaluated = 0;  ///< those of them that were measured in this run
  std::optional<PlanPoint> best;
  /// For each setting of clocks and limits that it tried, the best configuration there (Going Green, Figures 6 and 7:
  /// what is asked, and what then ran).
  std::vector<PlanPoint> by_setting;
};

struct PlanResult : Confidence {  // of best
  std::string plan, summary;
  Provenance provenance = Provenance::measured;
  /// Empty when the plan could not be followed to its end; `why_not` says why.
  std::optional<PlanPoint> best;
  std::string why_not;
  std::vector<StageResult> stages;
  /// Different configurations that its stages requested: as many as it would measure if it started from nothing.
  std::uint64_t requested = 0;
  /// What these cost, s: compilers, verification and measurement added up, as measured, recorded or modelled.
  double seconds = 0;
  /// Of the asked: measured in this run, and known before this plan began.
  std::uint64_t evaluated = 0, known = 0;
  std::optional<PowerModel> model;
  std::optional<ClockRange> model_range;
  /// Notes, for example that the base clock is unknown.
  std::vector<std::string> notes;
  /// Energy of the best without the noise of a simulated measurement, J, and how far that lies above the least
  /// possible, per cent; nullopt where they are not known.
  std::optional<double> true_energy, above_optimum_percent;
};

/// Energy (or another quantity) of a configuration of the space without evaluating it: known for recordings
/// and simulations only.
using TrueEnergy = std::function<std::optional<double>(ConfigurationIndex)>;

/// Runs a plan over the ledger's space. What the ledger knows is not measured again; stages are deterministic, so that
/// a plan that was killed goes on where it was.
PlanResult run_plan(const Plan& plan, const Problem& problem, Ledger& ledger, const PlanOptions& options = {});
/// The same with a ledger of its own that keeps nothing.
PlanResult run_plan(const Plan& plan, const Problem& problem, const SearchSpace& space, Evaluator& evaluator,
                    const PlanOptions& options = {});

struct PlanComparison {
  std::string problem, device;
  Provenance provenance = Provenance::measured;
  std::uint64_t space = 0;
  /// The least energy in the whole space; nullopt when unknown.
  std::optional<double> optimum;
  std::vector<PlanResult> plans;
};

/// Runs one plan after another; each counts what it asks for as if it started from nothing, and what one has measured
/// is not measured again for the next. With `truth` the optimum over the space is found first, and each plan's choice
/// is judged by its true energy.
PlanComparison compare_plans(const std::vector<Plan>& plans, const Problem& problem, Ledger& ledger,
                             const PlanOptions& options = {}, const TrueEnergy& truth = {});
/// The same with ledgers that keep nothing: each plan measures for itself.
PlanComparison compare_plans(const std::vector<Plan>& plans, const Problem& problem, const SearchSpace& space,
                             Evaluator& evaluator, const PlanOptions& options = {}, const TrueEnergy& truth = {});

/// Before prepare_session(): plans need energy, and clocks; a simulated device without any gets some of its profile.
/// What was added, for the user; empty for nothing.
/// `names`: the plans that are to be run; a model of the GPU is requested where one of them needs it.
std::string prepare_for_plans(Problem& problem, SetupOptions& setup, const std::string& names);

/// Runs the named plans ("a,b", "all") on a prepared session: the command's `tune --plan` and Python's.
PlanComparison run_plans(PreparedSession& prepared, const std::string& names, const SessionOptions& options,
                         const std::function<void(const SessionProgress&)>& progress = {});

}  // namespace ergotune
