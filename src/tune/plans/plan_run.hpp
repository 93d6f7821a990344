// One plan on its way: its stages share what was measured and what was found.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "tune/plans/plan.hpp"
#include "tune/plans/plan_part.hpp"

namespace ergotune::plans {

class PlanRun {
 public:
  PlanRun(const Plan& plan, const Problem& problem, Ledger& ledger, const PlanOptions& options);
  PlanResult run();

 private:
  using Each = std::function<bool(ConfigurationIndex, const Measurement&, bool fresh)>;

  void tune(const PlanStage& stage);
  void fit_model(const PlanStage& stage);
  /// Configurations that differ from `code` in the clock alone, at the clocks that a model is fitted to.
  std::vector<ConfigurationIndex> at_spaced_clocks(std::size_t clock, ConfigurationIndex code) const;
  /// The GPU's own model in the place of a fit of the plan's.
  void use_device_model();
  void note_base_clock(const PlanStage& stage);
  /// The best of what was seen, for each setting of clocks and limits; what was confirmed comes first, with its mean.
  std::vector<PlanPoint> by_setting(const PlanStage& stage, const std::vector<ConfigurationIndex>& seen) const;
  /// What the last stage found, and its rivals, measured again side by side: the winner.
  std::optional<PlanPoint> confirmed(const PlanStage& stage, const std::vector<ConfigurationIndex>& seen);
  /// The clock with least energy of a model fitted to these, and the range around it.
  void use_model(std::size_t clock, const std::vector<ConfigurationIndex>& indices);
  /// Measures those of `indices` that are not known yet, and reports it as progress of the stage. `each`, when given,
  /// sees every result as it comes and stops the rest by returning false.
  void evaluate(const PlanStage& stage, std::vector<ConfigurationIndex> indices, const Each& each = {});
  void tell(const PlanStage& stage, ConfigurationIndex index, const Measurement& measurement, bool fresh,
            SessionProgress& progress);
  /// Counts a configuration as requested, once.
  void note_requested(ConfigurationIndex index);
  /// What it read when it was searched, whatever a confirmation has said since: a plan that goes on after a kill takes
  /// the same way as before.
  const Measurement* find(ConfigurationIndex index) const;
  /// The best of what is known among `indices`; nullopt when none is usable. Of measured values the upper end of the
  /// interval counts: the next stage must not be built on luck.
  std::optional<PlanPoint> best(std::span<const ConfigurationIndex> indices, Objective objective) const;
  /// Why one of them failed when it was last measured.
  std::string failure_among(const std::vector<ConfigurationIndex>& seen) const;
  std::vector<ConfigurationIndex> whole_stage(const PlanStage& stage, std::vector<ConfigurationIndex> indices);
  std::vector<ConfigurationIndex> searched_stage(const PlanStage& stage, const SearchSpace& part,
                                                 const std::string& strategy, const Budget& budget,
                                                 StageResult& result);
  /// Leaves those whose code was within the stage's keep_within of the best before.
  void keep_near_best(const PlanStage& stage, std::vector<ConfigurationIndex>& indices) const;
  /// The code of the best few of what was seen, best first.
  std::vector<std::vector<std::uint32_t>> best_code(const PlanStage& stage,
                                                    const std::vector<ConfigurationIndex>& seen) const;
  /// The next clock to try outside of the range; nullopt when there is none, or the best does not lie at its end.
  std::optional<double> next_clock_out(double at, double edge, int direction) const;
  /// Searches what a stage may choose from; fills in strategy and returns everything it knows of the part.
  std::vector<ConfigurationIndex> search(const PlanStage& stage, const Allowed& allowed, StageResult& result);
  /// Moves `best` to lower or higher clocks as long as that helps, when it lies at the end of the model's
  /// range.
  void leave_range(const PlanStage& stage, std::vector<ConfigurationIndex>& seen, PlanPoint& best);
  /// A code configuration that works, at the current clocks; nullopt when none was found.
  std::optional<ConfigurationIndex> representative(const PlanStage& stage);
  std::optional<std::size_t> core_clock() const;
  Objective objective(const std::string& text) const;
  /// The part of a key that is code: configurations with equal keys differ in execution parameters only.
  std::vector<std::uint32_t> code_of(ConfigurationIndex index) const;
  bool interrupted() const { return options_.interrupted != nullptr && options_.interrupted->load(); }

  const Plan& plan_;
  const Problem& problem_;
  Ledger& ledger_;
  const SearchSpace& space_;
  const PlanOptions& options_;
  std::vector<ParameterKind> kinds_;
  std::set<ConfigurationIndex> requested_;
  std::set<ConfigurationIndex> known_before_;
  StageState state_;
  /// What the stage before looked at, and its objective: for PlanStage::keep_within.
  std::vector<ConfigurationIndex> seen_before_;
  std::string objective_before_;
  PlanResult result_;
  double began_ = 0;  ///< what is measured now
};

}  // namespace ergotune::plans
