// What one plan has measured so far: every configuration once, whichever stages ask for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "ergotune/evaluate/evaluator.hpp"
#include "ergotune/problem/problem.hpp"
#include "ergotune/search/objective.hpp"
#include "ergotune/tune/plan.hpp"

namespace ergotune::plans {

class PlanMemory {
 public:
  PlanMemory(const Problem& problem, const SearchSpace& space, Evaluator& evaluator,
             const Constants& constants);

  /// Measures those of `indices` that are not known yet. `each`, when given, sees every result as it comes
  /// and stops the rest by returning false.
  void evaluate(std::span<const ConfigurationIndex> indices,
                const std::function<bool(ConfigurationIndex, const Measurement&)>& each = {});
  const Measurement* find(ConfigurationIndex index) const;
  PlanPoint point(ConfigurationIndex index) const;
  /// The best of what is known among `indices`; nullopt when none is usable.
  std::optional<PlanPoint> best(std::span<const ConfigurationIndex> indices, Objective objective) const;

  const SearchSpace& space() const { return space_; }
  Evaluator& evaluator() { return evaluator_; }
  std::uint64_t evaluated() const { return known_.size(); }
  double seconds() const { return seconds_; }

  /// Takes a result in: fills in metrics and, for recordings that have power and time only, energy.
  const Measurement& remember(ConfigurationIndex index, Measurement measurement);

 private:
  const Problem& problem_;
  const SearchSpace& space_;
  Evaluator& evaluator_;
  Constants constants_;
  std::unordered_map<ConfigurationIndex, Measurement> known_;
  double seconds_ = 0;
  double started_ = 0;
};

/// The memory as an evaluator for a part of the space, so that run_session() can search it: indices are those
/// of `part`, and what is known is not measured again.
class PartEvaluator : public Evaluator {
 public:
  explicit PartEvaluator(PlanMemory& memory) : memory_(memory) {}
  std::string description() const override { return memory_.evaluator().description(); }
  Provenance provenance() const override { return memory_.evaluator().provenance(); }
  std::size_t capacity() const override { return memory_.evaluator().capacity(); }
  void submit(EvaluationRequest request) override;
  std::optional<EvaluationResult> wait(double seconds) override;
  std::size_t pending() const override { return ready_.size() + waiting_.size(); }
  void cancel() override;

 private:
  struct Asked {
    ConfigurationIndex part_index = 0, whole_index = 0;
    bool repeat = false;
  };
  PlanMemory& memory_;
  std::vector<EvaluationResult> ready_;
  std::unordered_map<std::uint64_t, Asked> waiting_;
};

}  // namespace ergotune::plans
