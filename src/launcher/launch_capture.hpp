// A launch of the application's as a problem to tune: what it was given, and what it left (ERGOTUNE_CAPTURE).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "launcher/native.hpp"

namespace ergotune::launcher {

/// What the environment asks for: ERGOTUNE_CAPTURE=names (with commas; * and ? stand for anything),
/// ERGOTUNE_CAPTURE_DIR
/// ("captured"), ERGOTUNE_CAPTURE_SKIP launches that are let pass first.
struct CaptureSettings {
  std::vector<std::string> names;
  std::filesystem::path folder;
  long skip = 0;
  static CaptureSettings from_environment();
  bool means(const std::string& kernel) const;
};

/// One argument of the application's as it was.
struct CapturedArgument {
  std::vector<std::byte> before, after;  ///< of scalars `before` alone
};

struct CapturedLaunch {
  const Problem* problem = nullptr;
  std::string text;  ///< of the problem file
  std::string backend, kernel;
  Constants constants;                      ///< what they were for this launch
  std::vector<CapturedArgument> arguments;  ///< the kernel's; local memory has none
};

/// Writes FOLDER/problem.toml, the source and the arrays (.npy). Throws UserError for what cannot be said in such a
/// file.
void write_launch(const CapturedLaunch& launch, const std::filesystem::path& folder);

}  // namespace ergotune::launcher
