// A first problem file for a kernel, from its source alone: `ergotune init`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ergotune {

struct ProblemDraft {
  std::string text;                    ///< the problem file (TOML); its source is named relative to `folder`
  std::string kernel;                  ///< the function it tunes
  std::vector<std::string> questions;  ///< what was guessed, and what cannot be tuned yet, each with what to do
};

/// Reads arguments, launch, sizes and tunable macros from the source of a kernel in CUDA, HIP, OpenCL C, C or C++.
/// `function` may be empty where the source has one kernel. Sizes are constants with a usual value, values of macros
/// and block sizes are lists; what is a guess is marked CHECK.
/// Throws UserError: unknown language, no kernel, several kernels, a parameter that no problem file can describe.
ProblemDraft draft_problem(const std::filesystem::path& source, const std::string& function,
                           const std::filesystem::path& folder);
/// The same for a source that was read already; `source` names its language and its place.
ProblemDraft draft_problem_from_text(const std::string& text, const std::filesystem::path& source,
                                     const std::string& function, const std::filesystem::path& folder);

}  // namespace ergotune
