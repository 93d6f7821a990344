// One plan on its way: its stages share what was measured and what was found.
#pragma once

#include <optional>
#include <vector>

#include "tune/plan_memory.hpp"
#include "tune/plan_part.hpp"

namespace ergotune::plans {

class PlanRun {
 public:
  PlanRun(const Plan& plan, const Problem& problem, const SearchSpace& space, Evaluator& evaluator,
          const PlanOptions& options);
  PlanResult run();

 private:
  void tune(const PlanStage& stage);
  void fit_model(const PlanStage& stage);
  /// Searches what a stage may choose from; fills in strategy and returns everything it knows of the part.
  std::vector<ConfigurationIndex> search(const PlanStage& stage, const Allowed& allowed, StageResult& result);
  /// Moves `best` to lower or higher clocks as long as that helps, when it lies at the end of the model's
  /// range.
  void leave_range(const PlanStage& stage, const std::vector<ConfigurationIndex>& seen, PlanPoint& best);
  /// A code configuration that works, at the current clocks; nullopt when none was found.
  std::optional<ConfigurationIndex> representative();
  std::optional<std::size_t> core_clock() const;
  Objective objective(const std::string& text) const;
  /// The part of a key that is code: configurations with equal keys differ in execution parameters only.
  std::vector<std::uint32_t> code_of(ConfigurationIndex index) const;
  bool interrupted() const { return options_.interrupted != nullptr && options_.interrupted->load(); }

  const Plan& plan_;
  const Problem& problem_;
  const SearchSpace& space_;
  const PlanOptions& options_;
  std::vector<ParameterKind> kinds_;
  PlanMemory memory_;
  StageState state_;
  /// What the stage before looked at, and its objective: for PlanStage::keep_within.
  std::vector<ConfigurationIndex> seen_before_;
  std::string objective_before_;
  PlanResult result_;
};

}  // namespace ergotune::plans
