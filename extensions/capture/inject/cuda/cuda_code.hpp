// Where a CUDA kernel's code is from: code objects as the driver loads them, and sources that the program gave to
// NVRTC.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ergotune::inject::cuda {

/// What a program compiled at run time.
struct RuntimeSource {
  std::string text;
  std::vector<std::string> options;
  std::vector<std::pair<std::string, std::string>> headers;  ///< name and text
  std::vector<std::pair<std::string, std::string>> names;    ///< lowered name and name expression
};

/// The function of ours that stands in front of NVRTC's of this name; null where none does.
void* nvrtc_in_front(std::string_view name);

class Code {
 public:
  /// The process's own; lives for ever.
  static Code& get();

  void add_code_object(const void* bytes, std::size_t size);
  /// The latest code object with this kernel; empty where none was seen.
  std::string code_object_with(const std::string& symbol) const;

  void add_source(std::shared_ptr<const RuntimeSource> source);
  /// The latest source that made this kernel, and the kernel's name as NVRTC takes it; null where none was seen. `word`
  /// is its name in the source.
  std::pair<std::shared_ptr<const RuntimeSource>, std::string> source_of(const std::string& symbol,
                                                                         const std::string& word) const;
};

}  // namespace ergotune::inject::cuda
