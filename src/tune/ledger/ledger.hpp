// The ledger: the only path by which results enter a session. It looks up whether a configuration is known; if not, it
// records that the configuration runs, evaluates it, computes metrics, stores the result and passes it to the
// requester. Everything that requests measurements (a strategy's search, a list, a stage of a plan, the clocks for a
// model, confirmation repeats, `measure`) is a Source, and only Ledger::drive() waits for an evaluator.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ergotune/objective.hpp"
#include "evaluate/evaluator.hpp"
#include "store/sqlite/store.hpp"
#include "tune/ledger/device_factors.hpp"
#include "tune/ledger/energy_by_time.hpp"

namespace ergotune {

struct Problem;
class LiveSession;
struct SessionProgress;

/// The current result of one configuration.
struct ConfigurationResult {
  ConfigurationIndex index = 0;
  Measurement measurement;
  /// Whether it was in the store before this run.
  bool resumed = false;
  /// Number of confirmation repeats whose mean `measurement` is; 0: measured once.
  int rounds = 0;
  /// The objective of that confirmation; nullopt: not confirmed.
  std::optional<ObjectiveSpec> confirmed_for;
  /// Certainty of the choice, for the winner of a confirmation.
  std::optional<Certainty> certainty = {};
  /// The search's measurement, if `measurement` is that of a confirmation.
  std::optional<Measurement> searched;
  /// The device that measured it, if there are several; empty: the session's device.
  std::string gpu = {};
  /// No result, because the device was disturbed at every attempt (EvaluationResult). Not stored; measured when it is
  /// requested again.
  bool disturbed = false;
  /// The objective of the earlier run that measured it; nullopt: this run, or unknown.
  std::optional<ObjectiveSpec> searched_for = {};
};

/// A configuration that a source requests, by its index in the ledger's space.
struct ConfigurationRequest {
  ConfigurationIndex index = 0;
  /// A configuration requested as confirmation or reference is measured even if its result is known.
  RowKind kind = RowKind::search;
  /// The GPU that has to measure it; empty: any. In take(): the GPU that measured it.
  std::string gpu = {};
  /// Upper bound for racing (EvaluationRequest).
  double give_up_above = 1e300;
  std::string objective_quantity = "time";
  /// If set, only the resources that the compiled code of this configuration needs are determined. The space need not
  /// contain the configuration, nothing runs or is stored, and `index` is an identifier chosen by the source.
  std::optional<Configuration> resources_of;
  /// Screening (EvaluationRequest). What is known by its time alone is measured again where that is not above.
  double energy_up_to = 1e300;
  /// Before those that wait (EvaluationRequest).
  bool first = false;
  double settle_seconds = 0;  ///< EvaluationRequest
};

/// Supplies the configurations to measure and receives their results.
class Source {
 public:
  virtual ~Source() = default;
  /// Returns up to `room` configurations to measure next. It may return fewer, or none, while it waits for outstanding
  /// results; none without outstanding requests means that it has finished.
  virtual std::vector<ConfigurationRequest> next(std::size_t room) = 0;
  /// Receives the result of one request, metrics included. `fresh`: measured now, not known before. For a confirmation,
  /// `measurement` is that of the single repeat; the ledger's entry is unchanged.
  virtual void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) = 0;
  /// Called before each step. A non-empty reason ends the loop at once and cancels outstanding requests; empty:
  /// continue.
  virtual std::string stop() { return {}; }
};

struct LedgerOptions {
  /// The store for rows; null: rows are not stored.
  Store* store = nullptr;
  std::int64_t session = 0;
  /// Defines metrics and parameters; null: measurements keep the metrics that they have.
  const Problem* problem = nullptr;
  Constants constants;
  /// Computes the metrics of the application (Python) after those of the problem.
  std::function<void(Measurement&, const Configuration&)> further_metrics;
  /// Stored results with these statuses do not count as known; to_retry() lists them.
  std::set<Status> retry;
  const std::atomic<bool>* interrupted = nullptr;
  /// Earlier measurements of this session, if there is no store.
  std::vector<StoredRow> known;
  /// Publishes the session to web pages and receives their requests; null: not published.
  std::shared_ptr<LiveSession> live;
};

