// The one path of every result: is it known? Else note it durably, evaluate, compute metrics, make it durable, hand it
// back. Whoever wants configurations measured (a strategy's search, a list, a plan's stage, the model's clocks, the
// confirmation's rounds, `measure`) is a Source, and Ledger::drive() is the only place that waits for an evaluator.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ergotune/problem.hpp"
#include "evaluate/evaluator.hpp"
#include "store/sqlite/store.hpp"
#include "tune/ledger/device_factors.hpp"
#include "tune/ledger/energy_by_time.hpp"

namespace ergotune {

class LiveSession;
struct SessionProgress;

/// What counts of one configuration.
struct ConfigurationResult {
  ConfigurationIndex index = 0;
  Measurement measurement;
  /// It was in the store before this run.
  bool resumed = false;
  /// Rounds of confirmation that the measurement is the mean of; 0: measured once.
  int rounds = 0;
  std::optional<ObjectiveSpec> confirmed_for;
  /// What the confirmation says of its winner, where this one was confirmed.
  std::optional<Certainty> certainty = {};
  /// Where it was confirmed: what it read when it was searched.
  std::optional<Measurement> searched;
  /// Which of several devices measured it; empty where it is the session's.
  std::string gpu = {};
  /// It has no result, because the device was disturbed each time (EvaluationResult): not stored, and measured when it
  /// is wanted again.
  bool disturbed = false;
};

/// A configuration that a source wants, by its index in the ledger's space.
struct ConfigurationRequest {
  ConfigurationIndex index = 0;
  /// A confirmation, and a reference, is a measurement of its own, whether the configuration is known or not.
  RowKind kind = RowKind::search;
  /// The one of several GPUs that is to measure it; empty: any. When it is taken: the one that did.
  std::string gpu = {};
  /// Racing (EvaluationRequest).
  double give_up_above = 1e300;
  std::string objective_quantity = "time";
  /// Only what the compiled code of this configuration needs, which the space may not allow: nothing runs, nothing is
  /// kept, and `index` is whatever the source knows it by.
  std::optional<Configuration> resources_of;
  /// Screening (EvaluationRequest). What is known by its time alone is measured again where that is not above.
  double energy_up_to = 1e300;
};

/// Where configurations come from.
class Source {
 public:
  virtual ~Source() = default;
  /// Up to `room` configurations that are wanted next. Fewer, or none, while it waits for what is under way; none with
  /// nothing under way: it has finished.
  virtual std::vector<ConfigurationRequest> next(std::size_t room) = 0;
  /// What came of one of them, metrics included. `fresh`: measured now, not known before. For a confirmation the
  /// measurement is that round's; the ledger's entry is left as it is.
  virtual void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) = 0;
  /// Asked before each step: why to end at once, with what is under way; empty to go on.
  virtual std::string stop() { return {}; }
};

struct LedgerOptions {
  /// Where rows are kept; null: nowhere.
  Store* store = nullptr;
  std::int64_t session = 0;
  /// Metrics and parameters; null: measurements keep the metrics they come with.
  const Problem* problem = nullptr;
  Constants constants;
  /// Metrics worked out by the application (Python), after the problem's own.
  std::function<void(Measurement&, const Configuration&)> further_metrics;
  /// Stored results of these statuses do not count as known: they are listed in to_retry().
  std::set<Status> retry;
  const std::atomic<bool>* interrupted = nullptr;
  /// What this session has measured before, where there is no store.
  std::vector<StoredRow> known;
  /// Where the session shows itself to web pages, and their requests; null: nowhere.
  std::shared_ptr<LiveSession> live;
};

/// Holds what is known of one space on one target. Not thread-safe, but for what the evaluator's thread calls.
class Ledger : private RunJournal {
 public:
  /// Reads what the store knows. What was running when an earlier session died is a runtime_error from now on; metrics
  /// that the problem defines otherwise by now are computed anew. Holds the session's lock as long as it lives; throws
  /// UserError that names the process that has it.
  Ledger(const SearchSpace& space, Evaluator& evaluator, LedgerOptions options);
  /// Ends what is under way; that is not held against those configurations.
  ~Ledger() override;
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// The one loop: until the source has finished (empty), stops (its words) or the user interrupts ("interrupted").
  /// What was taken is durable by then. Throws what evaluator, store or source throw.
  std::string drive(Source& source);

  const ConfigurationResult* find(ConfigurationIndex index) const;
  /// Moves out all that is known, in the order in which it came to be known, once the work has ended.
  std::vector<ConfigurationResult> take_entries();
  /// How devices and times compare, by all baseline runs that the session holds.
  const DeviceFactors& factors() const { return factors_; }
  /// From now on levelled() models the energy of what has a time and no energy.
  void screen() { screens_ = true; }
  const EnergyByTime& energy_by_time() const { return energy_by_time_; }
  /// Rises when levelled() may give other values than before.
  std::size_t revision() const { return factors_.revision() + (screens_ ? energy_by_time_.revision() : 0); }
  /// What is known of it as the mean of the devices would have measured it in the mean of the conditions, metrics
  /// included: for comparing what was measured by several devices, or under another load, or screened. nullopt where
  /// that makes no difference.
  std::optional<Measurement> levelled(const ConfigurationResult& entry) const;
  /// Known configurations, in the order in which they came to be known.
  const std::vector<ConfigurationIndex>& order() const { return order_; }
  const std::vector<ConfigurationIndex>& to_retry() const { return to_retry_; }
  const SearchSpace& space() const { return space_; }
  Evaluator& evaluator() const { return evaluator_; }
  /// From the terminal, or from the web page with an end after the current configuration.
  bool interrupted() const { return stopped_ || (options_.interrupted && options_.interrupted->load()); }
  /// A web page asked to end the search and confirm its best; returned once.
  bool take_confirm_request() const;
  /// How far the search is, for those who watch.
  void tell(const SessionProgress& progress);
  /// Whether anybody could watch.
  bool shows() const { return options_.live != nullptr; }

