#include "power/guardian/journal.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/hash.hpp"
#include "ergotune/error.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;
constexpr std::size_t kMaxSteps = 4096;  // a machine with 1,000 CPUs has some 3,000 cpufreq files

Json to_json(const Journal& journal) {
  Json steps = Json::array();
  for (const auto& step : journal.steps) {
    Json entry{{"kind", step.kind}, {"target", step.target}, {"value", step.value}};
    if (step.quantity) entry["quantity"] = to_string(*step.quantity);
    steps.push_back(std::move(entry));
  }
  return Json{{"format", "ergotune-journal"},
              {"version", kVersion},
              {"device", journal.device},
              {"reopen_id", journal.reopen_id},
              {"device_key", journal.device_key},
              {"boot_id", journal.boot_id},
              {"pid", journal.pid},
              {"start_ticks", journal.start_ticks},
              {"command", journal.command},
              {"since", journal.since},
              {"steps", std::move(steps)}};
}

// Returns the checksum of the document without its checksum, printed in a canonical form.
std::string checksum(const Json& document) {
  return content_hash(document.dump(-1, ' ', true, Json::error_handler_t::replace));
}

template <class T>
T member(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) throw Error(fmt::format("\"{}\" is missing", name));
  bool fits{};
  if constexpr (std::is_same_v<T, std::string>)
    fits = found->is_string();
  else if constexpr (std::is_floating_point_v<T>)
    fits = found->is_number();
  else
    fits = found->is_number_integer();
  if (!fits) throw Error(fmt::format("\"{}\" has the wrong type", name));
  return found->get<T>();
}

constexpr off_t kMaxFile = 4 << 20;

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { ::close(descriptor_); }
  int get() const { return descriptor_; }
  bool ok() const { return descriptor_ >= 0; }
  int close() { return ::close(std::exchange(descriptor_, -1)); }

 private:
  int descriptor_;
};

[[noreturn]] void fail(const std::string& what, const std::filesystem::path& path) {
  throw Error(fmt::format("{} {}: {}", what, path.string(), std::strerror(errno)));
}

void sync_folder(const std::filesystem::path& folder) {
  File file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.ok() || ::fsync(file.get()) != 0) fail("cannot make durable", folder);
}

void write_all(int descriptor, std::string_view text, const std::filesystem::path& path) {
  while (!text.empty()) {
    const ssize_t n = TEMP_FAILURE_RETRY(::write(descriptor, text.data(), text.size()));
    if (n < 0) fail("cannot write", path);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string read_all(int descriptor, const std::filesystem::path& path) {
  std::string text;
  char buffer[8192];
  while (const ssize_t n = TEMP_FAILURE_RETRY(::read(descriptor, buffer, sizeof buffer))) {
    if (n < 0) fail("cannot read", path);
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > static_cast<std::size_t>(kMaxFile)) throw Error(path.string() + " is too large for a journal");
  }
  return text;
}

// A device key may contain characters that are not allowed in file names.
std::string file_stem(const std::string& device_key) { return content_hash(device_key); }

}  // namespace

std::string format_journal(const Journal& journal) {
  Json document = to_json(journal);
  document["checksum"] = checksum(document);
  return document.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

Journal parse_journal(const std::string& text) {
  Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) throw Error("it is not a JSON object");
  if (!document.contains("format") || document["format"] != "ergotune-journal")
    throw Error("it is not a journal of ergotune");
  if (const int version = member<int>(document, "version"); version != kVersion)
    throw Error(fmt::format("its version is {}; this ergotune reads version {}", version, kVersion));
  const std::string stated = member<std::string>(document, "checksum");
  document.erase("checksum");
  if (checksum(document) != stated) throw Error("its checksum is wrong: it was cut or changed");
  Journal journal;
  journal.device = member<std::string>(document, "device");
  journal.reopen_id = member<std::string>(document, "reopen_id");
  journal.device_key = member<std::string>(document, "device_key");
  journal.boot_id = member<std::string>(document, "boot_id");
  journal.pid = member<pid_t>(document, "pid");
  journal.start_ticks = member<std::uint64_t>(document, "start_ticks");
  journal.command = member<std::string>(document, "command");
  journal.since = member<double>(document, "since");
  const auto steps = document.find("steps");
  if (steps == document.end() || !steps->is_array()) throw Error("\"steps\" is missing");
  if (steps->size() > kMaxSteps) throw Error("it has too many steps");
  for (const auto& entry : *steps) {
    if (!entry.is_object()) throw Error("a step is not an object");
    RestoreStep step{member<std::string>(entry, "kind"), member<std::string>(entry, "target"),
                     member<std::string>(entry, "value")};
    if (entry.contains("quantity")) {
      step.quantity = control_quantity_from(member<std::string>(entry, "quantity"));
      if (!step.quantity) throw Error("a step has an unknown quantity");
    }
    journal.steps.push_back(std::move(step));
  }
  return journal;
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

namespace {
// Fields of /proc/<pid>/stat after the parenthesised name: state is the first, start time the 20th.
bool read_stat(pid_t pid, char& state, std::uint64_t& start_ticks) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text)) return false;
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 1; fields >> field; ++i) {
    if (i == 1) state = field[0];
    if (i == 20) {
      start_ticks = std::strtoull(field.c_str(), nullptr, 10);
      return true;
    }
  }
  return false;
}
}  // namespace

std::uint64_t process_start_ticks(pid_t pid) {
  char state = 0;
  std::uint64_t ticks = 0;
  return read_stat(pid, state, ticks) ? ticks : 0;
}

