// How a kernel's body uses its launch geometry and its arguments, recognised by patterns. The results are guesses for a
// first problem file, not an analysis.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ergotune::draft {

/// How the body accesses a buffer.
struct BufferUse {
  bool read = false, written = false;
  bool passed_on = false;            ///< passed to a function, which may read or write it
  std::vector<std::string> indices;  ///< the index expressions between the brackets; "0" for `*x` and `x->member`
};

/// How the body computes the position of a thread (or block) in one dimension of the launch.
struct Position {
  std::string variable;       ///< variable that holds it, such as "row"; empty: none
  std::string block;          ///< macro, template parameter or number of the block size; empty: any block size works
  std::string threads;        ///< number of threads if it is less than `block` (threads then loop); else empty
  std::string factor;         ///< number of elements per thread; empty: one
  std::string apart;          ///< the same where they seem to lie a block apart, "PER" of blockIdx.x * blockDim.x * PER
  bool of_block = false;      ///< the position belongs to a block, not to a thread
  bool loops = false;         ///< `block` is the work of a block, over which its `threads` (empty: any number) loop
  std::optional<int> across;  ///< other dimension whose threads have the positions: blockIdx.x * ROWS + threadIdx.y
  bool strided = false;  ///< a thread's elements lie a block apart: (block index * factor + k) * block + thread index
};

class KernelUse {
 public:
  explicit KernelUse(const std::string& body);

  /// Returns the number of launch dimensions that the body uses, 1 to 3.
  int dimensions() const;
  Position position(int dimension) const;
  /// Whether the body uses the position of a block in a dimension.
  bool has_blocks(int dimension) const;
  /// Whether the body uses the position of a thread, or the size of a block, in a dimension.
  bool has_threads(int dimension) const;
  /// Returns the block sizes in the declaration of shared memory that has the shape of the block, innermost last; empty
  /// if there is none.
  std::vector<std::string> shared_memory_dimensions() const;
  /// An array of shared memory that has an element for each thread of a block in one dimension.
  struct SharedArray {
    std::string name;
    std::string length;  ///< its declaration's expression: "64", "2 * TILE"
    long offset = 0;     ///< the 1 of "s[threadIdx.x + 1]"
  };
  /// Returns the declarations of shared memory that the position in the block alone indexes.
  std::vector<SharedArray> arrays_of_threads(int dimension) const;
  /// Returns the accesses to a buffer, including those through derived pointers: `float* row = x + y * n;`.
  BufferUse use_of(const std::string& buffer) const { return use_of(buffer, 0); }
  /// What the elements of a buffer decide beside values.
  struct ElementUse {
    std::vector<std::string> indexed;  ///< arrays: "x" for `x[column[i]]`, also through variables
    bool bounds_loop = false;          ///< `i < row_begin[row + 1]`
  };
  ElementUse elements_of(const std::string& buffer) const;
  /// Returns what a variable or an expression is compared with: "n" for `i < n`.
  std::vector<std::string> bounds_of(const std::string& expression) const;
  /// Returns what the index of a block, or a multiple of it, is compared with: "n" for `blockIdx.x * EACH + k < n`.
  std::vector<std::string> bounds_of_block(int dimension) const;
  /// Returns the variables whose values are computed from `variable`.
  std::vector<std::string> set_from(const std::string& variable) const;
  /// Whether a variable is a quotient of a position, or others are quotients of that variable: `row = thread / 4`.
  bool divides(const std::string& variable) const;
  /// Returns "n" for `row * n + variable`; empty if there is no such expression.
  std::string stride_before(const std::string& variable) const;
  /// True if the threads of a block iterate over a range together: for (c = threadIdx.x; c < n; ...).
  bool thread_loop(int dimension) const;
  /// True if a loop advances by the size of the grid, so that any number of blocks covers the same.
  bool loops_over_grid() const;
  /// Returns "min" or "max" if the kernel combines what it writes to a buffer by these only; else "sum".
  std::string reduction_into(const std::string& buffer) const;
  /// Returns the counters of loops that each thread runs by itself: for (k = 0; k < n; ...).
  std::vector<std::string> loop_counters() const;
  /// Whether the body compares or limits the global index of a thread, or `variable`, which holds it, or a variable
  /// that is computed from that, so that threads may lie beyond the last element.
  bool is_guarded(int dimension, const std::string& variable) const;
  /// Whether a loop's counter also takes the value of its bound: true for `i <= n`, false for `i < n`; nullopt where no
  /// loop counts to that.
  std::optional<bool> loop_includes(const std::string& counter, const std::string& bound) const;
  /// Return the dimension of a block index such as "blockIdx.x", or of a global thread index; nullopt for other
  /// expressions.
  static std::optional<int> block_dimension(const std::string& expression);
  static std::optional<int> thread_dimension(const std::string& expression);
  /// Returns the initial value in the declaration of a variable; empty if there is none.
  std::string value_of(const std::string& variable) const;
  /// Returns the largest of the whole numbers that alone are assigned to a variable, several times: "2" for
  /// `int bin = -1; if (a) bin = 0; else bin = 2;`; nullopt for others.
  std::optional<long> largest_value_of(const std::string& variable) const;
  /// Returns the values that variables get from the index of a block or the global index of a thread, and quotients of
  /// those variables.
  std::vector<std::string> positions() const;
  /// True if a scalar is a number of elements or a stride: it occurs as a bound or as a factor.
  bool is_extent(const std::string& scalar) const;

