// One run of a plan: its stages share their measurements and results.
#pragma once

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
  /// Configurations at spaced clocks, otherwise equal to `code`, to which a model is fitted.
  std::vector<ConfigurationIndex> at_spaced_clocks(std::size_t clock, ConfigurationIndex code) const;
  /// Uses the GPU's stored model instead of a fit of this plan.
  void use_device_model();
  void note_base_clock(const PlanStage& stage);
  /// The best configuration seen for each setting of clocks and limits; empty for a single setting. Where a setting has
  /// confirmed configurations, only these are considered, with their mean.
  std::vector<PlanPoint> by_setting(const PlanStage& stage, const std::vector<ConfigurationIndex>& seen) const;
  /// Measures the best configurations of the last stage again, interleaved, and returns the winner.
  std::optional<PlanPoint> confirmed(const PlanStage& stage, const std::vector<ConfigurationIndex>& seen);
  /// Fits a model to these configurations and sets the clock with the least energy and the range around it.
  void use_model(std::size_t clock, const std::vector<ConfigurationIndex>& indices);
  /// Measures the configurations of `indices` that are not known yet and reports them as progress of the stage. `each`,
  /// if given, receives every result and stops the evaluation by returning false.
  void evaluate(const PlanStage& stage, std::vector<ConfigurationIndex> indices, const Each& each = {});
  void report(const PlanStage& stage, ConfigurationIndex index, const Measurement& measurement, bool fresh,
              SessionProgress& progress);
  /// Counts a configuration as requested, once.
  void note_requested(ConfigurationIndex index);
  /// The search's measurement of a configuration, even if a later confirmation replaced it, so that a plan that
  /// continues after a kill makes the same decisions. null: not measured.
  const Measurement* find(ConfigurationIndex index) const;
  /// The best usable configuration among `indices`; nullopt if there is none. Measured values are compared by the upper
  /// end of their intervals, so that the next stage is not built on a lucky measurement.
  std::optional<PlanPoint> best(std::span<const ConfigurationIndex> indices, Objective objective) const;
  /// Message and status of the first failed configuration of `seen`; a general reason if none failed.
  std::string failure_among(const std::vector<ConfigurationIndex>& seen) const;
  std::vector<ConfigurationIndex> whole_stage(const PlanStage& stage, std::vector<ConfigurationIndex> indices);
  std::vector<ConfigurationIndex> searched_stage(const PlanStage& stage, const SearchSpace& part,
                                                 const std::string& strategy, const Budget& budget,
                                                 StageResult& result);
  /// Keeps only the configurations whose code was within the stage's keep_within of the preceding stage's best.
  void keep_near_best(const PlanStage& stage, std::vector<ConfigurationIndex>& indices) const;
  /// The code values of the few best configurations seen, best first.
  std::vector<std::vector<std::uint32_t>> best_code(const PlanStage& stage,
                                                    const std::vector<ConfigurationIndex>& seen) const;
  /// The next clock to try outside of the range; nullopt if there is none, or the best clock is not at that end of the
  /// range.
  std::optional<double> next_clock_out(double at, double edge, int direction) const;
  /// Searches the allowed part of a stage, fills in `result`, and returns all known configurations of the part.
  std::vector<ConfigurationIndex> search(const PlanStage& stage, const Allowed& allowed, StageResult& result);
  /// If `best` lies at an end of the model's range, moves it to lower or higher clocks as long as that improves it.
  void extend_range(const PlanStage& stage, std::vector<ConfigurationIndex>& seen, PlanPoint& best);
  /// A code configuration that works at the current clocks; nullopt if none was found.
  std::optional<ConfigurationIndex> representative(const PlanStage& stage);
  std::optional<std::size_t> core_clock() const;
  Objective objective(const std::string& text) const;
  /// The value positions of a configuration with those of execution parameters set to 0: equal for configurations that
  /// differ in execution parameters only.
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
  /// The configurations that the preceding stage saw, and its objective, for PlanStage::keep_within.
  std::vector<ConfigurationIndex> seen_before_;
  std::string objective_before_;
  PlanResult result_;
  double began_ = 0;  ///< host_seconds() when the current evaluation began
};

}  // namespace ergotune::plans
