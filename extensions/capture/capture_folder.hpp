// A launch with all its data, as a problem folder: problem.toml, the kernel's source or code object, one .npy file for
// each buffer before the launch, and one for each that it wrote, as the reference. Used inside of captured programs: it
// needs nothing but the standard library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ergotune::capture {

/// One argument as it was when its kernel was launched.
struct CapturedArgument {
  enum class Kind { scalar, buffer, local_memory } kind = Kind::buffer;
  /// As in the source; empty where it is not known.
  std::string name;
  /// The type in the source: "float", "uint4", "struct grid"; of buffers, what they point to. Empty where it is not
  /// known.
  std::string type;
  /// scalar: its value. buffer: its contents before the launch.
  std::vector<std::byte> bytes;
  /// buffer: its contents after the launch.
  std::vector<std::byte> after;
  std::size_t local_bytes = 0;
  /// buffer: the source promises not to write it ("const").
  bool constant = false;
  /// buffer: two arguments with the same number (not 0) are the same memory.
  std::uint64_t memory = 0;
  /// Of a structure or in a buffer: addresses by their places, each with the position of a buffer among the arguments
  /// and bytes from that buffer's beginning.
  std::map<std::size_t, std::pair<std::size_t, std::uint64_t>> addresses;
  /// buffer: the kernel is given its address in structures or in memory only.
  bool is_pointed_to = false;
};

struct CapturedLaunch {
  std::string kernel;
  /// What the compiler or the code object calls it, where that is something else: a mangled name, a name expression.
  std::string function;
  /// What the launch was seen in, for the file's first line.
  std::string program, device;
  /// "opencl", "cuda" or "hip".
  std::string language = "opencl";
  /// The source's text, or a code object's bytes; and its file's name in the folder ("kernel.cl", "kernel.cubin").
  std::string source, source_file = "kernel.cl";
  /// A code object: nothing of it depends on macros and compiler options.
  bool compiled = false;
  /// Headers that the program kept in memory: name and text.
  std::vector<std::pair<std::string, std::string>> headers;
  /// One for each word; -I goes to include_folders, which are absolute.
  std::vector<std::string> options, include_folders;
  std::vector<CapturedArgument> arguments;
  std::size_t dimensions = 1;
  /// Threads in each dimension, in all and of one block.
  std::array<std::size_t, 3> global{1, 1, 1}, block{1, 1, 1};
  /// The program left the block to the driver: `block` is then a guess.
  bool block_was_open = false;
  std::size_t shared_bytes = 0;
  /// A code object's own shared memory, beside what its launch asks for; and how much of both a block may have.
  std::size_t static_shared_bytes = 0, most_shared_bytes = 48 << 10;
  /// CUDA: blocks of a cluster, as the launch asks for it; and whether another launch of this code may ask for one.
  std::array<unsigned, 3> cluster{1, 1, 1};
  bool may_have_cluster = false;
  /// Threads of the largest block that the kernel can run with; 0: not known.
  std::size_t most_threads = 0;
  /// Compiler options that change rounding are parameters too.
  bool tune_rounding = false;
};

/// Whether the size of a block may be another: it follows from the source; of compiled code from its shared memory.
enum class BlockUse {
  none,       ///< nothing in the source asks for it
  requested,  ///< get_local_id() and its like: results tell whether another size is right
  relied_on   ///< shared memory, barriers, a size that the source demands: it stays
};
BlockUse block_use(const CapturedLaunch& launch);

/// Sizes of blocks to try in one dimension: divisors of the global size, so that no thread is added, among them
/// `present`.
std::vector<std::size_t> block_sizes(std::size_t global, std::size_t present, std::size_t most);

/// Writes the folder, made where it is not. Returns what its user should know, a sentence each. Throws
/// std::runtime_error with what cannot be said in a problem file, or cannot be written; then there is no problem.toml
/// in it.
std::vector<std::string> write_capture(CapturedLaunch launch, const std::filesystem::path& folder);

/// Moves what write_capture() wrote to where another capture may lie: its files are replaced, others stay. problem.toml
/// goes first and comes last, so that an end in between leaves no capture of two halves. Throws
/// std::filesystem::filesystem_error.
void move_capture(const std::filesystem::path& from, const std::filesystem::path& to);

/// Compiler options as the program gave them, split at spaces outside of quotes.
std::vector<std::string> split_options(const std::string& options);

/// FNV-1a, 64 bits, as 16 hexadecimal digits: how a program's source is known again.
std::string source_hash(std::string_view source);

}  // namespace ergotune::capture