  /// Begins a run in the store (no store: nothing); what is measured from now on belongs to it.
  void begin_run(const RunInfo& info);
  /// What is going on, for those who watch the store.
  void set_phase(const std::string& phase);
  /// Rows from now on belong to this stage of a plan; empty: to none.
  void set_stage(std::string stage) { stage_ = std::move(stage); }
  /// The mean of a finished confirmation counts from now on, with its metrics.
  void confirm(ConfigurationIndex index, Measurement mean, int rounds, const ObjectiveSpec& objective,
               const std::string& gpu = {});
  /// Adds a warning to what is known of a configuration in this run.
  void warn(ConfigurationIndex index, const std::string& warning) {
    entries_.at(index).measurement.warnings.push_back(warning);
  }
  /// What the confirmation says of its winner.
  void conclude(ConfigurationIndex winner, const Certainty& certainty);
  void end_run(const std::string& why);

  /// Measured by this ledger; rounds of confirmations are not counted.
  std::uint64_t evaluated() const { return evaluated_; }
  /// Known from the store.
  std::uint64_t resumed() const { return resumed_; }
  /// s spent waiting for the evaluator; s of its own that the evaluator reports (Measurement::tuner_seconds).
  double waited() const { return waited_; }
  /// s in which nothing was handed out because a web page had paused the session.
  double paused() const { return paused_; }
  double evaluators_own() const { return evaluators_own_; }

 private:
  struct Pending {
    ConfigurationRequest wanted;
    Configuration configuration;
    bool noted = false;  ///< the store says that it runs
    double since = 0;    ///< s since the epoch when it began to run
    bool again = false;  ///< disturbed before
  };

  void about_to_run(const EvaluationRequest& request, std::size_t device) override;
  void load();
  /// Rows of configurations that the space has are known from now on, or to be tried again.
  void know(std::vector<StoredRow> rows);
  void note_dead();
  void compute_metrics(Measurement& measurement, const Configuration& configuration) const;
  void remember(ConfigurationResult entry);
  /// Whether the request is answered by what is known.
  bool answers(const ConfigurationResult& known, const ConfigurationRequest& wanted) const;
  void add_baseline(ConfigurationIndex index, const std::string& gpu, const Measurement& baseline);
  /// Asks the source and hands out; true while something happened.
  bool hand_out(Source& source);
  void submit(const ConfigurationRequest& wanted, bool again = false);
  void accept(EvaluationResult result, Source& source);
  /// What the device's conditions disturbed is tried once more when the source has nothing else; true while there is
  /// some.
  bool retry_disturbed();
  void drop_outstanding();
  /// Nothing is handed out: those who watch have requested a pause, or for an end.
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
  bool screens_ = false;
  std::int64_t run_ = 0;
  int confirmed_ = 0;  ///< rounds of this run's confirmation that the store knows of
  std::string stage_;
  std::uint64_t next_id_ = 1, evaluated_ = 0, resumed_ = 0;
  double waited_ = 0, evaluators_own_ = 0, paused_ = 0;
  std::string phase_;
  bool stopped_ = false;
  std::optional<std::set<std::uint64_t>> last_;  ///< what ran when the end was requested

  std::mutex mutex_;  ///< of the store and of what the evaluator's thread notes
  std::map<std::uint64_t, Pending> pending_;
  std::vector<ConfigurationRequest> disturbed_;     ///< wait for the end of the source
  double disturbed_at_ = 0;                         ///< when the last was; host_seconds()
  std::map<std::size_t, std::uint64_t> on_device_;  ///< what was noted last, by device
  std::exception_ptr fault_;
};

/// A list, in its order: failures that are tried again, every configuration of a small stage, a single one.
class ListSource : public Source {
 public:
  /// `each`, when given, sees every result as it comes and ends the rest by returning false.
  explicit ListSource(std::vector<ConfigurationIndex> list,
                      std::function<bool(const ConfigurationRequest&, const Measurement&, bool fresh)> each = {})
      : list_(std::move(list)), each_(std::move(each)) {}
  std::vector<ConfigurationRequest> next(std::size_t room) override;
  void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) override;
  /// For EvaluationRequest::objective_quantity.
  void set_objective_quantity(std::string name) { quantity_ = std::move(name); }

 private:
  std::vector<ConfigurationIndex> list_;
  std::function<bool(const ConfigurationRequest&, const Measurement&, bool)> each_;
  std::string quantity_ = "time";
  std::size_t at_ = 0;
  bool ended_ = false;
};

}  // namespace ergotune