  /// True if a loop advances by a macro or a local array has its length, as for the work of a step: `x += STRIP`,
  /// `float sums[ROWS]`. False for a stride: `i < n * WIDTH; i += WIDTH`, `in[y * WIDTH + x]`.
  bool is_step(const std::string& macro) const;

 private:
  /// An assignment `int row = ...;`: its variable "row", its value "blockIdx.y * TILE + threadIdx.y", and its position.
  struct Assignment {
    std::string variable, value;
    std::size_t begin = 0, end = 0;
    bool pointer = false, reference = false;
    bool floating = false;  ///< of floating point, or rounded from it, so that its bounds are not those of a position
  };

  void read_assignments();
  /// Calls `use(name, operator, value)` for each statement such as `name = value;` and `name[i] += value;`.
  void for_each_store(const std::function<void(const std::string&, const std::string&, const std::string&)>& use) const;
  /// Returns what follows a pattern and a comparison.
  std::vector<std::string> bounds_behind(const std::string& begin) const;
  /// Whether a variable gets a quotient or a remainder of another.
  static bool is_quotient_of(const Assignment& one, const std::string& variable);
  /// Returns the position of `(blockIdx.x * PER + k) * blockDim.x + threadIdx.x` in any order, where k counts to PER;
  /// nullopt for other values.
  std::optional<Position> strided_position(const Assignment& one, int dimension) const;
  /// Returns the PER of "blockIdx.x * blockDim.x * PER + threadIdx.x", or of "blockIdx.x * block * PER"; else empty.
  static std::string elements_apart(const std::string& value, int dimension, const std::string& block);
  /// True for "blockIdx.x * factor + threadIdx.x", also in two statements. `of`: the thread's dimension.
  bool added_to_thread(int dimension, const std::string& factor, int of) const;
  /// Returns the name by which the body multiplies the index of a block; empty if there is none.
  std::string factor_of_block(int dimension) const;
  BufferUse use_of(const std::string& buffer, int depth) const;
  /// Adds what the body does with an element of a buffer, or a member of it, of which the text is in [`begin`, `end`).
  void add_access(std::size_t begin, std::size_t end, BufferUse& use) const;
  /// True if the declaration of a pointer or a reference is at `at`.
  bool is_pointer_name(std::size_t at) const;

  std::string body_;                     ///< each run of white space replaced by one blank
  std::vector<Assignment> assignments_;  ///< in the order of the source
};

}  // namespace ergotune::draft
