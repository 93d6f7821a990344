// Captures a launch of an application as a problem to tune, with its inputs and outputs (ERGOTUNE_CAPTURE).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/native.hpp"

namespace ergotune {
struct Problem;
}  // namespace ergotune

namespace ergotune::launcher {

/// Settings from the environment: ERGOTUNE_CAPTURE=names (separated by commas, with wildcards * and ?),
/// ERGOTUNE_CAPTURE_DIR ("captured"), ERGOTUNE_CAPTURE_SKIP (number of launches to skip first).
struct CaptureSettings {
  std::vector<std::string> names;
  std::filesystem::path folder;
  long skip = 0;
  static CaptureSettings from_environment();
  bool means(const std::string& kernel) const;
};

/// Contents of an argument of the application.
struct CapturedArgument {
  std::vector<std::byte> before, after;  ///< scalars have only `before`
};

struct CapturedLaunch {
  const Problem* problem = nullptr;
  std::string text;  ///< text of the problem file
  std::string backend, kernel;
  Constants constants;                      ///< values for this launch
  std::vector<CapturedArgument> arguments;  ///< the kernel's arguments without local memory
};

/// Writes FOLDER/problem.toml, the source and the arrays (.npy). Throws UserError if a problem file cannot express the
/// launch.
void write_launch(const CapturedLaunch& launch, const std::filesystem::path& folder);

}  // namespace ergotune::launcher
