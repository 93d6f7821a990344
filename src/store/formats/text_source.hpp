// Reads a text file, gzip or not, in blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace ergotune {

class TextSource {
 public:
  /// Throws UserError if the file cannot be opened or is not a regular file (a device or pipe cannot be read again from
  /// its beginning).
  explicit TextSource(const std::filesystem::path& file);
  ~TextSource();
  TextSource(const TextSource&) = delete;
  TextSource& operator=(const TextSource&) = delete;
  /// Reads up to `size` bytes (less than 2^31); returns 0 at the end. A gzip file that was cut off ends after its last
  /// complete part. Throws UserError if the stream is damaged, or unpacks to more than a recording can.
  std::size_t read(char* buffer, std::size_t size);
  /// Whether the gzip stream ended without its trailer.
  bool cut() const { return cut_; }

 private:
  std::filesystem::path file_;
  std::uint64_t file_size_ = 0, total_ = 0;
  bool cut_ = false;
  void* handle_ = nullptr;  // gzFile: zlib reads plain files too, straight into the caller's buffer
};

/// Reads a whole file; `cut` receives TextSource::cut().
std::string read_all(const std::filesystem::path& file, bool* cut = nullptr);

}  // namespace ergotune
