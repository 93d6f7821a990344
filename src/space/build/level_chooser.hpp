// The values that each key of a level admits: they are tried in columns, as many keys at a time as fit.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "space/build/choices.hpp"
#include "space/build/layer_builder.hpp"
#include "space/build/row_set.hpp"
#include "space/expression/columns.hpp"

namespace ergotune {

/// What one level computes and reads, found before any value is tried.
struct LevelPlan {
  std::size_t member = 0;  ///< of the component
  std::uint32_t parameter = 0;
  bool last = false;
  std::vector<program::OperationId> operations;  ///< computed here
  std::vector<program::OperationId> outputs;     ///< those of them that later levels read
  std::vector<program::OperationId> inputs;      ///< read here, known before: the words of a key
  std::vector<std::size_t> input_word;           ///< where the inputs stand in a state
  std::vector<std::size_t> pass_word;            ///< words of a state that go on
};

/// Thrown: a configuration that nothing excludes and for which some restriction cannot be evaluated.
struct UnevaluableChoice {
  std::uint32_t key, position;
};

class LevelChooser {
 public:
  /// Fills `layer`, and `slot_words` with the outputs of each slot of each key.
  LevelChooser(const program::Program& program, const Component& component, const LevelPlan& plan,
               const LayerLimits& limits, Layer& layer, std::vector<std::int64_t>& slot_words);

  /// `keys`: the first `count` of these rows, whose words are the plan's inputs. Throws UnevaluableChoice and
  /// TooManyStates.
  void choose(const RowSet& keys, std::size_t count);

 private:
  /// A parameter's value or position: what the rest is computed from.
  struct Leaf {
    std::int64_t* column;
    std::vector<std::int64_t> words;
  };
  /// Lanes of one key.
  struct Run {
    std::uint32_t key, begin, end;
  };
  static constexpr std::size_t kShortRun = 64;

  std::vector<const std::int64_t*> columns_of(const std::vector<program::OperationId>& ids);
  void find_leaves(const program::Program& program);
  void find_conditions(const program::Program& program, const Component& component);
  void enter(std::uint32_t key, std::size_t begin, std::size_t end, const std::span<const std::uint32_t>& list);
  void choose_from_many(std::uint32_t key, std::size_t count, const std::span<const std::uint32_t>& list,
                        const RowSet& keys);
  void evaluate(const RowSet& keys);

  const LevelPlan& plan_;
  const LayerLimits& limits_;
  Layer& layer_;
  std::size_t domain_;  ///< how many values the parameter has
  Columns columns_;
  CandidateLists lists_;
  std::vector<Leaf> leaves_;
  bool ascending_ = false;   ///< a larger position is a larger value
  bool all_differ_ = false;  ///< the value itself is an output: no two choices lead on alike
  std::vector<const std::int64_t*> conditions_, falling_;
  const std::int64_t* failure_ = nullptr;
  std::vector<std::int64_t*> input_columns_;
  SlotFinder slots_;
  // lanes waiting to be evaluated: runs of one key each
  std::vector<Run> runs_;
  std::array<std::uint32_t, Columns::kLanes> lane_position_;
  std::size_t lanes_ = 0;
};

}  // namespace ergotune
