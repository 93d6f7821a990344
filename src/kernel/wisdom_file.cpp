// Reads and writes wisdom files.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <thread>
#include <tuple>

#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/process/file_lock.hpp"
#include "ergotune/error.hpp"
#include "kernel/wisdom.hpp"

namespace ergotune {
namespace {

/// A writer needs milliseconds; a stopped process holds its lock indefinitely.
constexpr auto kLongestWait = std::chrono::seconds(10);

void take(FileLock& lock, const std::filesystem::path& folder) {
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  std::error_code failure;
  while (!lock.take(failure)) {
    if (std::chrono::steady_clock::now() > end)
      throw UserError(
          fmt::format("process {} has been writing wisdom here for more than {} s; try again when it has ended",
                      lock.holder(), kLongestWait.count()),
          {folder.string(), 0, 0});
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (failure)
    throw UserError(fmt::format("wisdom cannot be written here: {}", failure.message()), {folder.string(), 0, 0});
}

/// Writes contents and name to disk, so that after a power failure either the old or the new file exists.
void synchronise(const std::filesystem::path& file) {
  for (const auto& path : {file, file.parent_path()}) {
    const int descriptor = ::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) continue;
    (void)::fsync(descriptor);
    ::close(descriptor);
  }
}

/// What a record is of: a later one of the same replaces it.
auto key_of(const WisdomRecord& record) {
  return std::tuple(record.device.name, record.device.backend, record.device.uuid, record.problem_size,
                    record.configuration, record.execution, record.objective, record.maximise, record.provenance,
                    record.source_hash, record.space_hash);
}

/// Removes the lines of a file with records of the same key as `record`.
void remove_replaced(std::string& text, const WisdomRecord& record, const std::string& header) {
  std::string kept;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size() - 1) + 1;
    const std::string line = text.substr(from, end - from);
    const std::vector<WisdomRecord> found = parse_wisdom(header + line, {}).records;
    if (found.empty() || key_of(found.front()) != key_of(record)) kept += line;
    from = end;
  }
  text = std::move(kept);
}

}  // namespace

std::filesystem::path wisdom_file(const std::filesystem::path& folder, std::string_view kernel) {
  std::string name;
  for (const char c : kernel) {
    const bool plain =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
    name += plain ? c : '_';
  }
  const std::filesystem::path file = folder / (name + ".wisdom");
  // "a/b" and "a_b" have the same plain name; the first one owns the file.
  std::ifstream in(file);
  std::string header;
  if (!std::getline(in, header)) return file;
  const std::string owner = parse_wisdom(header + "\n", file.string()).kernel;
  return owner.empty() || owner == kernel ? file : folder / fmt::format("{}-{:.8}.wisdom", name, content_hash(kernel));
}

std::optional<Wisdom> read_wisdom(const std::filesystem::path& file) {
  const auto text = read_file(file);
  if (text) return parse_wisdom(*text, file.string());
  const int failure = errno;
  if (failure == ENOENT || failure == ENOTDIR) return std::nullopt;
  Wisdom wisdom;
  wisdom.warnings.push_back(fmt::format("{}: cannot be read: {}", file.string(), std::strerror(failure)));
  return wisdom;
}

std::vector<std::filesystem::path> wisdom_files(const std::filesystem::path& folder_or_file) {
  std::error_code error;
  if (std::filesystem::is_regular_file(folder_or_file, error)) return {folder_or_file};
  std::vector<std::filesystem::path> files;
  std::filesystem::directory_iterator entries(folder_or_file, error);
  if (error)
    throw UserError(fmt::format("there is no wisdom here: {}; name a folder or a file that `ergotune export --format "
                                "wisdom` or `ergotune tune --wisdom` wrote",
                                error.message()),
                    {folder_or_file.string(), 0, 0});
  for (const auto& entry : entries)
    if (entry.path().extension() == ".wisdom" && entry.is_regular_file(error)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::size_t add_to_wisdom(const std::filesystem::path& folder, const std::string& kernel,
                          const std::vector<WisdomRecord>& records) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UserError(fmt::format("this folder cannot be made: {}", error.message()), {folder.string(), 0, 0});
  const std::filesystem::path file = wisdom_file(folder, kernel);
  FileLock lock(folder / ".wisdom.lock");
  take(lock, folder);
  std::string text;
  Wisdom known;
  if (auto found = read_file(file)) {
    text = std::move(*found);
    // completes an unterminated last line, which would otherwise absorb the first new one
    if (!text.empty() && !text.ends_with('\n')) text += '\n';
    known = parse_wisdom(text, file.string());
  } else if (errno != ENOENT) {
    throw UserError(fmt::format("cannot be read, so nothing is added to it: {}", std::strerror(errno)),
                    {file.string(), 0, 0});
  }
  if (known.other_version)
    throw UserError(
        "another version of ergotune has written this, and what is added would be read by neither; name another "
        "folder, or move this file away",
        {file.string(), 0, 0});
  const std::string header = to_text({kernel, {}, {}});
  const bool ours = text.find("\"ergotune_wisdom\"") != std::string::npos;
  if (!ours && text.find("\"tunable_parameters\"") != std::string::npos)
    throw UserError(
        "this is Kernel Launcher's wisdom, which it would not read any more with records of ours in it; name another "
        "folder, and `ergotune wisdom merge` brings both together",
        {file.string(), 0, 0});
  if (!ours) text += header;  // a new file, or one with a damaged header
  std::map<decltype(key_of(WisdomRecord())), WisdomRecord> latest;
  for (const WisdomRecord& record : known.records) latest[key_of(record)] = record;
  std::size_t added = 0;
  for (const WisdomRecord& record : records) {
    const auto [before, fresh] = latest.try_emplace(key_of(record), record);
    if (!fresh) {
      if (before->second == record || before->second.tuned_at > record.tuned_at) continue;
      remove_replaced(text, record, header);
      before->second = record;
    }
    text += to_json_line(record) + "\n";
    ++added;
  }
  if (added == 0 && ours) return 0;
  write_named_file(file, text);
  synchronise(file);
  return added;
}

}  // namespace ergotune
