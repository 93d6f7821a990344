#include "tune/online/online.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.hpp"
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
class OneTrial : public Source {
 public:
  explicit OneTrial(StrategySource& search) : search_(search) {}
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

}  // namespace

struct Session::State {
  OnlineOptions options;
  PreparedSession prepared;
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

  State(Problem problem, SetupOptions setup, OnlineOptions o)
      : options(std::move(o)),
        prepared(prepare_session(std::move(problem), adapted(setup))),
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

  void begin();
  void try_one(OnlineIteration& round);
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

/// s that may still be spent on trials.
double Session::State::allowance() const { return (1 + options.bound) * with_default - spent; }

/// Speed-up of the current configuration over the default, as measured, from the unfavourable ends of both intervals.
double Session::State::gain() const {
  if (running == start) return 1;
  const Measurement &now = ledger->find(running)->measurement, &before = ledger->find(start)->measurement;
  const double one = before.value("time").value_or(0) - before.half_width("time");
  const double other = now.value("time").value_or(0) + now.half_width("time");
  return one > 0 && other > 0 ? one / other : 1;
}

void Session::State::try_one(OnlineIteration& round) {
  const double began = host_seconds();
  OneTrial trial(search);
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
