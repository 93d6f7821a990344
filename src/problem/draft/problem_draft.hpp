// Drafts a problem file from the source of a kernel, for `ergotune init`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ergotune {

struct ProblemDraft {
  std::string text;                    ///< the problem file (TOML); names its source relative to `folder`
  std::string kernel;                  ///< name of the function that it tunes
  std::vector<std::string> questions;  ///< guesses, and parts that cannot be tuned yet, each with what to do
};

/// Derives arguments, launch geometry, sizes and tunable macros from the source of a kernel in CUDA, HIP, OpenCL C, C
/// or C++. `function` may be empty if the source has one kernel. Sizes become constants with a usual value, macros and
/// block sizes become parameters with lists of values; guesses are marked CHECK.
/// Throws UserError for an unknown language, no kernel, several kernels without `function`, and an argument that a
/// problem file cannot describe.
ProblemDraft draft_problem(const std::filesystem::path& source, const std::string& function,
                           const std::filesystem::path& folder);
/// Does the same for source text; `source` gives its language and its path.
ProblemDraft draft_problem_from_text(const std::string& text, const std::filesystem::path& source,
                                     const std::string& function, const std::filesystem::path& folder);
/// Returns true if the file's extension is that of a language above.
bool can_draft_from(const std::filesystem::path& source);

}  // namespace ergotune
