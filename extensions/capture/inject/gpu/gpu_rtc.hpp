// The sources that a program gives to NVRTC or hiprtc.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ergotune::inject::gpu {

/// What a program compiled at run time.
struct RuntimeSource {
  std::string text;
  std::vector<std::string> options;
  std::vector<std::pair<std::string, std::string>> headers;  ///< name and text
  std::vector<std::pair<std::string, std::string>> names;    ///< lowered name and name expression
};

/// The latest source that made this kernel, and the kernel's name as the compiler takes it; null where none was seen.
/// `word` is its name in the source.
std::pair<std::shared_ptr<const RuntimeSource>, std::string> source_of(const std::string& symbol,
                                                                       const std::string& word);

}  // namespace ergotune::inject::gpu
