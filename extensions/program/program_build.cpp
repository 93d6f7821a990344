#include "program/program_build.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/process/file_lock.hpp"
#include "ergotune/error.hpp"
#include "evaluate/live/machine_fault.hpp"
#include "program/program_output.hpp"

namespace ergotune {
namespace {

namespace fs = std::filesystem;

void append(std::string& text, const std::string& part) { text += fmt::format("{}:", part.size()) + part; }

/// The file beside a build's folder that marks the build as complete.
fs::path mark_of(const fs::path& folder) { return folder.string() + ".done"; }

void touch(const fs::path& file) {
  std::error_code error;
  fs::last_write_time(file, fs::file_time_type::clock::now(), error);
}

constexpr std::string_view kPrefix = "ergotune-program-";

/// Removes folders left by killed processes.
void remove_stale(const std::filesystem::path& top) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(top, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    long pid = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), pid);
    if (pid > 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH)
      std::filesystem::remove_all(entry.path(), error);
  }
}

}  // namespace

ProgramTemplates::ProgramTemplates(const Constants& constants, const std::vector<Parameter>& parameters,
                                   const Configuration& configuration) {
  for (const auto& [name, value] : constants) values_.insert_or_assign(std::string(name), value);
  for (std::size_t i = 0; i < std::min(parameters.size(), configuration.size()); ++i)
    values_.insert_or_assign(parameters[i].name, configuration[i]);
}

std::string ProgramTemplates::text(const Template& text) const {
  return text.render([this](std::string_view name) -> const Value* {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
  });
}

std::vector<std::string> ProgramTemplates::texts(const std::vector<Template>& list) const {
  std::vector<std::string> strings;
  for (const Template& item : list) strings.push_back(text(item));
  return strings;
}

std::map<std::string, std::string> ProgramTemplates::texts(const std::map<std::string, Template>& map) const {
  std::map<std::string, std::string> strings;
  for (const auto& [name, item] : map) strings[name] = text(item);
  return strings;
}

void ProgramTemplates::write(const std::vector<ProgramFile>& files, const std::filesystem::path& folder) const {
  for (const ProgramFile& file : files) {
    const std::filesystem::path place = folder / file.name;
    std::error_code error;
    std::filesystem::create_directories(place.parent_path(), error);
    write_named_file(place, text(file.text));
  }
}

ScratchFolder::ScratchFolder() {
  std::error_code error;
  std::filesystem::path top = std::filesystem::temp_directory_path(error);
  if (error) top = "/tmp";
  remove_stale(top);
  std::string name = (top / fmt::format("{}{}-XXXXXX", kPrefix, ::getpid())).string();
  if (!::mkdtemp(name.data()))
    throw UserError(fmt::format("no temporary folder can be made in {}: {}; TMPDIR names another place", top.string(),
                                std::strerror(errno)));
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

std::string ProgramBuilds::contents(const fs::path& file) {
  const auto [entry, fresh] = hashes_.try_emplace(file.string());
  if (fresh) entry->second = content_hash_of_file(file).value_or("");
  return entry->second;
}

/// The key of a build: the text of all its steps, and the contents of the files that they name.
std::string ProgramBuilds::key_of(const ProgramTemplates& texts) {
  std::string all;
  std::error_code error;
  for (const auto& step : program_.build) {
    const std::vector<std::string> arguments = texts.texts(step);
    append(all, std::to_string(arguments.size()));
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      append(all, arguments[i]);
      const fs::path file = i == 0 ? find_program(arguments[i], beside_) : beside_ / arguments[i];
      if (fs::is_regular_file(file, error)) append(all, contents(file));
    }
  }
  for (const ProgramFile& file : program_.build_files) {
    append(all, file.name);
    append(all, texts.text(file.text));
  }
  for (const fs::path& source : program_.sources) {
    if (!fs::is_directory(source, error)) {
      append(all, contents(source));
      continue;
    }
    std::vector<fs::path> files;
    for (const auto& entry :
         fs::recursive_directory_iterator(source, fs::directory_options::skip_permission_denied, error))
      if (entry.is_regular_file(error)) files.push_back(entry.path());
    std::ranges::sort(files);
    for (const fs::path& file : files) append(all, file.lexically_relative(source).string() + contents(file));
  }
  return content_hash(all);
}

/// Throws UserError for failures that affect all configurations: a full disk, a missing compiler.
void ProgramBuilds::throw_machine_fault(std::size_t step, const std::string& name, const std::string& message,
                                        const SupervisedResult& result) const {
  if (const std::string full = full_disk_message(message, "the build"); !full.empty())
    throw UserError(full, program_.place);
  if (result.not_started.empty()) return;
  // A name without a path refers to a program of the system; in the first step, nothing has been built yet.
  const std::string fixed = render_without_configuration(program_.build[step].front(), beside_);
  if (fixed.empty() || (step > 0 && fixed.find('/') != fixed.npos)) return;
  throw UserError(fmt::format("{} cannot be started: {}; install it, or name another", name, result.not_started),
                  program_.place);
}

/// The path of the configuration's program if it is in the build's folder; empty if it is elsewhere.
fs::path ProgramBuilds::built_program(const ProgramTemplates& texts, const fs::path& folder) const {
  const auto needs_run = [](const Template& text) { return std::ranges::count(text.names(), "run") > 0; };
  if (needs_run(program_.command.front()) || (program_.folder && needs_run(*program_.folder))) return {};
  const std::string name = texts.text(program_.command.front());
  if (name.find('/') == name.npos) return {};  // searched in PATH
  const fs::path runs_in = program_.folder ? beside_ / texts.text(*program_.folder) : folder;
  const fs::path program = (runs_in / name).lexically_normal();
  const fs::path inside = program.lexically_relative(folder.lexically_normal());
  return inside.empty() || *inside.begin() == ".." || *inside.begin() == "." ? fs::path() : program;
}

