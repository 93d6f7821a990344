#include "store/text_source.hpp"

#include <zlib.h>

#include <algorithm>

#include "ergotune/base/error.hpp"

namespace ergotune {

namespace {

constexpr unsigned kBufferSize = 256 * 1024;

}  // namespace

TextSource::TextSource(const std::filesystem::path& file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw UserError("this is a folder, not a file", {file.string(), 0, 0});
  gzFile handle = ::gzopen(file.c_str(), "rb");
  if (!handle) throw UserError("the file does not exist or cannot be read", {file.string(), 0, 0});
  ::gzbuffer(handle, kBufferSize);
  handle_ = handle;
}

TextSource::~TextSource() { ::gzclose(static_cast<gzFile>(handle_)); }

std::size_t TextSource::read(char* buffer, std::size_t size) {
  const int got = ::gzread(static_cast<gzFile>(handle_), buffer, static_cast<unsigned>(size));
  // negative: a cut-off gzip stream whose readable part has been given
  return static_cast<std::size_t>(std::max(got, 0));
}

std::string read_all(const std::filesystem::path& file) {
  TextSource source(file);
  std::string text;
  for (std::size_t size = 0;;) {
    text.resize(size + kBufferSize);
    const std::size_t got = source.read(text.data() + size, kBufferSize);
    size += got;
    if (got < kBufferSize) {
      text.resize(size);
      return text;
    }
  }
}

}  // namespace ergotune
