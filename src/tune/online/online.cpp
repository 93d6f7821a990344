#include "tune/online/online.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/regret_bound.hpp"
#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "kernel/compile_cache.hpp"
#include "kernel/configure.hpp"
#include "measure/buffers/problem_buffers.hpp"
#include "measure/energy/region_monitor.hpp"
#include "measure/execution_parameters.hpp"
#include "measure/timing/loaded_iteration.hpp"
#include "power/guardian/guardian.hpp"
#include "tune/ledger/leaderboard.hpp"
#include "tune/ledger/strategy_source.hpp"
#include "tune/target/target_parts.hpp"

namespace ergotune {
namespace {

SetupOptions adapted(SetupOptions setup, bool own_rounds) {
  if (!is_live(setup.run.device))
    throw UserError("an application's rounds run on a device, not on " + setup.run.device);
  if (own_rounds) setup.key += ", in the application's rounds";
  return setup;
}

/// The next configuration of a strategy's search that is not known yet; known ones before it are answered on the way.
class NextTrial : public Source {
 public:
  /// `measured`: the evaluator measures it; otherwise it is only found.
  NextTrial(StrategySource& search, const Ledger& ledger, bool measured)
      : search_(search), ledger_(ledger), measured_(measured) {}
  std::vector<ConfigurationRequest> next(std::size_t room) override {
    // one at a time, although the evaluator has capacity for more
    if (found || under_way_ || room == 0 || !search_.stop().empty()) return {};
    std::vector<ConfigurationRequest> wanted = search_.next(1);
    if (!wanted.empty() && !measured_ && !ledger_.find(wanted.front().index)) {
      found = wanted.front();
      return {};
    }
    under_way_ = !wanted.empty();
    return wanted;
  }
  void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool fresh) override {
    under_way_ = false;
    search_.take(wanted, measurement, fresh);
    if (fresh) found = wanted;
  }
  std::optional<ConfigurationRequest> found;

 private:
  StrategySource& search_;
  const Ledger& ledger_;
  bool measured_, under_way_ = false;
};

/// Iterations of a workload in the application's own process, with one configuration at a time, on the application's
/// buffers.
class ApplicationIteration {
 public:
  /// Opens the device and fills the buffers; `problem` must outlive this object.
  ApplicationIteration(const std::string& device, const Problem& problem, std::filesystem::path cache_folder)
      : problem_(problem),
        device_(open_device(device, &problem)),
        constants_(problem.constants_for(device_->info().name, device_->info().properties)),
        compiler_(device_->make_compiler(), std::move(cache_folder)),
        buffers_(*device_, argument_lists(problem), constants_, nullptr, swapped_buffers(problem)),
        begin_(device_->make_marker()),
        end_(device_->make_marker()) {}

  /// Compiles a configuration; another thread may do so while iterations run. Throws DeviceError or UserError.
  std::vector<Binary> compile(const Configuration& configuration) {
    std::vector<Binary> binaries;
    for (const Kernel& kernel : problem_.kernels)
      binaries.push_back(
          compiler_.compile(make_compile_job(problem_, kernel, device_->info(), constants_, configuration)).binary);
    return binaries;
  }

  /// Loads what compile() returned. If this throws DeviceError or UserError, the previous configuration stays loaded.
  void load(const Configuration& configuration, const std::vector<Binary>& binaries) {
    round_ = std::make_unique<LoadedIteration>(*device_, problem_, constants_, buffers_, configuration, binaries);
  }

  /// Runs one iteration and returns its device time in s.
  double run() {
    device_->record(*begin_);
    round_->workload().launch(1);
    device_->record(*end_);
    device_->synchronise();
    return device_->seconds_between(*begin_, *end_);
  }

  ProblemBuffers& buffers() { return buffers_; }
  const ProblemBuffers& buffers() const { return buffers_; }

 private:
  const Problem& problem_;
  std::unique_ptr<Device> device_;
  Constants constants_;
  CachedCompiler compiler_;
  ProblemBuffers buffers_;
  std::unique_ptr<Marker> begin_, end_;
  std::unique_ptr<LoadedIteration> round_;
};

/// Passes the application's own rounds on to the ledger as the measurement of a configuration.
class OwnRounds : public QueuedEvaluator {
 public:
  explicit OwnRounds(std::string description) : description_(std::move(description)) {}
  std::string description() const override { return description_; }
  Provenance provenance() const override { return Provenance::measured; }
  Measurement measurement;  ///< of what is submitted next

 private:
  EvaluationResult answer(const EvaluationRequest&) override { return {.measurement = measurement}; }