BuildOutcome ProgramBuilds::without_program(const fs::path& program, BuildOutcome outcome) const {
  std::error_code error;
  outcome.status = Status::compile_error;
  outcome.message = fmt::format("the build ended without an error, but {} {}", program.string(),
                                fs::exists(program, error) ? "is not an executable file" : "was not made by it");
  const auto output = output_.find(outcome.folder.string());
  if (output != output_.end() && !output->second.empty()) outcome.message += ":\n" + output->second;
  return outcome;
}

BuildOutcome ProgramBuilds::make(const ProgramTemplates& texts, const fs::path& folder, Supervisor& supervisor) {
  BuildOutcome outcome;
  outcome.folder = folder;
  std::string out, err;
  const double begin = host_seconds();
  texts.write(program_.build_files, folder);
  for (std::size_t i = 0; i < program_.build.size(); ++i) {
    SupervisedRun run;
    run.arguments = texts.texts(program_.build[i]);
    run.folder = folder.string();
    run.time_limit = time_limit_;
    const SupervisedResult result = supervisor.run(run);
    outcome.stopped = result.stopped;
    out += result.out;
    err += result.err;
    if (result.ok()) continue;
    const std::string step = fmt::format("build step {} ({})", i + 1, fmt::join(run.arguments, " "));
    const std::string message = output_tail(result.out, result.err);
    throw_machine_fault(i, step, message, result);
    outcome.status = Status::compile_error;
    if (!result.not_started.empty()) {
      outcome.message = fmt::format("{} cannot be started: {}", step, result.not_started);
    } else if (result.timed_out) {
      outcome.message = fmt::format("{} took more than {:g} s and was ended (compile_time_limit)", step, time_limit_);
    } else if (result.signal != 0) {
      outcome.message = fmt::format("{} ended by signal {}", step, result.signal);
    } else {
      outcome.message = fmt::format("{} ended with exit code {}", step, result.exit_code);
    }
    if (!message.empty()) outcome.message += ":\n" + message;
    break;
  }
  output_[folder.string()] = output_tail(out, err);
  outcome.seconds = host_seconds() - begin;
  return outcome;
}

BuildOutcome ProgramBuilds::build(ProgramTemplates texts, Supervisor& supervisor, const std::atomic<bool>& stopping) {
  // The real folder depends on the key: use a fixed name for it in the key.
  texts.set_folder("folder", beside_);
  texts.set_folder("build", "/build");
  const std::string key = key_of(texts);
  const fs::path folder = cache_ / key;
  texts.set_folder("build", folder);
  const fs::path program = built_program(texts, folder);
  for (const std::string& name : {key, key + program.string()})
    if (const auto failed = failures_.find(name); failed != failures_.end()) return failed->second;
  std::error_code error;
  fs::create_directories(cache_, error);
  if (error)
    throw UserError(fmt::format("the folder for builds {} cannot be made: {}", cache_.string(), error.message()));
  FileLock lock(folder.string() + ".lock");
  std::error_code failure;
  BuildOutcome outcome;
  outcome.folder = folder;
  // Another session may be making it, for any time.
  while (!lock.take(failure)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (!stopping) continue;
    outcome.status = Status::timeout;
    outcome.message = "ended with the session";
    outcome.stopped = true;
    return outcome;
  }
  const auto lacks_program = [&] { return !program.empty() && find_program(program.string(), folder).empty(); };
  if (fs::exists(mark_of(folder), error) && fs::is_directory(folder, error)) {
    if (!lacks_program()) {
      touch(mark_of(folder));
      return outcome;
    }
    // It has the program of another configuration, and building it again would not add this one's.
    if (output_.contains(folder.string())) return failures_[key + program.string()] = without_program(program, outcome);
  }
  fs::remove(mark_of(folder), error);
  fs::remove_all(folder, error);  // left by an interrupted build, or without its program
  fs::create_directories(folder, error);
  if (error)
    throw UserError(fmt::format("the folder for a build {} cannot be made: {}", folder.string(), error.message()));
  try {
    outcome = make(texts, folder, supervisor);
  } catch (...) {
    fs::remove_all(folder, error);
    throw;
  }
  const bool built = outcome.status == Status::ok && !outcome.stopped;
  if (built && !lacks_program()) {
    (void)write_file(mark_of(folder), "");
    return outcome;
  }
  if (built) outcome = without_program(program, outcome);
  fs::remove_all(folder, error);
  if (!outcome.stopped) {
    BuildOutcome& failure_kept = failures_[built ? key + program.string() : key];
    failure_kept = outcome;
    failure_kept.seconds = 0;
  }
  return outcome;
}

void ProgramBuilds::prune() const {
  std::error_code error;
  for (const fs::path& old : left_behind(cache_, "", std::chrono::hours(24 * 30))) {
    if (old.extension() == ".done") {
      fs::remove(old, error);
      fs::remove_all(fs::path(old).replace_extension(), error);
    } else if (!fs::exists(mark_of(old), error)) {
      fs::remove_all(old, error);  // leftovers of interrupted builds: a folder without its mark, a lock
    }
  }
}

}  // namespace ergotune
