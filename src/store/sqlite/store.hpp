// The store of results: an SQLite database in WAL mode; each measurement is a row, stored durably when it finishes. A
// Store must not be used by several threads at once; several processes may have the same file open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/objective.hpp"
#include "ergotune/result.hpp"
#include "ergotune/space.hpp"
#include "store/certainty.hpp"

namespace ergotune {

class FileLock;

/// The session key: what determines a session's results. Sessions with equal hashes share rows: a changed kernel never
/// reuses old results, an unchanged one resumes.
struct SessionKey {
  std::string problem;           ///< name for people; not part of the key
  std::string problem_document;  ///< identity_of(problem)
  std::string device;            ///< name and id
  std::string device_identity;   ///< UUID or name, driver version, compiler
  std::string conditions;        ///< measurement settings: sensors, precision, cold cache, "replay of ..."
  Provenance provenance = Provenance::measured;
  std::string hash() const;
};

/// One invocation that worked on a session: its objective, its progress, and how it ended.
struct RunInfo {
  std::int64_t id = 0, session = 0;
  double started_at = 0;  ///< s since the epoch
  double ended_at = 0;    ///< s since the epoch; 0 while it goes on, or if it was killed
  ObjectiveSpec objective;
  std::string strategy, plan;
  std::uint64_t seed = 0;
  std::string phase;  ///< "searching", "confirming", or a stage of a plan
  std::string ended;  ///< why it ended; empty while ended_at is 0
  /// Number of confirmation repeats of a finished confirmation; 0: none (yet).
  int confirmed = 0;
  /// Certainty of that confirmation's winner; nullopt: no rivals, or confirmed by an older version.
  std::optional<Certainty> certainty;
};

struct SessionInfo {
  std::int64_t id = 0;
  std::string problem, device, device_identity, conditions, identity_hash;
  Provenance provenance = Provenance::measured;
  double created_at = 0;  ///< s since the epoch
  double worked_at = 0;   ///< s since the epoch: start of the last run; created_at if there is no run
  std::vector<std::string> parameter_names;
  /// Objective of the last run; in stores without runs, of the session.
  ObjectiveSpec objective;
  std::uint64_t rows = 0;  ///< with repeats of the confirmation and baseline runs
  std::uint64_t runs = 0;
  /// Set by sessions(): the constants in which the sessions of this problem differ (`tune --set`).
  Constants constants;
};

/// The kind of a row: a measurement of the search; one confirmation repeat; the mean of these repeats, with the metrics
/// computed from it; a baseline run.
enum class RowKind { search, confirmation, confirmed, reference };
std::string to_string(RowKind kind);

struct StoredRow {
  std::int64_t id = 0;
  Configuration configuration;
  Measurement measurement;
  RowKind kind = RowKind::search;
  std::int64_t run = 0;  ///< RunInfo::id; 0: unknown
  std::string stage;     ///< "plan/stage"; empty outside of plans
  std::string gpu;       ///< device that measured it, if there are several: UUID or id; empty: the session's device
  /// Set by results(): the objective of the run that measured it for its search; nullopt: unknown.
  std::optional<ObjectiveSpec> searched_for;
  /// Set by results(): number of confirmation repeats whose mean `measurement` is; 0: measured once.
  int rounds = 0;
  /// Set by results(): the objective of the confirmation.
  std::optional<ObjectiveSpec> confirmed_for;
  /// Set by results() for confirmed rows: the certainty of the confirmation's winner.
  std::optional<Certainty> certainty;
  /// Set by results() for confirmed rows: the measurement of the search.
  std::optional<Measurement> searched;
};

/// Selects the current row of each configuration from all rows of a session, in the order of their first rows:
/// - the last `confirmed` row, unless a search row follows it (it was retried), which then counts;
/// - else the best of the search rows: ok before not_converged before failures; the last of equal ones.
std::vector<StoredRow> current_rows(std::vector<StoredRow> rows, const std::vector<RunInfo>& runs);

/// Locks a stored session for this process: two processes would measure everything twice and would each attribute a
/// crash to the configuration that the other runs. An advisory lock (flock) on a file beside the store. The system
/// releases it when the process ends in any way, so that a killed session blocks no other.
class SessionLock {
 public:
  /// Throws UserError that names the process holding the lock.
  SessionLock(const std::filesystem::path& store, std::int64_t session);
  ~SessionLock();
  SessionLock(const SessionLock&) = delete;
  SessionLock& operator=(const SessionLock&) = delete;

