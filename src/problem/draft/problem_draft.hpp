// Drafts a problem file from the source of a kernel, for `ergotune init`.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

/// The beginning of a comment that marks a guess in a draft.
inline constexpr std::string_view kGuessMark = "# CHECK: ";

struct ProblemDraft {
  std::string text;                    ///< the problem file (TOML); names its source relative to `folder`
  std::string kernel;                  ///< name of the function that it tunes
  std::vector<std::string> questions;  ///< guesses, and parts that cannot be tuned yet, each with what to do
};

/// The program that launches a kernel, in C, C++ or Python; nothing where it is not given.
struct HostProgram {
  std::filesystem::path file = {};
  std::string text = {};
};

/// Derives arguments, launch geometry, sizes and tunable macros from the source of a kernel in CUDA, HIP, OpenCL C, C
/// or C++. `function` may be empty if the source has one kernel. Sizes become constants with a usual value, macros and
/// block sizes become parameters with lists of values; guesses are marked CHECK. `host`: file of the program that
/// launches the kernel, from which sizes, block and grid are taken; empty: the launch in the source, if there is one.
/// `include_folders`: where headers are, besides the source's folder.
/// Throws UserError for an unknown language, no kernel, several kernels without `function`, and an argument that a
/// problem file cannot describe.
ProblemDraft draft_problem(const std::filesystem::path& source, const std::string& function,
                           const std::filesystem::path& folder, const std::filesystem::path& host = {},
                           const std::vector<std::filesystem::path>& include_folders = {});
/// Does the same for source text; `source` gives its language and its path.
ProblemDraft draft_problem_from_text(const std::string& text, const std::filesystem::path& source,
                                     const std::string& function, const std::filesystem::path& folder,
                                     const HostProgram& host = {},
                                     const std::vector<std::filesystem::path>& include_folders = {});
/// Returns a message if a problem file has marks of guesses; empty otherwise, and for a file that cannot be read.
std::string note_of_guesses(const std::filesystem::path& problem_file);
/// Returns true if the file's extension is that of a language above.
bool can_draft_from(const std::filesystem::path& source);

}  // namespace ergotune
