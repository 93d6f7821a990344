#include "store/formats/text_source.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "ergotune/error.hpp"

namespace ergotune {

namespace {

constexpr unsigned kBufferSize = 256 * 1024;
// Gzip reduces recordings to between a tenth and a thirtieth; a stream that expands by more than this factor is
// malicious.
constexpr std::uint64_t kMostUnpacked = 200, kAlwaysUnpacked = std::uint64_t{64} << 20;
// Limit for files that are held as a whole.
constexpr std::uint64_t kLargestRecording = std::uint64_t{4} << 30;

}  // namespace

TextSource::TextSource(const std::filesystem::path& file) : file_(file) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error))
    throw UserError("this is a folder, not a file", {file.string(), 0, 0});
  if (std::filesystem::exists(file, error) && !std::filesystem::is_regular_file(file, error))
    throw UserError("this is not a regular file; name the file itself", {file.string(), 0, 0});
  file_size_ = std::filesystem::file_size(file, error);
  gzFile handle = ::gzopen(file.c_str(), "rb");
  if (!handle) throw UserError("the file does not exist or cannot be read", {file.string(), 0, 0});
  ::gzbuffer(handle, kBufferSize);
  handle_ = handle;
}

TextSource::~TextSource() { ::gzclose(static_cast<gzFile>(handle_)); }

std::size_t TextSource::read(char* buffer, std::size_t size) {
  auto* const stream = static_cast<gzFile>(handle_);
  const auto got = static_cast<std::size_t>(std::max(::gzread(stream, buffer, static_cast<unsigned>(size)), 0));
  total_ += got;
  int code = Z_OK;
  const char* message = ::gzerror(stream, &code);
  if (code == Z_BUF_ERROR) {
    cut_ = true;  // the readable part has been returned
  } else if (code != Z_OK && code != Z_STREAM_END) {
    throw UserError(fmt::format("the file is damaged ({})", message), {file_.string(), 0, 0});
  }
  if (total_ > kLargestRecording || (total_ > kAlwaysUnpacked && total_ > kMostUnpacked * file_size_))
    throw UserError(fmt::format("this is not a recording: it has more than {} MiB, of a file of {} bytes", total_ >> 20,
                                file_size_),
                    {file_.string(), 0, 0});
  return got;
}

std::string read_all(const std::filesystem::path& file, bool* cut) {
  TextSource source(file);
  std::string text;
  for (std::size_t size = 0;;) {
    text.resize(size + kBufferSize);
    const std::size_t got = source.read(text.data() + size, kBufferSize);
    size += got;
    if (got < kBufferSize) {
      text.resize(size);
      if (cut) *cut = source.cut();
      return text;
    }
  }
}

}  // namespace ergotune
