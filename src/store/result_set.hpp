// The results of one session, from a store or a recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ergotune/result.hpp"
#include "ergotune/space.hpp"
#include "store/formats/recording.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {

struct FailureGroup {
  Status status = Status::runtime_error;
  std::string message;  ///< complete message of its first configuration
  std::size_t count = 0;
  std::size_t first = 0;  ///< number passed to add() for its first failure
};

/// Two failures belong to one group if their messages differ only in numbers and names of temporary files, which differ
/// for every configuration.
class FailureGroups {
 public:
  void add(std::size_t number, Status status, const std::string& message);
  /// The most frequent first.
  std::vector<FailureGroup> list() const;

 private:
  std::vector<FailureGroup> groups_;
  std::unordered_map<std::string, std::size_t> place_;  ///< in groups_, by kind
};

/// The most informative line of a compiler's or driver's output: the first that contains "error", else the first
/// non-empty one. (gcc begins with "In function 'f':" and ends with notes.)
std::string most_informative_line(std::string_view description);

/// The results of one session, from any source.
struct ResultSet {
  std::string problem;  ///< name of the problem
  std::string kernel;   ///< name of the kernel function; the problem's name if it is unknown
  std::string device;
  std::string device_name, device_id;  ///< the parts of `device`; the id equals the name if only that is known
  std::filesystem::path store;         ///< empty: not from a store
  std::int64_t session = 0;            ///< id in the store
  std::vector<SessionInfo> sessions;   ///< of the store; filled by load_results()
  std::optional<std::uint64_t> space;  ///< number of configurations in the search space; nullopt: not recorded
  std::string objective = "time";      ///< what was optimised, by name
  ObjectiveSpec goal;                  ///< the same as the user wrote it
  std::string environment;             ///< JSON; empty: unknown
  Provenance provenance = Provenance::measured;
  Constants constants;   ///< of the problem; they include the tuned size
  Constants size;        ///< those of them in which the sessions of the problem in the store differ
  Constants attributes;  ///< of the problem: Problem::all_attributes()
  /// With all values that occur.
  std::vector<Parameter> parameters;
  std::vector<Metric> metrics;
  std::vector<StoredRow> rows;
  std::vector<std::string> notes;     ///< on the problem, kept with the session: parameters that change nothing
  std::vector<std::string> warnings;  ///< notes on damaged rows that were left out
};

/// The results of a session of a store, one row per configuration; `session` 0: the latest. Throws UserError if there
/// is no such session.
ResultSet result_set(const Store& store, std::int64_t session = 0);
/// The results of a recording, which contains means and standard errors but no single times.
ResultSet result_set(const Recording& recording);

/// Whether a configuration is the default one.
bool is_default(const std::vector<Parameter>& parameters, const Configuration& configuration);

}  // namespace ergotune