  std::string description_;
};

/// Rounds with a configuration, at least where it is not far slower than the default.
constexpr std::size_t kOwnRounds = 5;
// s in which clocks and sensors settle; of rounds whose energy is measured: the s at least and at most, the s by which
// sensors are behind, and the half-width that is precise enough, as a share.
constexpr double kSettling = 0.5, kLeastSpan = 1, kMostSpan = 8, kBehind = 0.3, kPrecise = 0.02;

/// A configuration on trial in the application's own rounds.
struct OwnTrial {
  ConfigurationRequest wanted;
  double compile_seconds = 0, load_seconds = 0;
  double began = host_seconds();                ///< when the first round could begin
  double settling = 0;                          ///< s whose rounds are not measured
  std::vector<double> seconds = {}, ends = {};  ///< of each round: device time; host time of its end
  std::optional<Quantity> energy = {};          ///< of a round
  double span = kLeastSpan;

  Measurement measurement() const {
    Measurement m;
    m.times.assign(seconds.begin() + (settled() - ends.begin()), seconds.end());
    m.compile_seconds = compile_seconds;
    for (const double one : seconds) m.measure_seconds += one;
    Quantity& time = m.quantities["time"];
    time.value = mean(m.times);
    time.n = static_cast<std::int64_t>(m.times.size());
    time.standard_error = m.times.size() > 1 ? std::sqrt(variance(m.times) / static_cast<double>(m.times.size())) : 0;
    time.method = "mean of the application's own rounds";
    if (energy) m.quantities["energy"] = *energy;
    return m;
  }
  /// The first round that is measured: the one after the first that ends when clocks and sensors have settled. A
  /// driver may complete the code in the first round.
  std::vector<double>::const_iterator settled() const {
    const auto warm = std::lower_bound(ends.begin(), ends.end(), began + settling);
    return warm == ends.end() ? warm : std::next(warm);
  }
  /// Measures the energy of the rounds after that. Returns false where more rounds are needed.
  bool measure_energy(const RegionMonitor& monitor) {
    const auto first = std::lower_bound(ends.cbegin(), ends.cend(), began + settling);
    const auto last =
        std::lower_bound(first, ends.cend(), ends.back() - kBehind);  // so that no round waits for sensors
    if (last == ends.cend() || *last - *first < span) return false;
    const RegionEnergy found = monitor.energy("rounds", {{*first, *last}});
    if (!found.joules || found.half_width > kPrecise * *found.joules) {
      span *= 2;
      if (span <= kMostSpan) return false;
    }
    if (!found.joules) return true;
    const auto rounds = static_cast<double>(last - first);
    energy = Quantity{.value = *found.joules / rounds,
                      .standard_error = found.half_width / (1.96 * rounds),
                      .n = last - first,
                      .method = "energy of the application's own rounds",
                      .sensor = found.sensors.front().sensor};
    return true;
  }
};

}  // namespace

struct Session::State : RegretBound {
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
  // Costs are s; J in own rounds for an objective of energy. The estimated time with the default is what an iteration
  // took, multiplied by the measured speed-up of its configuration, so that a temporary slowdown of the machine is not
  // attributed to trials.
  ConfigurationIndex start = 0;
  std::optional<OwnTrial> trial;
  /// Code of the next trial and the s of its compilation, beside which the rounds go on.
  struct CompiledTrial {
    std::vector<Binary> code;
    double seconds = 0;
  };
  std::optional<ConfigurationRequest> upcoming;
  std::future<CompiledTrial> compiled;
  std::unique_ptr<ControlSession> controls;  ///< of own rounds whose configurations include clocks or limits
  std::unique_ptr<RegionMonitor> monitor;    ///< of own rounds for an objective of energy

  State(Problem problem, SetupOptions setup, OnlineOptions o)
      : RegretBound{.bound = o.bound},
        options(std::move(o)),
        prepared(prepare_session(std::move(problem), adapted(setup, options.own_rounds))),
        own(options.own_rounds ? take_over() : nullptr),
        ledger(prepared.open_ledger()),
        standing(*ledger, *prepared.objective),
        search(*prepared.space, standing, options.session, host_seconds(), {}),
        application(prepared.device.id, prepared.problem,
                    !setup.run.use_cache             ? std::filesystem::path()
                    : setup.run.cache_folder.empty() ? CompileCache::default_folder()
                                                     : setup.run.cache_folder) {
    if (own) open_own(setup);
    begin();
  }
  ~State() { ledger->end_run(settled ? "settled" : "the application has ended"); }

