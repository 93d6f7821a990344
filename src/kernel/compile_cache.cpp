#include "kernel/compile_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/messages/serialise.hpp"
#include "base/process/environment.hpp"
#include "ergotune/error.hpp"
#include "problem/files/includes.hpp"

namespace ergotune {

namespace {

constexpr std::string_view kMagic = "ergotune code 5\n";

void add_part(std::string& text, std::string_view part) {
  text += fmt::format("{}:", part.size());
  text += part;
}

}  // namespace

std::string CompileCache::key(const CompileJob& job, const std::string& compiler_identity) {
  std::string all;
  add_part(all, compiler_identity);
  add_part(all, to_string(job.language));
  add_part(all, job.source);
  add_part(all, hash_of_includes(job.source, job.include_folders, job.options));
  add_part(all, job.function);
  for (const auto& [name, value] : job.defines) {
    add_part(all, name);
    add_part(all, value);
  }
  add_part(all, "options");
  for (const std::string& option : job.options) add_part(all, option);
  add_part(all, "arguments");
  for (const ArgumentSignature& argument : job.arguments) {
    add_part(all, fmt::format("{} {} {} {}", static_cast<int>(argument.kind), to_string(argument.type), argument.bytes,
                              static_cast<int>(argument.access)));
  }
  if (job.disassemble) add_part(all, "disassembled");
  return content_hash(all);
}

std::filesystem::path CompileCache::file_of(const std::string& key) const {
  return folder_ / key.substr(0, 2) / key.substr(2);
}

std::optional<Binary> CompileCache::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const std::filesystem::path file = file_of(key);
  const auto text = read_file(file);
  if (!text || !text->starts_with(kMagic) || text->size() < kMagic.size() + 33) return std::nullopt;
  std::string_view rest = std::string_view(*text).substr(kMagic.size());
  const std::string_view hash = rest.substr(0, 32);
  rest.remove_prefix(33);
  if (content_hash(rest) != hash) return std::nullopt;
  Binary binary;
  try {
    Reader reader(rest);
    reader(binary).end();
  } catch (const FormatError&) {
    return std::nullopt;
  }
  std::error_code ignored;
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now(), ignored);
  return binary;
}

void CompileCache::store(const std::string& key, const Binary& binary) {
  if (folder_.empty()) return;
  const std::string body = Writer()(binary).take();
  const std::filesystem::path file = file_of(key);
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  (void)write_file(file, fmt::format("{}{}\n{}", kMagic, content_hash(body), body));
  // Listing the folder takes some milliseconds: done at the first store, and after each share of the limit.
  written_ += body.size();
  if (limit_ > 0 && (!pruned_ || written_ > limit_ / 32)) {
    prune();
    pruned_ = true;
    written_ = 0;
  }
}

void CompileCache::prune() const {
  if (folder_.empty() || limit_ == 0) return;
  struct Entry {
    std::filesystem::file_time_type used;
    std::uint64_t size = 0;
    std::filesystem::path file;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code failed;
  // Other sessions may store and prune concurrently; files that disappear are not an error.
  for (std::filesystem::recursive_directory_iterator entry(folder_, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::error_code gone;
    if (!entry->is_regular_file(gone) || gone) continue;
    Entry found{entry->last_write_time(gone), 0, entry->path()};
    if (!gone) found.size = entry->file_size(gone);
    if (gone) continue;
    total += found.size;
    entries.push_back(std::move(found));
  }
  if (total <= limit_) return;
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) { return a.used < b.used; });
  const std::uint64_t wanted = limit_ - limit_ / 10;
  for (const Entry& entry : entries) {
    if (total <= wanted) break;
    std::error_code ignored;
    std::filesystem::remove(entry.file, ignored);
    total -= entry.size;
  }
}

std::uint64_t CompileCache::limit_from_environment() {
  const std::string text = environment_variable("ERGOTUNE_CACHE_LIMIT");
  if (text.empty()) return kDefaultLimit;
  double number = -1;
  const char* const end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
  std::string unit(end, text.data() + text.size());
  std::ranges::transform(unit, unit.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (unit.ends_with("IB")) unit.resize(unit.size() - 2);
  if (unit.ends_with("B")) unit.resize(unit.size() - 1);
  const std::size_t place = std::string_view("KMGT").find(unit);  // 0 without a unit, too
  const std::size_t power = unit.empty() ? 0 : place + 1;
  if (!(number >= 0 && number < 1e9) || unit.size() > 1 || place == std::string::npos)
    throw UserError(
        fmt::format("ERGOTUNE_CACHE_LIMIT: \"{}\" is not a size; write 500M, 2GiB, or 0 for no limit", text));
  return static_cast<std::uint64_t>(std::ldexp(number, static_cast<int>(10 * power)));
}

std::filesystem::path CompileCache::default_folder() {
  const auto caches = user_folder("XDG_CACHE_HOME", ".cache");
  return caches.empty() ? caches : caches / "compiled";
}

CachedCompiler::CachedCompiler(std::unique_ptr<Compiler> compiler, std::filesystem::path cache_folder)
    : compiler_(std::move(compiler)), identity_(compiler_->identity()), cache_(std::move(cache_folder)) {}

CachedCompiler::Outcome CachedCompiler::compile(const CompileJob& job) {
  const std::string key = CompileCache::key(job, identity_);
  if (auto known = cache_.find(key)) return {std::move(*known), true};
  Outcome outcome{compiler_->compile(job), false};
  cache_.store(key, outcome.binary);
  return outcome;
}

}  // namespace ergotune