/// Holds the known results of one space on one target. Not thread-safe, except for about_to_run().
class Ledger : private RunJournal {
 public:
  /// Reads the results in the store. A configuration that ran when the session died for the second time becomes a
  /// runtime_error; metrics whose definition has changed are recomputed. Holds the session's lock during its lifetime;
  /// throws UserError that names the process holding the lock.
  Ledger(const SearchSpace& space, Evaluator& evaluator, LedgerOptions options);
  /// Cancels outstanding evaluations without recording failures for their configurations.
  ~Ledger() override;
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Evaluates the requests of a source until it has finished (returns an empty string), it stops (returns its reason),
  /// or the user interrupts (returns "interrupted"). Every result passed to Source::take() is in the store by then.
  /// Throws whatever evaluator, store or source throw.
  std::string drive(Source& source);

  const ConfigurationResult* find(ConfigurationIndex index) const;
  /// Moves all results out of the ledger, in the order of order(). Call it after the last drive().
  std::vector<ConfigurationResult> take_entries();
  /// Factors between devices and times, from all baseline runs of the session.
  const DeviceFactors& factors() const { return factors_; }
  /// From now on a result without an energy answers no request that wants one; `guess`: corrected_measurement() models
  /// the energy of what has a time alone.
  void want_energy(bool guess) {
    wants_energy_ = true;
    screens_ = guess;
  }
  const EnergyByTime& energy_by_time() const { return energy_by_time_; }
  /// Rises when levelled() may give other values than before.
  std::size_t revision() const { return factors_.revision() + (screens_ ? energy_by_time_.revision() : 0); }
  /// What is known of it as the mean of the devices would have measured it in the mean of the conditions, metrics
  /// included: for comparing what was measured by several devices, or under another load, or screened. nullopt where
  /// that makes no difference.
  std::optional<Measurement> corrected_measurement(const ConfigurationResult& entry) const;
  /// Known configurations, in the order in which their results arrived.
  const std::vector<ConfigurationIndex>& order() const { return order_; }
  const std::vector<ConfigurationIndex>& to_retry() const { return to_retry_; }
  const SearchSpace& space() const { return space_; }
  Evaluator& evaluator() const { return evaluator_; }
  /// Whether the user interrupted from the terminal, or requested from the web page to stop after the current
  /// configuration.
  bool interrupted() const { return stopped_ || (options_.interrupted && options_.interrupted->load()); }
  /// Returns true once after a web page has requested to end the search and confirm its best.
  bool take_confirm_request() const;
  /// Publishes the progress of the search to web pages.
  void report(const SessionProgress& progress);
  /// Whether the session is published to web pages.
  bool shows() const { return options_.live != nullptr; }

  /// Begins a run in the store, to which later measurements belong. No effect without a store.
  void begin_run(const RunInfo& info);
  /// Records the current phase in the store and for web pages.
  void set_phase(const std::string& phase);
  /// Assigns later rows to this stage of a plan; empty: to no stage.
  void set_stage(std::string stage) { stage_ = std::move(stage); }
  /// Replaces the result of a configuration by the mean of its confirmation repeats, and recomputes its metrics.
  void confirm(ConfigurationIndex index, Measurement mean, int rounds, const ObjectiveSpec& objective,
               const std::string& gpu = {});
  /// Adds a warning to the result of a configuration, in this run only.
  void warn(ConfigurationIndex index, const std::string& warning) {
    entries_.at(index).measurement.warnings.push_back(warning);
  }
  /// Records the certainty that the confirmation computed for its winner.
  void conclude(ConfigurationIndex winner, const Certainty& certainty);
  void end_run(const std::string& why);

  /// Whether an earlier run measured it for another objective than that of begin_run(); of plans, no.
  bool is_of_other_objective(ConfigurationIndex index) const;
  /// Configurations measured by this ledger, without confirmation repeats.
  std::uint64_t evaluated() const { return evaluated_; }
  /// s, by the evaluator's clock.
  double now() const { return evaluator_.now(); }
  /// Configurations known from the store.
  std::uint64_t resumed() const { return resumed_; }
  /// s spent waiting for the evaluator (waited), and s of overhead that the evaluator reports in
  /// Measurement::tuner_seconds (evaluator_overhead_seconds).
  double waited() const { return waited_; }
  /// s without new requests because a web page had paused the session.
  double paused() const { return paused_; }
  double evaluator_overhead_seconds() const { return evaluator_overhead_seconds_; }

