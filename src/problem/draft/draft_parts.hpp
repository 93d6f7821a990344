// The parts of a first problem file, in the order in which they are derived, and what they pass on.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "problem/draft/draft_source.hpp"
#include "problem/draft/problem_names.hpp"

namespace ergotune::draft {

// --- Constants and parameters: what the source lets a user choose, and values worth trying (parameters.cpp)

/// Adds macros, template parameters and scalar arguments of the source to `names`.
void read_parameters(const DraftSource& source, ProblemNames& names, Guesses& guesses);

/// Returns values worth trying for `blocks[dimension]`, a block size. `tiles`: threads of a block and the larger tile
/// that they work on; `launched`: the size in the source's launch. Without it the default is a block of 256 threads.
/// `most`: the largest value that the body allows.
std::string values_of_block(const std::vector<std::string>& blocks, std::size_t dimension,
                            const std::map<std::string, std::string>& tiles, std::optional<long> launched,
                            std::optional<long> most);

/// Adds parameters for macros that the source leaves open; `factors`: those for the work of a thread. Returns those
/// that become compiler options.
std::vector<std::string> add_undefined(const DraftSource& source, const std::set<std::string>& factors,
                                       ProblemNames& names, Guesses& guesses);

// --- The launch of the kernel: its block, and the threads or blocks that cover its sizes (geometry.cpp)

struct Geometry {
  int dimensions = 1;
  std::vector<std::string> block;  ///< its size in each dimension
  std::string block_threads = "1";
  std::vector<std::string> reach;             ///< number of elements, or blocks, in each dimension
  std::set<int> guessed;                      ///< dimensions of which the body does not show the number
  std::set<int> of_block;                     ///< dimensions in which an element belongs to a block, not to a thread
  bool blocks_vary = false;                   ///< whether a parameter changes the number of blocks
  std::map<std::string, std::string> blocks;  ///< variables that contain a block's index, and the number of blocks
  std::string number_of_blocks;               ///< of the whole grid
  std::string stated_blocks;      ///< the launch's number of blocks where any number covers the same; else empty
  std::set<std::string> factors;  ///< parameters for the work per thread
  std::vector<std::string> restrictions;
  std::string table;  ///< [kernel.launch] of the problem file
};

/// Derives the launch from the kernel's body and, where that does not show it, from the launch in the source. Adds
/// block sizes to the parameters.
Geometry derive_geometry(const DraftSource& source, ProblemNames& names, Guesses& guesses);

// --- Expressions of the launch in the source or its host program (launch_terms.cpp)

/// Returns an expression of the launch in terms of the problem: arguments of the launch become their constants, the
/// launch's block becomes `blocks`, numbers that are template arguments their parameters, variables what they are set
/// to, others their values; nullopt if it has something else. `mark`: which numbers were taken for a parameter, and
/// which are the values of names that the problem lacks.
std::optional<std::string> in_terms_of_problem(const DraftSource& source, const ProblemNames& names,
                                               const std::string& expression,
                                               const std::vector<std::string>& blocks = {}, std::string* mark = nullptr,
                                               int depth = 0);

/// Returns the number of positions that the launch covers in a dimension, in terms of the problem: the n of
/// (n + 15) / 16 where a block covers 16; nullopt where the launch divides by another number. `of_block`: positions
/// that a block covers at the launch.
std::optional<std::string> launched_size(const DraftSource& source, const ProblemNames& names, std::size_t dimension,
                                         long of_block);

/// Returns one dimension of the launch's grid, in terms of `blocks` where it divides by the launch's block; nullopt
/// unless it covers the same with any of their values. `of_block`: an element belongs to a block, not to a thread.
std::optional<std::string> launched_grid(const DraftSource& source, const ProblemNames& names, std::size_t dimension,
                                         bool of_block, const std::vector<std::string>& blocks,
                                         std::vector<std::string>& restrictions, std::string* mark);

/// Returns the number of blocks that the launch starts in a dimension; nullopt where the source does not show it.
std::optional<long> launched_blocks(const DraftSource& source, std::size_t dimension);

/// Whether an expression of the launch names its block, so that it holds for other blocks.
bool names_block(const SourceLaunch& launch, const std::string& expression);
/// Whether the launch divides by the block without rounding up.
bool launches_whole_blocks(const SourceLaunch& launch, std::size_t dimension);

// --- Arguments, and the numbers of elements that the body reaches in them (arguments.cpp)

struct DraftArguments {
  std::string lines;
  /// Outputs with a partial result of each block, and how results are combined: "sum", "min" or "max".
  std::vector<std::pair<std::string, std::string>> partial;
  bool written = false;             ///< whether one of them is an output
  std::set<std::string> allocated;  ///< template parameters and macros that the host's allocations multiply by
  std::vector<std::string> bytes;   ///< of each buffer
  bool by_block = false;            ///< whether each block reads an element of an input, so that no output is partial
};

/// Throws UserError for an argument that a problem file cannot describe.
DraftArguments derive_arguments(const DraftSource& source, const ProblemNames& names, const Geometry& geometry,
                                Guesses& guesses);

/// Adds a constant for each size: as in the source, or large enough to occupy a GPU and small enough that a first run
/// takes seconds and each buffer fits into a gibibyte.
void add_sizes(const DraftSource& source, const Geometry& geometry, const DraftArguments& arguments,
               ProblemNames& names, Guesses& guesses);

}  // namespace ergotune::draft
