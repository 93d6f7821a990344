// A text file read in blocks, gzip or not.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

namespace ergotune {

class TextSource {
 public:
  /// Throws UserError when the file cannot be opened.
  explicit TextSource(const std::filesystem::path& file);
  ~TextSource();
  TextSource(const TextSource&) = delete;
  TextSource& operator=(const TextSource&) = delete;
  /// Fills up to `size` bytes (fewer than 2^31); 0 at the end. A gzip file that was cut off ends where its last whole part
  /// does.
  std::size_t read(char* buffer, std::size_t size);

 private:
  void* handle_ = nullptr;  // gzFile: zlib reads plain files too, straight into the caller's buffer
};

/// All of a file.
std::string read_all(const std::filesystem::path& file);

}  // namespace ergotune