bool process_alive(pid_t pid, std::uint64_t start_ticks) {
  char state = 0;
  std::uint64_t ticks = 0;
  return read_stat(pid, state, ticks) && ticks == start_ticks && state != 'Z' && state != 'X';
}

StateFolder StateFolder::open(const std::filesystem::path& folder) {
  const auto advice = "; give a folder of your own with ERGOTUNE_STATE_DIR";
  std::error_code code;
  std::filesystem::create_directories(folder.parent_path(), code);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    throw UserError(
        fmt::format("cannot make the state folder {}: {}{}", folder.string(), std::strerror(errno), advice));
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0)
    throw UserError(fmt::format("cannot look at the state folder {}: {}", folder.string(), std::strerror(errno)));
  if (!S_ISDIR(info.st_mode))
    throw UserError(fmt::format("the state folder {} is a link or no folder{}", folder.string(), advice));
  if (info.st_uid != ::geteuid())
    throw UserError(fmt::format("the state folder {} belongs to user {}, not to {}{}", folder.string(), info.st_uid,
                                ::geteuid(), advice));
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    throw UserError(
        fmt::format("others can write to the state folder {} (mode {:o}); journals are replayed, so only its owner "
                    "may: chmod go-w {}",
                    folder.string(), info.st_mode & 07777, folder.string()));
  return StateFolder(folder);
}

std::filesystem::path StateFolder::journal_file(const std::string& key) const {
  return path_ / (file_stem(key) + ".journal");
}

std::filesystem::path StateFolder::lock_file(const std::string& key) const {
  return path_ / (file_stem(key) + ".lock");
}

std::vector<std::filesystem::path> StateFolder::journal_files() const {
  std::vector<std::filesystem::path> files;
  std::error_code code;
  for (std::filesystem::directory_iterator it(path_, code), end; !code && it != end; it.increment(code))
    if (it->path().extension() == ".journal") files.push_back(it->path());
  std::ranges::sort(files);
  return files;
}

void StateFolder::write(const Journal& journal) const {
  const auto file = journal_file(journal.device_key);
  auto temporary = file;
  temporary += ".new";
  try {
    File out(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!out.ok()) fail("cannot write the journal", temporary);
    write_all(out.get(), format_journal(journal), temporary);
    if (::fsync(out.get()) != 0) fail("cannot make the journal durable", temporary);
    if (out.close() != 0) fail("cannot close the journal", temporary);
    if (::rename(temporary.c_str(), file.c_str()) != 0) fail("cannot put the journal in place", file);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(path_);
}

std::optional<Journal> StateFolder::read(const std::filesystem::path& file) const {
  File in(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!in.ok()) {
    if (errno == ENOENT) return std::nullopt;
    fail("cannot open the journal", file);
  }
  struct stat info {};
  if (::fstat(in.get(), &info) != 0) fail("cannot look at the journal", file);
  if (!S_ISREG(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    throw Error(file.string() + " is not a plain file of this user that only this user can write");
  try {
    return parse_journal(read_all(in.get(), file));
  } catch (const Error& error) {
    throw Error(fmt::format("the journal {} is damaged: {}", file.string(), error.what()));
  }
}

void StateFolder::clear(const std::filesystem::path& file) const {
  if (::unlink(file.c_str()) != 0 && errno != ENOENT) fail("cannot clear the journal", file);
  sync_folder(path_);
}

void StateFolder::set_aside(const std::filesystem::path& file) const {
  auto aside = file;
  aside += ".damaged";
  if (::rename(file.c_str(), aside.c_str()) != 0) fail("cannot put aside", file);
  sync_folder(path_);
}

std::optional<DeviceLock> DeviceLock::try_take(const StateFolder& folder, const std::string& device_key,
                                               DeviceHolder* holder) {
  const auto path = folder.lock_file(device_key);
  // The lock file is never deleted, since two sessions could then hold two files with the same name.
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) throw UserError(fmt::format("cannot use the lock {}: {}", path.string(), std::strerror(errno)));
  DeviceLock lock(descriptor);
  if (TEMP_FAILURE_RETRY(::flock(descriptor, LOCK_EX | LOCK_NB)) == 0) return lock;
  if (errno != EWOULDBLOCK) throw UserError(fmt::format("cannot lock {}: {}", path.string(), std::strerror(errno)));
  if (holder) {
    *holder = {};
    const auto document = nlohmann::json::parse(read_all(descriptor, path), nullptr, false);
    try {
      holder->pid = document.at("pid").get<pid_t>();
      holder->command = document.at("command").get<std::string>();
      holder->since = document.at("since").get<double>();
      holder->alive = process_alive(holder->pid, document.at("start_ticks").get<std::uint64_t>());
    } catch (const nlohmann::json::exception&) {
      // The holder has locked the file but not yet written its description.
    }
  }
  return std::nullopt;
}

void DeviceLock::name_holder(const DeviceHolder& holder) const {
  const nlohmann::json document{{"pid", holder.pid},
                                {"start_ticks", process_start_ticks(holder.pid)},
                                {"command", holder.command},
                                {"since", holder.since}};
  const std::string text = document.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
  // Only used in a message, so that a failure is ignored.
  if (::ftruncate(descriptor_, 0) == 0) (void)!::pwrite(descriptor_, text.data(), text.size(), 0);
}

DeviceLock::DeviceLock(DeviceLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

DeviceLock& DeviceLock::operator=(DeviceLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

DeviceLock::~DeviceLock() { ::close(descriptor_); }

}  // namespace ergotune
