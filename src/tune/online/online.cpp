#include "tune/online/online.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "tune/ledger/leaderboard.hpp"
#include "tune/ledger/strategy_source.hpp"
#include "tune/online/application_iteration.hpp"

namespace ergotune {
namespace {

/// A trial is expected to take at most this many times as long as the longest so far.
constexpr double kCaution = 2;

SetupOptions adapted(SetupOptions setup) {
  if (setup.run.device.starts_with("replay:") || setup.run.device.starts_with("sim:"))
    throw UserError("an application's rounds run on a device, not on " + setup.run.device);
  return setup;
}

/// Requests one unknown configuration from a strategy's search; known ones before it are answered on the way.
class SingleTrialSource : public Source {
 public:
  explicit SingleTrialSource(StrategySource& search) : search_(search) {}
  std::vector<ConfigurationRequest> next(std::size_t room) override {
    if (tried_ || under_way_ || room == 0) return {};
    std::vector<ConfigurationRequest> wanted = search_.next(1);
    ended_ = wanted.empty();
    under_way_ = !ended_;  // one at a time, although the evaluator has capacity for more
    return wanted;
  }
  void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) override {
    under_way_ = false;
    search_.take(wanted, measurement, fresh);
    if (fresh) tried_ = wanted.index;
  }
  bool ended() const { return ended_ && !tried_; }
  std::optional<ConfigurationIndex> tried() const { return tried_; }

 private:
  StrategySource& search_;
  std::optional<ConfigurationIndex> tried_;
  bool ended_ = false, under_way_ = false;
};

/// The next configuration that is not known yet; what is known is given back to the search on the way.
class NextUnknown : public Source {
 public:
  NextUnknown(StrategySource& search, const Ledger& ledger) : search_(search), ledger_(ledger) {}
  std::vector<ConfigurationRequest> next(std::size_t) override {
    if (!search_.stop().empty()) return {};
    std::vector<ConfigurationRequest> wanted = search_.next(1);
    if (wanted.empty() || ledger_.find(wanted.front().index)) return wanted;
    found = wanted.front();
    return {};
  }
  void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) override {
    search_.take(wanted, measurement, fresh);
  }
  std::optional<ConfigurationRequest> found;

 private:
  StrategySource& search_;
  const Ledger& ledger_;
};

/// Passes the application's own rounds on to the ledger as the measurement of a configuration.
class OwnRounds : public Evaluator {
 public:
  explicit OwnRounds(std::string description) : description_(std::move(description)) {}
  std::string description() const override { return description_; }
  Provenance provenance() const override { return Provenance::measured; }
  void submit(EvaluationRequest request) override { request_ = std::move(request); }
  std::optional<EvaluationResult> wait(double) override {
    if (!request_) return std::nullopt;
    const EvaluationRequest request = *std::exchange(request_, std::nullopt);
    return EvaluationResult{request.id, request.index, measurement};
  }
  std::size_t pending() const override { return request_ ? 1 : 0; }
  Measurement measurement;  ///< of what is submitted next

 private:
  std::string description_;
  std::optional<EvaluationRequest> request_;
};

/// Rounds with a configuration, at least where it is not far slower than the default.
constexpr std::size_t kOwnRounds = 5;

/// A configuration on trial in the application's own rounds.
struct OwnTrial {
  ConfigurationRequest wanted;
  std::vector<double> seconds = {};  ///< of the device
  double compile_seconds = 0;

  Measurement measurement() const {
    Measurement m;
    m.times = seconds;
    m.compile_seconds = compile_seconds;
    for (const double one : seconds) m.measure_seconds += one;
    const double middle = mean(seconds);
    Quantity& time = m.quantities["time"];
    time.value = middle;
    time.n = static_cast<std::int64_t>(seconds.size());
    time.standard_error = seconds.size() > 1 ? std::sqrt(variance(seconds) / static_cast<double>(seconds.size())) : 0;
    time.method = "mean of the application's own rounds";
    return m;
  }
};

}  // namespace

struct Session::State {
  OnlineOptions options;
  PreparedSession prepared;
  OwnRounds* own;  ///< the ledger's evaluator, where trials are the application's own rounds; null else
  std::unique_ptr<Ledger> ledger;
  Leaderboard standing;
  StrategySource search;
  ApplicationIteration application;
  ConfigurationIndex running = 0;
  bool settled = false;
  std::uint64_t rounds = 0, tried = 0;
  /// s of iterations and trials so far, and the estimated s of the iterations alone with the default configuration. The
  /// estimate is the time that an iteration took, multiplied by the measured speed-up of its configuration, so that a
  /// temporary slowdown of the machine is not attributed to trials.
  double spent = 0, with_default = 0;
  double longest_trial = 0, worst = 0;
  ConfigurationIndex start = 0;
  std::optional<OwnTrial> trial;

