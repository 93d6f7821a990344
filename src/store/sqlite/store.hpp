// The results database: SQLite in WAL mode, one durable row per measurement as it happens. One Store is used by one
// thread at a time; several processes may have the same file open.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "ergotune/result.hpp"
#include "ergotune/space.hpp"
#include "store/certainty.hpp"

namespace ergotune {

class FileLock;

/// What determines a session's results. Two sessions with the same identity hash share rows: a changed kernel never
/// reuses old results, an unchanged one resumes.
struct SessionIdentity {
  std::string problem;           ///< name, for people: not part of it
  std::string problem_document;  ///< identity_of(problem)
  std::string device;            ///< name and id
  std::string device_identity;   ///< uuid or name, driver version, compiler identity
  std::string conditions;        ///< what is measured and how: sensors, precision, cold cache, "replay of ..."
  Provenance provenance = Provenance::measured;
  std::string hash() const;
};

/// One invocation that worked on a session: what was wanted, how far it is, how it ended.
struct RunInfo {
  std::int64_t id = 0, session = 0;
  double started_at = 0;  ///< s since the epoch
  double ended_at = 0;    ///< 0 while it goes on, or when it died
  ObjectiveSpec objective;
  std::string strategy, plan;
  std::uint64_t seed = 0;
  std::string phase;  ///< "searching", "confirming", a stage of a plan
  std::string ended;  ///< why it stopped; empty as long as ended_at is 0
  /// Rounds of a finished confirmation; 0: it has confirmed nothing (yet).
  int confirmed = 0;
  /// Of the winner of that confirmation; nullopt: it had no rivals, or an older version confirmed it.
  std::optional<Certainty> certainty;
};

struct SessionInfo {
  std::int64_t id = 0;
  std::string problem, device, conditions, identity_hash;
  Provenance provenance = Provenance::measured;
  double created_at = 0;  ///< s since the epoch
  double worked_at = 0;   ///< when the last run began; created_at where no run is known
  std::vector<std::string> parameter_names;
  /// What the last run wanted; of stores without runs what the first did.
  ObjectiveSpec objective;
  std::uint64_t rows = 0;
  std::uint64_t runs = 0;
};

/// What a row is: measured on the way to the best; a round of the confirmation, side by side with its rivals; the mean
/// of these rounds, with the metrics that follow from it; the default on one of several GPUs, which are compared by
/// it.
enum class RowKind { search, confirmation, confirmed, reference };
std::string to_string(RowKind kind);

struct StoredRow {
  std::int64_t id = 0;
  Configuration configuration;
  Measurement measurement;
  RowKind kind = RowKind::search;
  std::int64_t run = 0;  ///< RunInfo::id; 0 where none is known
  std::string stage;     ///< "plan/stage"; empty outside of plans
  std::string gpu;       ///< which device of several measured it: uuid or id; empty where it is the session's
  /// Of results(): the rounds of confirmation that the measurement is the mean of; 0: measured once.
  int rounds = 0;
  /// Of results(): what it was confirmed for.
  std::optional<ObjectiveSpec> confirmed_for;
  /// Of results(), of what was confirmed: what the confirmation says of its winner.
  std::optional<Certainty> certainty;
  /// Of results(), where it was confirmed: what it read when it was searched.
  std::optional<Measurement> searched;
};

/// Of every row of a session, the one that counts for each configuration, in the order of their first:
/// - the last that is `confirmed`, unless it was searched anew since (a failure that was tried again);
/// - else of several one that is ok before one that has not converged before a failure; of failures the last.
std::vector<StoredRow> counting_rows(std::vector<StoredRow> rows, const std::vector<RunInfo>& runs);

/// Holds a stored session for this process: two that measure it at once would measure everything twice, and
/// each would take what the other runs for the culprit of a crash. An advisory lock (flock) on a file beside
/// the store; the system lets go of it when the process ends in any way, so that a killed session blocks
/// nobody.
class SessionLock {
 public:
  /// Throws UserError that names the process that holds the session.
  SessionLock(const std::filesystem::path& store, std::int64_t session);
  ~SessionLock();
  SessionLock(const SessionLock&) = delete;
  SessionLock& operator=(const SessionLock&) = delete;

