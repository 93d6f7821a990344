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
  bool passed_on = false;            ///< to a function, which may do either
  std::vector<std::string> indices;  ///< what stands between the brackets
};

/// The position of a thread (or of a block) in one dimension of the launch.
struct Position {
  std::string variable;   ///< "row"; empty where the body keeps it in none
  std::string block;      ///< the macro or template parameter that is its block size; empty: any block size will do
  std::string threads;    ///< where the block has fewer threads than `block`, which loop: their number
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
  /// Through other names of it as well: `float* row = x + y * n;`.
  BufferUse use_of(const std::string& buffer) const { return use_of(buffer, 0); }
  /// What a variable or an expression is compared with: "n" of `i < n`.
  std::vector<std::string> bounds_of(const std::string& expression) const;
  /// The variables whose values are computed from this one.
  std::vector<std::string> set_from(const std::string& variable) const;
  /// "n" of `row * n + variable`; empty where there is none.
  std::string stride_before(const std::string& variable) const;
  /// Whether the threads of a block pass over a range together: for (c = threadIdx.x; c < n; ...).
  bool thread_loop(int dimension) const;
  /// Counters of loops that each thread runs for itself: for (k = 0; k < n; ...).
  std::vector<std::string> loop_counters() const;
  /// The dimension of "blockIdx.x", and of an expression that is a thread's place in the whole launch.
  static std::optional<int> block_dimension(const std::string& expression);
  static std::optional<int> thread_dimension(const std::string& expression);
  /// What a variable is set to where it is declared; empty where that is not found.
  std::string value_of(const std::string& variable) const;
  /// Whether the scalar is a number of elements or a stride: a bound, or a factor.
  bool is_extent(const std::string& scalar) const;

 private:
  /// "row" and "blockIdx.y * TILE + threadIdx.y" of `int row = ...;`, and where that stands.
  struct Assignment {
    std::string variable, value;
    std::size_t begin = 0, end = 0;
    bool pointer = false;
  };

  void read_assignments();
  BufferUse use_of(const std::string& buffer, int depth) const;
  /// Whether a pointer's declaration stands there.
  bool is_pointer_name(std::size_t at) const;

  std::string body_;                     ///< with one blank where there was white space
  std::vector<Assignment> assignments_;  ///< in their order
};

}  // namespace ergotune::draft