  State(Problem problem, SetupOptions setup, OnlineOptions o)
      : options(std::move(o)),
        prepared(prepare_session(std::move(problem), adapted(setup))),
        own(options.own_rounds ? take_over() : nullptr),
        ledger(prepared.open_ledger()),
        standing(*ledger, *prepared.objective),
        search(*prepared.space, standing, options.session, host_seconds(), {}),
        application(prepared.device.id, prepared.original,
                    !setup.run.use_cache             ? std::filesystem::path()
                    : setup.run.cache_folder.empty() ? CompileCache::default_folder()
                                                     : setup.run.cache_folder) {
    begin();
  }
  ~State() { ledger->end_run(settled ? "settled" : "the application has ended"); }

  OwnRounds* take_over();
  void begin();
  void try_one(OnlineIteration& round);
  void begin_own_trial();
  bool goes_on(double device_seconds);
  void end_own_trial(Measurement measurement);
  void own_round(OnlineIteration& round);
  void use_best();
  double allowance() const;
  double gain() const;
};

/// s spent on trying a configuration, from its measurement.
double cost_of(const Measurement& measurement) {
  return measurement.compile_seconds + measurement.verify_seconds + measurement.measure_seconds +
         measurement.tuner_seconds;
}

/// Loads results from the store and measures the default configuration; its cost is the first estimate of a trial's
/// cost, even if another session measured it.
void Session::State::begin() {
  RunInfo info;
  info.objective = prepared.objective->spec();
  info.strategy = options.session.strategy;
  info.seed = options.session.seed;
  info.phase = "tuning online";
  ledger->begin_run(info);
  for (const ConfigurationIndex index : ledger->order()) standing.see(index);
  const auto known = prepared.space->default_configuration();
  if (!known) throw UserError("the default configuration is not in the search space: rounds cannot begin with it");
  start = *known;
  if (own && !standing.seen(start)) {
    const double began = host_seconds();
    application.use(prepared.space->configuration(start));
    longest_trial = host_seconds() - began;
    running = start;
    trial = OwnTrial{{.index = start}, {}, longest_trial};
    return;
  }
  if (!standing.seen(start)) {
    ListSource first({start}, [&](const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) {
      search.learn(wanted, measurement, fresh);
      return true;
    });
    ledger->drive(first);
  }
  const Measurement& measurement = ledger->find(start)->measurement;
  if (!usable(measurement.status))
    throw UserError(fmt::format("the default configuration does not work: {}", measurement.message));
  for (const ConfigurationIndex index : ledger->order())
    longest_trial = std::max(longest_trial, cost_of(ledger->find(index)->measurement));
  application.use(prepared.space->configuration(start));
  running = start;
  search.begin();
  use_best();
}

OwnRounds* Session::State::take_over() {
  auto rounds = std::make_unique<OwnRounds>(prepared.evaluator->description());
  OwnRounds* evaluator = rounds.get();
  prepared.live = nullptr;  // nothing is measured beside the application
  prepared.evaluator = std::move(rounds);
  return evaluator;
}

/// The next configuration is compiled and runs from this round on, where that fits into what the bound leaves.
void Session::State::begin_own_trial() {
  NextUnknown next(search, *ledger);
  ledger->drive(next);
  settled = !next.found;
  if (settled) return ledger->set_phase("settled");
  trial = OwnTrial{*next.found};
  const double began = host_seconds();
  try {
    application.use(prepared.space->configuration(next.found->index));
    running = next.found->index;
    trial->compile_seconds = host_seconds() - began;
  } catch (const Error& error) {
    Measurement failed;
    failed.status = Status::compile_error;
    failed.message = error.what();
    failed.compile_seconds = host_seconds() - began;
    end_own_trial(std::move(failed));
  }
  longest_trial = std::max(longest_trial, host_seconds() - began);
}

/// Whether the configuration on trial needs further rounds: one that takes far longer than the default is known to
/// lose.
bool Session::State::goes_on(double device_seconds) {
  trial->seconds.push_back(device_seconds);
  const ConfigurationResult* known = ledger->find(start);
  const bool loses = known && device_seconds > kCaution * known->measurement.value("time").value_or(device_seconds);
  return !loses && trial->seconds.size() < kOwnRounds;
}

void Session::State::end_own_trial(Measurement measurement) {
  const ConfigurationRequest wanted = std::exchange(trial, std::nullopt)->wanted;
  own->measurement = std::move(measurement);
  ListSource one({wanted.index}, [&](const ConfigurationRequest&, const Measurement& taken, bool fresh) {
    if (wanted.index == start)
      search.learn(wanted, taken, fresh);
    else
      search.take(wanted, taken, fresh);
    return true;
  });
  ledger->drive(one);
  if (wanted.index == start) {
    if (!standing.best())
      throw UserError("the objective \"" + standing.objective().name() +
                      "\" needs more than the time of rounds, which is what own rounds measure");
    search.begin();
  }
  tried += wanted.index != start;
  use_best();
}

