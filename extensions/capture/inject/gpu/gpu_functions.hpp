// Which code a program's handles of modules, libraries and functions stand for: noted while the program loads it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/kernel_source/signature.hpp"
#include "capture/inject/gpu/gpu_call.hpp"

namespace ergotune::inject::gpu {

/// A code object as the driver is given it, without a size: ELF, a fat binary or a bundle, or PTX's text.
std::string_view image_at(const void* image);

class Functions {
 public:
  /// The process's own; lives for ever.
  static Functions& get();

  /// A module or a library was loaded from `image`: ELF, a fat binary, or PTX's text; or from a file.
  void loaded(Handle code, const void* image) { loaded(code, image ? image_at(image) : std::string_view()); }
  void loaded(Handle code, std::string_view image);
  void loaded_file(Handle code, const char* file);
  /// The same code under another handle: a library's module, a kernel's function.
  void same_code(Handle code, Handle other);
  void same_function(Handle kernel, Handle function);
  void found(Handle code, Handle function, const char* symbol);
  /// The functions that were in it, none of which is valid any more.
  std::vector<Handle> unloaded(Handle code);

  /// Empty for a function that was not seen being looked up.
  std::string symbol_of(Handle function) const;
  /// HIP only: what it was loaded from; null where that was not seen.
  std::shared_ptr<const std::string> image_of(Handle function) const;
  /// The same for the same kernel in every run of a program: its symbol, a hash of what it was loaded from, and what
  /// the driver reports of its code.
  std::string identity_of(Handle function, const std::string& symbol) const;

 private:
  struct Function {
    std::string symbol;
    Handle code = nullptr;
  };
  struct Image {
    std::string hash;
    std::shared_ptr<const std::string> bytes;
  };
  /// Null for a function that was not seen.
  const Image* image(Handle function) const;

  mutable std::mutex mutex_;
  std::unordered_map<Handle, Image> images_;
  std::unordered_map<Handle, Function> functions_;
};

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