 private:
  std::unique_ptr<FileLock> lock_;
};

class Store {
 public:
  /// Opens or creates a store; throws UserError if the file is not a store or has a newer schema.
  static Store open(const std::filesystem::path& file, bool read_only = false);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// Finds the session with this key, or creates it. `document`: the whole problem (serialise()), stored so that
  /// reports and exports need no other file.
  std::int64_t session(const SessionKey& identity, const std::vector<std::string>& parameter_names,
                       const std::string& objective, const std::string& environment_json, const std::string& document);
  std::vector<SessionInfo> sessions() const;
  std::optional<SessionInfo> session_info(std::int64_t id) const;
  std::string environment(std::int64_t session) const;
  std::string document(std::int64_t session) const;
  /// Adds a JSON document to the session's environment, for the report.
  void note(std::int64_t session, const std::string& key, const std::string& json);

  /// Records that a configuration is about to run, so that unfinished() returns it after a crash of the session.
  /// `ended`, if given: the previous configuration on the same device, which has ended although its row is not stored
  /// yet; its record is removed in the same transaction.
  void record_start(std::int64_t session, const Configuration& configuration, const Configuration* ended = nullptr);
  std::vector<Configuration> unfinished(std::int64_t session) const;
  /// Called when a session is resumed after its process died: counts a death for each unfinished configuration and
  /// marks it as not running. Returns the configurations with two or more deaths: one may have another cause (a kill, a
  /// power cut), two are attributed to the configuration.
  std::vector<Configuration> note_deaths(std::int64_t session);
  /// Removes the record of record_start(): the configuration did not finish because the session ended cleanly (Ctrl-C,
  /// a spent budget). No effect if there is no record.
  void withdraw(std::int64_t session, const Configuration& configuration);
  /// Adds a row and removes the record of record_start(). When this returns, the row survives the death of this
  /// process; within a tenth of a second it is on the disk and survives a crash of the machine.
  void add(std::int64_t session, const Configuration& configuration, const Measurement& measurement);
  /// Adds a row with all its fields, except its id and session-wide fields, which the store sets.
  void add(std::int64_t session, const StoredRow& row);
  /// Replaces the metrics of rows: the metrics of a problem may change within a session.
  void set_metrics(const std::vector<StoredRow>& rows);
  /// Adds many rows in one transaction (for imports): all of them, or none if it throws.
  void add_all(std::int64_t session, const std::vector<StoredRow>& rows);
  /// The number of configurations that have a row.
  std::uint64_t configurations(std::int64_t session) const;
  /// All rows, in the order of their insertion.
  std::vector<StoredRow> rows(std::int64_t session) const;
  /// current_rows() of the session.
  std::vector<StoredRow> results(std::int64_t session) const;

  /// Begins a run and returns its id. Of `info`, objective, strategy, plan, seed and phase are used.
  std::int64_t begin_run(std::int64_t session, const RunInfo& info);
  void set_phase(std::int64_t run, const std::string& phase);
  /// Records that the run's confirmation is complete, so that its repeats count.
  void set_confirmed(std::int64_t run, int rounds);
  void set_certainty(std::int64_t run, const Certainty& certainty);
  void end_run(std::int64_t run, const std::string& why);
  std::vector<RunInfo> runs(std::int64_t session) const;
  /// Returns when all rows added so far are on the disk. The destructor does the same.
  void flush();
  const std::filesystem::path& file() const;
  /// Damaged rows that were left out so far, and how to remove them.
  std::vector<std::string> warnings() const;

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Returns, once, the stores that were found removed or replaced when this process closed them: its results are not in
/// them.
std::vector<std::filesystem::path> take_lost_stores();

/// Whether a file is a store, by its first bytes.
bool is_store(const std::filesystem::path& file);
/// Whether a store exists and is complete: false if there is no file, and for the empty database that exists while a
/// session creates a store. Throws UserError for a file that cannot be a store.
bool is_created(const std::filesystem::path& file);
/// The session with this number; 0: the session worked on last. Throws UserError if there is none.
SessionInfo pick_session(const Store& store, std::int64_t session = 0);

}  // namespace ergotune