 private:
  struct Pending {
    ConfigurationRequest wanted;
    Configuration configuration;
    bool noted = false;  ///< the store has it as running
    double since = 0;    ///< s since the epoch when it began to run
    bool again = false;  ///< second attempt, after a disturbance
  };

  void about_to_run(const EvaluationRequest& request, std::size_t device) override;
  void load();
  /// Adds rows of configurations that the space contains as known, or to to_retry().
  void know(std::vector<StoredRow> rows);
  void note_dead();
  void compute_metrics(Measurement& measurement, const Configuration& configuration) const;
  void remember(ConfigurationResult entry);
  /// Whether the request is answered by what is known.
  bool answers(const ConfigurationResult& known, const ConfigurationRequest& wanted) const;
  void add_baseline(ConfigurationIndex index, const std::string& gpu, const Measurement& baseline);
  /// Takes requests from the source; answers known ones and submits the others. False if the source has finished: it
  /// requested nothing and nothing is outstanding.
  bool hand_out(Source& source);
  void submit(const ConfigurationRequest& wanted, bool again = false);
  void accept(EvaluationResult result, Source& source);
  /// Submits a disturbed request a second time when the source has nothing else to do; true while such requests remain.
  bool retry_disturbed();
  void drop_outstanding();
  /// Whether a web page has paused or ended the session, so that nothing is submitted.
  bool held();
  void show(bool held);
  void rethrow_fault();

  const SearchSpace& space_;
  Evaluator& evaluator_;
  LedgerOptions options_;
  std::unique_ptr<SessionLock> lock_;
  std::unordered_map<ConfigurationIndex, ConfigurationResult> entries_;
  std::vector<ConfigurationIndex> order_, to_retry_;
  DeviceFactors factors_;
  EnergyByTime energy_by_time_;
  bool wants_energy_ = false, screens_ = false;
  std::int64_t run_ = 0;
  std::optional<ObjectiveSpec> objective_;  ///< of this run
  int confirmed_ = 0;                       ///< confirmation repeats of this run in the store
  std::string stage_;
  std::uint64_t next_id_ = 1, evaluated_ = 0, resumed_ = 0;
  double waited_ = 0, evaluator_overhead_seconds_ = 0, paused_ = 0;
  std::string phase_;
  bool stopped_ = false;
  std::optional<std::set<std::uint64_t>> last_;  ///< requests that ran when the stop was requested

  std::mutex mutex_;  ///< guards the store, and what about_to_run() records
  std::map<std::uint64_t, Pending> pending_;
  std::vector<ConfigurationRequest> disturbed_;     ///< wait until the source has nothing else
  double disturbed_at_ = 0;                         ///< time of the last disturbance, host_seconds()
  std::map<std::size_t, std::uint64_t> on_device_;  ///< request that began last, by device
  std::exception_ptr fault_;
};

/// Requests a fixed list in its order: failures to retry, all configurations of a small stage, or a single one.
class ListSource : public Source {
 public:
  /// `each`, if given, receives every result; when it returns false, the rest of the list is dropped.
  explicit ListSource(std::vector<ConfigurationIndex> list,
                      std::function<bool(const ConfigurationRequest&, const Measurement&, bool fresh)> each = {})
      : list_(std::move(list)), each_(std::move(each)) {}
  std::vector<ConfigurationRequest> next(std::size_t room) override;
  void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) override;
  /// Sets EvaluationRequest::objective_quantity of the requests.
  void set_objective_quantity(std::string name) { quantity_ = std::move(name); }
  /// Sets EvaluationRequest::settle_seconds of the requests.
  void set_settle_seconds(double seconds) { settle_seconds_ = seconds; }

 private:
  std::vector<ConfigurationIndex> list_;
  std::function<bool(const ConfigurationRequest&, const Measurement&, bool)> each_;
  std::string quantity_ = "time";
  double settle_seconds_ = 0;
  std::size_t at_ = 0;
  bool ended_ = false;
};

}  // namespace ergotune
