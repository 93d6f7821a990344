// Drives the ergotune command from outside, in a folder of its own.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/process/process.hpp"
#include "temporary_folder.hpp"

namespace ergotune::test {

using ergotune::TemporaryFolder;

/// Path of the command under test.
std::string ergotune_program();
/// Runs the command in `folder`, with its cache below it.
ProcessResult ergotune(const TemporaryFolder& folder, std::vector<std::string> arguments, double timeout = 120);
/// Starts it and leaves it running, its output in files "out" and "err" of the folder.
ChildProcess start_ergotune(const TemporaryFolder& folder, std::vector<std::string> arguments);
/// The contents of a file; empty if it cannot be read.
std::string text_of(const std::filesystem::path& file);
/// Waits until `condition` holds; false if it does not within `seconds`.
bool eventually(const std::function<bool()>& condition, double seconds = 60);
/// Standard output as one JSON document; fails the test with the command's words when it is none.
nlohmann::json json_of(const ProcessResult& result);

/// Calls of the system fail (tests/fakes/faults says which) in every program that is started while this lives.
class Fault {
 public:
  Fault(const TemporaryFolder& folder, const std::string& what);
  ~Fault();
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;
  /// How many calls have failed so far.
  int fired() const;

 private:
  std::filesystem::path log_;
};
/// `all` with ERGOTUNE_ALL_FAULTS, else every `step`th.
std::vector<std::string> chosen_faults(const std::vector<std::string>& all, std::size_t step);

/// The search rows of a store's only session (no rounds of a confirmation): configuration as text -> statuses, one per
/// row.
std::map<std::string, std::vector<std::string>> stored_rows(const std::filesystem::path& store);
/// What SQLite's integrity check says: "ok".
std::string integrity(const std::filesystem::path& store);
/// Whether any process runs that has `word` in its command line.
bool some_process_mentions(const std::string& word);

/// A host C problem whose parameter `mode` has a value for every way to fail; "endless" never ends.
std::string faults_problem();
/// A small OpenCL problem of 60 valid configurations.
std::string small_problem();
/// A host C problem of `count` configurations with one parameter; compiles in tens of milliseconds.
std::string counting_problem(int count);
/// A problem of `count` configurations for simulated GPUs: nothing is compiled.
std::string simulated_problem(int count);
/// True where an OpenCL device is there; tests skip otherwise.
bool has_opencl();

}  // namespace ergotune::test