  OwnRounds* take_over();
  void open_own(const SetupOptions& setup);
  void begin();
  void use(ConfigurationIndex index, const std::vector<Binary>& code);
  void use(ConfigurationIndex index) { use(index, application.compile(prepared.space->configuration(index))); }
  double settling() const { return controls || monitor ? kSettling : 0; }
  void try_one(OnlineIteration& round);
  void begin_own_trial();
  bool goes_on();
  void end_own_trial(Measurement measurement);
  void own_round(OnlineIteration& round);
  void round_beside_trials(OnlineIteration& round);
  void use_best();
  double gain() const;
  double of_default(const std::string& quantity) const;
  double cost_of_seconds(double seconds) const;
  double cost_of_trial(const Measurement& measurement) const;
};

/// What it cost to try a configuration, from its measurement. Own rounds go on while code is compiled.
double Session::State::cost_of_trial(const Measurement& measurement) const {
  return cost_of_seconds((own ? 0 : measurement.compile_seconds) + measurement.verify_seconds +
                         measurement.measure_seconds + measurement.tuner_seconds);
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
    use(start);
    trial = OwnTrial{{.index = start}};
    trial->settling = settling();
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
    longest_trial = std::max(longest_trial, cost_of_trial(ledger->find(index)->measurement));
  use(start);
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

/// Sensors and clocks belong to the application's process, where its own rounds are the trials.
void Session::State::open_own(const SetupOptions& setup) {
  const DeviceInfo& device = prepared.device;
  if (prepared.objective->needs("energy")) {
    std::vector<std::string> sensors = setup.run.sensors;
    if (sensors.empty())
      for (const auto& sensor : sensors_for_device(device.uuid, device.pci_address, device.is_cpu))
        if (sensors.empty()) sensors.push_back(sensor->info().id);  // the best
    monitor = std::make_unique<RegionMonitor>(sensors);
  }
  const auto is_setting = [](const Parameter& parameter) { return quantity_of(parameter.kind).has_value(); };
  // the target leaves clocks out, with a note, where none can be set; then find_control() throws
  if (!prepared.original.execution_parameters.empty() || std::ranges::any_of(prepared.space->parameters(), is_setting))
    controls = ControlSession::open(find_control(prepared, device, setup, true), {.take_over = setup.take_over});
}

/// Loads a configuration, and brings its clocks and limits into force. Throws DeviceError or UserError.
void Session::State::use(ConfigurationIndex index, const std::vector<Binary>& code) {
  const Configuration configuration = prepared.space->configuration(index);
  application.load(configuration, code);
  running = index;
  if (!controls) return;
  const ControlResult result = controls->apply(setting_of(prepared.space->parameters(), configuration));
  if (!result.ok()) throw DeviceError(DeviceFault::launch, result.message);
}

/// The next configuration is compiled where trying it fits into what the bound leaves, and runs from the round on at
/// which its code is ready.
void Session::State::begin_own_trial() {
  if (!upcoming) {
    if (allowance() <= kCaution * longest_trial) return;
    NextTrial next(search, *ledger, false);
    ledger->drive(next);
    settled = !next.found;
    if (settled) return ledger->set_phase("settled");
    upcoming = next.found;
    compiled = std::async(std::launch::async, [this, configuration = prepared.space->configuration(upcoming->index)] {
      const double began = host_seconds();
      std::vector<Binary> code = application.compile(configuration);
      return CompiledTrial{std::move(code), host_seconds() - began};
    });
  }
  if (compiled.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  trial = OwnTrial{*std::exchange(upcoming, std::nullopt)};
  try {
    const CompiledTrial ready = compiled.get();
    trial->compile_seconds = ready.seconds;
    use(trial->wanted.index, ready.code);
    trial->load_seconds = host_seconds() - trial->began;
    trial->began += trial->load_seconds;
    trial->settling = settling();
  } catch (const Error& error) {
    Measurement failed;  // if it is loaded, its clocks or limits are what failed
    failed.status = running == trial->wanted.index ? Status::unsupported : Status::compile_error;
    failed.message = error.what();
    failed.compile_seconds = trial->compile_seconds;
    end_own_trial(std::move(failed));
  }
}

/// A quantity of a round with the default configuration; 0 until it is known.
double Session::State::of_default(const std::string& quantity) const {
  const ConfigurationResult* known = ledger->find(start);
  return known ? known->measurement.value(quantity).value_or(0) : 0;
}

/// What time without rounds costs: where energy counts, as much as the default draws.
double Session::State::cost_of_seconds(double seconds) const {
  const double time = of_default("time");
  return !monitor ? seconds : time > 0 ? seconds * of_default("energy") / time : 0;
}

/// Whether the configuration on trial needs further rounds: one that takes far longer than the default is known to be
/// slower.
bool Session::State::goes_on() {
  if (monitor) return !trial->measure_energy(*monitor);
  const double before = of_default("time");
  const auto measured = static_cast<std::size_t>(trial->ends.end() - trial->settled());
  const bool loses = before > 0 && trial->seconds.back() > kCaution * before;
  return measured == 0 || (measured < kOwnRounds && !loses);
}

void Session::State::end_own_trial(Measurement measurement) {
  const ConfigurationRequest wanted = trial->wanted;
  const auto rounds = static_cast<double>(trial->seconds.size());
  const double loading = trial->load_seconds;
  trial.reset();
  if (monitor && rounds > 0 && !measurement.quantities.contains("energy")) {
    measurement.status = Status::runtime_error;
    measurement.message = fmt::format("the sensor does not resolve the energy of the rounds of {:g} s", kMostSpan);
  }
  const std::string unit = monitor ? "energy" : "time";
  const double each = measurement.value(unit).value_or(of_default(unit));
  own->measurement = std::move(measurement);
  ListSource one({wanted.index}, [&](const ConfigurationRequest&, const Measurement& taken, bool fresh) {
    if (wanted.index == start)
      search.learn(wanted, taken, fresh);
    else
      search.take(wanted, taken, fresh);
    return true;
  });
  ledger->drive(one);
  double longest = cost_of_seconds(loading);
  if (monitor) {
    spent += longest + rounds * each;
    with_default += rounds * of_default(unit);
  }
  if (wanted.index == start) {
    if (!standing.best())
      throw UserError(fmt::format("own rounds measure time{}, which does not give the objective \"{}\"{}{}",
                                  monitor ? " and energy" : "", standing.objective().name(),
                                  own->measurement.message.empty() ? "" : ": ", own->measurement.message));
    longest += rounds * each;
    search.begin();
  } else {
    longest += rounds * (each - of_default(unit));
  }
  longest_trial = std::max(tried > 0 ? longest_trial : 0, longest);
  tried += wanted.index != start;
  use_best();
}

void Session::State::own_round(OnlineIteration& round) {
  const double began = host_seconds();
  if (!settled && !trial) begin_own_trial();
  const double ready = host_seconds();
  round.configuration = running;
  round.device_seconds = application.run();
  const double ended = host_seconds(), ran = ended - ready, before = of_default("time");
  if (!monitor) {
    with_default += trial ? ran - round.device_seconds + (before > 0 ? before : round.device_seconds) : ran * gain();
  } else if (!trial) {
    spent += ledger->find(running)->measurement.value("energy").value_or(of_default("energy"));
    with_default += of_default("energy");
  }
  if (trial) {
    trial->seconds.push_back(round.device_seconds);
    trial->ends.push_back(ended);
    if (!goes_on()) {
      if (trial->wanted.index != start) round.tried = trial->wanted.index;
      end_own_trial(trial->measurement());
    }
  }
  round.seconds = host_seconds() - began;
  if (!monitor) spent += round.seconds;
}

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

void Session::State::round_beside_trials(OnlineIteration& round) {
  const double began = host_seconds();
  if (!settled && allowance() > kCaution * longest_trial) try_one(round);
  const double ready = host_seconds();
  round.configuration = running;
  round.device_seconds = application.run();
  const double ended = host_seconds();
  round.seconds = ended - began;
  spent += round.seconds;
  with_default += (ended - ready) * gain();
}

void Session::State::try_one(OnlineIteration& round) {
  const double began = host_seconds();
  NextTrial next(search, *ledger, true);
  ledger->drive(next);
  settled = !next.found;
  if (settled) return ledger->set_phase("settled");
  ++tried;
  round.tried = next.found->index;
  use_best();
  longest_trial = std::max(longest_trial, host_seconds() - began);
}

void Session::State::use_best() {
  const auto best = standing.best();
  if (!best || *best == running) return;
  try {
    use(*best);
  } catch (const DeviceError&) {
    // It works in a worker but not here: the iterations keep the current configuration.
  }
}

Session::Session(Problem problem, SetupOptions setup, OnlineOptions options) {
  if (!options.own_rounds) problem.execution_parameters.clear();  // trials must not change the clocks of the rounds
  state_ = std::make_unique<State>(std::move(problem), std::move(setup), std::move(options));
}
Session::~Session() = default;

OnlineIteration Session::next_round() {
  State& state = *state_;
  OnlineIteration round;
  state.own ? state.own_round(round) : state.round_beside_trials(round);
  round.number = ++state.rounds;
  round.settled = state.settled;
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
double Session::ratio() const { return state_->ratio(); }
double Session::worst_ratio() const { return state_->worst; }

}  // namespace ergotune
