// What a kernel's body shows of its launch and of its arguments, found by patterns: a guess to start from, not an
// analysis.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ergotune::draft {

/// How the body uses a buffer.
struct BufferUse {
  bool read = false, written = false;
  std::vector<std::string> indices;  ///< what stands between the brackets
};

/// The position of a thread (or of a block) in one dimension of the launch.
struct Position {
  std::string variable;   ///< "row"; empty where the body keeps it in none
  std::string block;      ///< the macro or template parameter that is its block size; empty: any block size will do
  std::string factor;     ///< elements that each thread has; empty: one
  bool of_block = false;  ///< one block works on it, not one thread
};

class KernelUse {
 public:
  explicit KernelUse(const std::string& body);

  /// Dimensions of the launch that the body asks for: 1 to 3.
  int dimensions() const;
  Position position(int dimension) const;
  /// The block size that the block's shared memory has in its declaration, innermost last; empty where it has none.
  std::vector<std::string> shared_memory_dimensions() const;
  BufferUse use_of(const std::string& buffer) const;
  /// The name that a variable stays below: "n" of `i < n`; empty where no comparison shows it.
  std::string bound_of(const std::string& variable) const;
  /// What a variable is set to where it is declared; empty where that is not found.
  std::string value_of(const std::string& variable) const;
  /// Whether the scalar is a number of elements or a stride: a bound, or a factor.
  bool is_extent(const std::string& scalar) const;

 private:
  std::string body_;  ///< with one blank where there was white space
  /// "row" and "blockIdx.y * TILE + threadIdx.y" of `int row = ...;`, in their order.
  std::vector<std::pair<std::string, std::string>> assignments_;
};

}  // namespace ergotune::draft