 private:
  std::unique_ptr<FileLock> lock_;
};

class Store {
 public:
  /// Opens or creates; throws UserError when the file is not ours or of a newer schema.
  static Store open(const std::filesystem::path& file, bool read_only = false);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// Finds the session with this identity, or begins it. `document` is the whole problem (serialise()), kept so that
  /// reports and exports need no other file.
  std::int64_t session(const SessionIdentity& identity, const std::vector<std::string>& parameter_names,
                       const std::string& objective, const std::string& environment_json, const std::string& document);
  std::vector<SessionInfo> sessions() const;
  std::optional<SessionInfo> session_info(std::int64_t id) const;
  std::string environment(std::int64_t session) const;
  std::string document(std::int64_t session) const;
  /// Puts a JSON document beside what a session's environment holds already, for the report.
  void note(std::int64_t session, const std::string& key, const std::string& json);

  /// Writes down that a configuration is about to run: after a crash of the whole session, unfinished() says who was
  /// running.
  /// `ended`, when given: what was begun before on the same slot has ended, though its row is not here yet; in one go.
  void note_running(std::int64_t session, const Configuration& configuration, const Configuration* ended = nullptr);
  std::vector<Configuration> unfinished(std::int64_t session) const;
  /// The session was found dead: what is unfinished has died once more, and is not unfinished until it begins again.
  /// Returns what has died twice or more: once may be anybody's fault (a kill, a power cut), twice is its own.
  std::vector<Configuration> note_deaths(std::int64_t session);
  /// Takes begin() back: the configuration did not run to its end because the session was ended cleanly (Ctrl-C, a
  /// spent budget), which is no fault of its own. Nothing happens when it was not begun.
  void withdraw(std::int64_t session, const Configuration& configuration);
  /// Also ends begin(). When it returns, the row survives the death of this process in any way; it is on its way to
  /// the disk, which it reaches within a tenth of a second, so that it survives the death of the machine as well.
  void add(std::int64_t session, const Configuration& configuration, const Measurement& measurement);
  /// The same with all that is known of the row (its id and session-wide fields are filled in by the store).
  void add(std::int64_t session, const StoredRow& row);
  /// Puts other metrics in the place of a row's: the problem's metrics may change without a new session.
  void set_metrics(const std::vector<StoredRow>& rows);
  /// Adds many rows in one transaction (imports): all of them or, when it throws, none.
  void add_all(std::int64_t session, const std::vector<StoredRow>& rows);
  /// Every row, in the order they were added.
  std::vector<StoredRow> rows(std::int64_t session) const;
  /// counting_rows() of the session.
  std::vector<StoredRow> results(std::int64_t session) const;

  /// Begins a run; its id. `info`: objective, strategy, plan, seed, phase.
  std::int64_t begin_run(std::int64_t session, const RunInfo& info);
  void set_phase(std::int64_t run, const std::string& phase);
  /// The run's confirmation is complete: from now on its rounds count.
  void set_confirmed(std::int64_t run, int rounds);
  void set_certainty(std::int64_t run, const Certainty& certainty);
  void end_run(std::int64_t run, const std::string& why);
  std::vector<RunInfo> runs(std::int64_t session) const;
  /// Returns when every row added so far is on the disk. The destructor does the same.
  void flush();
  /// "ok", or what SQLite finds wrong with the file (it reads all of it).
  std::string integrity() const;
  const std::filesystem::path& file() const;
  /// Damaged rows that were left out so far: which, and how to remove them.
  std::vector<std::string> warnings() const;
  /// False when the file was removed or replaced since it was opened: what is written now is lost.
  bool is_there() const;

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Stores that were removed or replaced while this process wrote them, as found when they were closed: their results
/// are lost.
std::vector<std::filesystem::path> take_lost_stores();

/// True for a results database (by its first bytes).
bool is_store(const std::filesystem::path& file);
/// False where no file is, and for the empty database that a store is for a moment while a session creates it. Throws
/// UserError for a file that cannot be a store.
bool is_created(const std::filesystem::path& file);
/// The session with this number; 0 means the latest. Throws UserError when there is none.
SessionInfo pick_session(const Store& store, std::int64_t session = 0);

}  // namespace ergotune