void Session::State::own_round(OnlineIteration& round) {
  const double began = host_seconds();
  if (!settled && !trial && allowance() > kCaution * longest_trial) begin_own_trial();
  const double ready = host_seconds();
  round.configuration = running;
  round.device_seconds = application.run();
  const double device_seconds = round.device_seconds, ran = host_seconds() - ready;
  const ConfigurationResult* known = ledger->find(start);
  const double before = known ? known->measurement.value("time").value_or(device_seconds) : device_seconds;
  with_default += trial ? ran - device_seconds + before : ran * gain();
  if (trial && !goes_on(device_seconds)) {
    if (trial->wanted.index != start) round.tried = trial->wanted.index;
    end_own_trial(trial->measurement());
  }
  round.seconds = host_seconds() - began;
  spent += round.seconds;
}

/// s that may still be spent.
double Session::State::allowance() const { return (1 + options.bound) * with_default - spent; }

/// How much faster than the default the rounds are now, as measured, at the cautious ends of both intervals; those of a
/// few own rounds are too wide for that.
double Session::State::gain() const {
  if (running == start) return 1;
  const Measurement &now = ledger->find(running)->measurement, &before = ledger->find(start)->measurement;
  const double caution = own ? 0 : 1;
  const double one = before.value("time").value_or(0) - caution * before.half_width("time");
  const double other = now.value("time").value_or(0) + caution * now.half_width("time");
  return one > 0 && other > 0 ? one / other : 1;
}

void Session::State::try_one(OnlineIteration& round) {
  const double began = host_seconds();
  SingleTrialSource trial(search);
  ledger->drive(trial);
  settled = trial.ended();
  if (settled) ledger->set_phase("settled");
  if (!trial.tried()) return;
  ++tried;
  round.tried = trial.tried();
  use_best();
  longest_trial = std::max(longest_trial, host_seconds() - began);
}

void Session::State::use_best() {
  const auto best = standing.best();
  if (!best || *best == running) return;
  try {
    application.use(prepared.space->configuration(*best));
    running = *best;
  } catch (const DeviceError&) {
    // It works in a worker but not here: the iterations keep the current configuration.
  }
}

Session::Session(Problem problem, SetupOptions setup, OnlineOptions options) {
  problem.execution_parameters.clear();  // the application sets its own clocks
  state_ = std::make_unique<State>(std::move(problem), std::move(setup), std::move(options));
}
Session::~Session() = default;

OnlineIteration Session::next_round() {
  State& state = *state_;
  OnlineIteration round;
  if (state.own) {
    state.own_round(round);
    round.number = ++state.rounds;
    round.settled = state.settled;
    state.worst = std::max(state.worst, ratio());
    return round;
  }
  const double began = host_seconds();
  if (!state.settled && state.allowance() > kCaution * state.longest_trial) state.try_one(round);
  const double ready = host_seconds();
  round.device_seconds = state.application.run();
  const double ended = host_seconds();
  round.seconds = ended - began;
  round.number = ++state.rounds;
  round.configuration = state.running;
  round.settled = state.settled;
  state.spent += round.seconds;
  state.with_default += (ended - ready) * state.gain();
  state.worst = std::max(state.worst, ratio());
  return round;
}

namespace {

void check_size(const ProblemBuffers& buffers, const std::string& name, std::size_t bytes) {
  if (!buffers.contains(name)) throw UserError(fmt::format("there is no buffer \"{}\"", name));
  if (buffers.bytes(name) != bytes)
    throw UserError(fmt::format("buffer \"{}\" has {} bytes, not {}", name, buffers.bytes(name), bytes));
}

}  // namespace

void Session::read(const std::string& buffer, std::span<std::byte> into) const {
  check_size(state_->application.buffers(), buffer, into.size());
  std::vector<std::byte> contents;
  state_->application.buffers().read(buffer, contents);
  std::copy(contents.begin(), contents.end(), into.begin());
}
void Session::write(const std::string& buffer, std::span<const std::byte> contents) {
  check_size(state_->application.buffers(), buffer, contents.size());
  state_->application.buffers().write(buffer, contents);
}
std::size_t Session::bytes(const std::string& buffer) const {
  if (!state_->application.buffers().contains(buffer))
    throw UserError(fmt::format("there is no buffer \"{}\"", buffer));
  return state_->application.buffers().bytes(buffer);
}
void Session::restore() { state_->application.buffers().restore(true); }

Configuration Session::best() const {
  return state_->prepared.space->configuration(state_->standing.best().value_or(state_->running));
}
const Measurement& Session::measurement() const {
  return state_->ledger->find(state_->standing.best().value_or(state_->running))->measurement;
}
const SearchSpace& Session::space() const { return *state_->prepared.space; }
bool Session::settled() const { return state_->settled; }
std::uint64_t Session::rounds() const { return state_->rounds; }
std::uint64_t Session::tried() const { return state_->tried; }
std::uint64_t Session::resumed() const { return state_->ledger->resumed(); }
double Session::ratio() const {
  const State& state = *state_;
  return state.with_default > 0 ? state.spent / state.with_default : 0;
}
double Session::worst_ratio() const { return state_->worst; }

}  // namespace ergotune
