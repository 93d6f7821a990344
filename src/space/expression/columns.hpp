// Evaluates operations over columns of values.
#pragma once

#include <span>
#include <vector>

#include "space/expression/program.hpp"

namespace ergotune {

/// Columns of values of the operations of one level. Reals are stored as bits.
class Columns {
 public:
  static constexpr std::size_t kLanes = 256;

  /// The caller fills the columns of `inputs`; evaluate() computes those of `operations`, in this order.
  Columns(const program::Program& program, std::span<const program::OperationId> inputs,
          std::span<const program::OperationId> operations);

  std::int64_t* column(program::OperationId id) {
    return storage_.data() + index_[static_cast<std::size_t>(id)] * kLanes;
  }
  bool has(program::OperationId id) const { return index_[static_cast<std::size_t>(id)] != kMissing; }
  void evaluate(std::size_t lanes);

 private:
  static constexpr std::uint32_t kMissing = ~std::uint32_t{0};
  void evaluate_integer(const program::Operation& operation, std::int64_t* out, std::size_t lanes);
  std::uint32_t add(program::OperationId id);

  const program::Program& program_;
  std::vector<program::OperationId> operations_;
  std::vector<std::uint32_t> index_;
  std::vector<std::int64_t> storage_;
  std::uint32_t used_ = 0;
};

/// Returns the bits of each value of a parameter, as its `variable` operation yields them.
std::vector<std::int64_t> value_description(const program::Program& program, program::OperationId variable);

}  // namespace ergotune
