// A text file read in blocks, gzip or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace ergotune {

class TextSource {
 public:
  /// Throws UserError when the file cannot be opened, or is no regular file (a device or a pipe has no beginning to
  /// return to).
  explicit TextSource(const std::filesystem::path& file);
  ~TextSource();
  TextSource(const TextSource&) = delete;
  TextSource& operator=(const TextSource&) = delete;
  /// Fills up to `size` bytes (fewer than 2^31); 0 at the end. A gzip file that was cut off ends where its last whole
  /// part does. Throws UserError where the stream is damaged, and for one that unpacks to more than a recording does.
  std::size_t read(char* buffer, std::size_t size);
  /// Whether the gzip stream that has been read has no end.
  bool cut() const { return cut_; }

 private:
  std::filesystem::path file_;
  std::uint64_t file_size_ = 0, total_ = 0;
  bool cut_ = false;
  void* handle_ = nullptr;  // gzFile: zlib reads plain files too, straight into the caller's buffer
};

/// All of a file; `cut` as TextSource::cut().
std::string read_all(const std::filesystem::path& file, bool* cut = nullptr);

}  // namespace ergotune
