#include "tables.hpp"

#include <fmt/format.h>
#include <time.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <sstream>
#include <thread>

#include "base/statistics.hpp"
#include "cliffs.hpp"
#include "ergotune/problem_file.hpp"
#include "ergotune/strategy.hpp"
#include "evaluate/recorded/simulated.hpp"
#include "scoring/tune_strategy.hpp"

namespace ergotune::cliffs {
namespace {

constexpr std::size_t kLooks[] = {25, 50, 100, 200, 400};
constexpr std::size_t kLookCount = std::size(kLooks);

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// A space whose values are all known.
struct Landscape {
  std::string title;
  std::shared_ptr<const void> owner;
  const SearchSpace* space = nullptr;
  /// By configuration and seed of the search: a simulated value has the noise of its seed. No values: it fails.
  std::function<Outcome(ConfigurationIndex, std::uint64_t)> outcome;
  double optimum = std::numeric_limits<double>::infinity(), worst = 0;
};

Outcome outcome_of(double value, double block_need) {
  Outcome outcome;
  outcome.ok = std::isfinite(value);
  if (outcome.ok) outcome.values = {value};
  outcome.block_need = block_need;
  return outcome;
}

Landscape drawn(std::uint64_t seed) {
  const auto space = std::make_shared<const Space>(draw_options(seed));
  const Options& o = space->options();
  std::string title = fmt::format(
      "space {}: {} parameters ({} idle), {} configurations, {:.0f} % failing, margin {:.2f}, {} basins, plateau "
      "{:.3f}",
      seed, o.parameters, o.idle, space->space().size(), 100 * space->failing(), o.margin, o.basins, o.plateau);
  const auto outcome = [space](ConfigurationIndex index, std::uint64_t) { return outcome_of(space->value(index), 0); };
  return {std::move(title), space, &space->space(), outcome, space->optimum(), space->worst()};
}

/// The energy of a problem on a simulated device. The optimum is that of the noisy values of the first seed.
Landscape simulated(const std::string& file, const std::string& device) {
  struct Simulation {
    std::optional<SearchSpace> space;
    std::vector<SimulatedDevice> devices;
    Outcome outcome(ConfigurationIndex index, std::uint64_t seed) const {
      const Measurement m = devices.at(seed - 1).measure(space->configuration(index));
      return outcome_of(m.ok() ? *m.value("energy") : std::numeric_limits<double>::infinity(),
                        m.value("block_need").value_or(0));
    }
  };
  constexpr std::uint64_t kSeeds = 30;
  const DeviceProfile profile = load_device_profile(device);
  const Problem problem = load_problem(file);
  const auto simulation = std::make_shared<Simulation>();
  simulation->space.emplace(problem.build_space(problem.constants_for(profile.name, profile.properties)));
  for (SimulationOptions options; options.seed <= kSeeds; ++options.seed)
    simulation->devices.emplace_back(profile, problem, simulation->space->parameters(), options);
  Landscape landscape{file, simulation, &*simulation->space,
                      [simulation](auto index, auto seed) { return simulation->outcome(index, seed); }};
  std::uint64_t failed = 0;
  for (ConfigurationIndex i = 0; i < landscape.space->size(); ++i) {
    const Outcome outcome = simulation->outcome(i, 1);
    failed += !outcome.ok;
    if (!outcome.ok) continue;
    landscape.optimum = std::min(landscape.optimum, outcome.values.front());
    landscape.worst = std::max(landscape.worst, outcome.values.front());
  }
  landscape.title += fmt::format(
      " on {}: {} configurations, {:.0f} % failing, optimum {:.5g} J", device, landscape.space->size(),
      100.0 * static_cast<double>(failed) / static_cast<double>(landscape.space->size()), landscape.optimum);
  return landscape;
}

struct Run {
  std::vector<double> loss;  // per look: best over optimum, less one
  double thought = 0;        // s per evaluation
};

// "auto", or with hyperparameters "bayesian:ceiling=0.85".
std::unique_ptr<Strategy> strategy_of(const std::string& text, StrategyContext context) {
  std::istringstream parts(text);
  std::string name;
  std::getline(parts, name, ':');
  for (std::string option; std::getline(parts, option, ':');) {
    const auto equals = option.find('=');
    context.options[option.substr(0, equals)] = strategy_option_value(option.substr(equals + 1));
  }
  return make_strategy(name, context);
}

Run search_once(const Landscape& cliffs, const std::string& strategy_name, std::uint64_t seed,
                const TableOptions& options) {
  StrategyContext context;
  context.space = cliffs.space;
  context.seed = seed;
  const double start = cpu_seconds();
  const auto strategy = strategy_of(strategy_name, context);
  Run run;
  double best = cliffs.worst;
  std::size_t done = 0;
  std::deque<ConfigurationIndex> under_way;
  while (done < options.evaluations) {
    for (const ConfigurationIndex index : strategy->ask(options.slots - under_way.size())) under_way.push_back(index);
    if (under_way.empty()) break;
    const ConfigurationIndex index = under_way.front();
    under_way.pop_front();
    Outcome outcome = cliffs.outcome(index, seed);
    outcome.seconds = options.seconds;
    if (outcome.ok) best = std::min(best, outcome.values.front());
    strategy->tell(index, outcome);
    if (++done == kLooks[std::min(run.loss.size(), kLookCount - 1)]) run.loss.push_back(best / cliffs.optimum - 1);
  }
  run.loss.resize(kLookCount, best / cliffs.optimum - 1);
  run.thought = (cpu_seconds() - start) / static_cast<double>(std::max<std::size_t>(1, done));
  return run;
}

struct Summary {
  double mean = 0, error = 0;
};

Summary summary(const std::vector<Run>& runs, std::size_t look) {
  std::vector<double> losses;
  for (const Run& run : runs) losses.push_back(run.loss[look]);
  Summary s{mean(losses), 0};
  for (const double loss : losses) s.error += (loss - s.mean) * (loss - s.mean);
  const double n = static_cast<double>(losses.size());
  s.error = n > 1 ? std::sqrt(s.error / (n - 1) / n) : 0.0;
  return s;
}

}  // namespace

namespace {

using Runs = std::map<std::string, std::vector<Run>>;

struct Searched {
  Landscape space;
  Runs runs;
};

void on_threads(int wanted, std::size_t jobs, const std::function<void(std::size_t)>& job) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t at = next++; at < jobs; at = next++) job(at);
  };
  const int threads = wanted > 0 ? wanted : static_cast<int>(std::thread::hardware_concurrency());
  std::vector<std::jthread> pool;
  for (int i = 1; i < threads; ++i) pool.emplace_back(work);
  work();
}

// Some spaces at a time, so that every thread has something to do until nearly the end.
std::vector<Searched> search_block(const TableOptions& options, std::size_t done, std::size_t count) {
  std::vector<Searched> block(count);
  on_threads(options.threads, count, [&](std::size_t i) {
    block[i].space =
        options.files.empty() ? drawn(options.first + done + i) : simulated(options.files[done + i], options.device);
    for (const std::string& name : options.strategies) block[i].runs[name].resize(options.repeats);
  });
  const std::size_t each = options.repeats * options.strategies.size();
  on_threads(options.threads, count * each, [&](std::size_t job) {
    Searched& at = block[job / each];
    const std::string& name = options.strategies[job % each / options.repeats];
    const std::size_t repeat = job % options.repeats;
    at.runs.at(name)[repeat] = search_once(at.space, name, 1 + repeat, options);
  });
  return block;
}

struct Totals {
  std::size_t behind[kLookCount] = {};
  std::map<std::string, std::vector<double>> means[kLookCount];
};

void print_space(const Searched& searched, const TableOptions& options, Totals& totals) {
  fmt::print("{}\n", searched.space.title);
  for (const std::string& name : options.strategies) {
    const std::vector<Run>& runs = searched.runs.at(name);
    std::string line = fmt::format("  {:<16}", name);
    for (std::size_t l = 0; l < kLookCount; ++l) {
      const Summary here = summary(runs, l);
      bool worse = false;
      if (name != "random" && searched.runs.count("random") > 0) {
        const Summary random = summary(searched.runs.at("random"), l);
        worse = here.mean - random.mean > 2 * std::hypot(here.error, random.error) + 1e-12;
      }
      if (name == options.strategies.front()) totals.behind[l] += worse;
      totals.means[l][name].push_back(here.mean);
      line += fmt::format(" {:>8.2f}{}", 100 * here.mean, worse ? '*' : ' ');
    }
    double thought = 0;
    for (const Run& run : runs) thought += run.thought / static_cast<double>(runs.size());
    fmt::print("{} {:>9.1f} us\n", line, 1e6 * thought);
  }
  std::fflush(stdout);
}

}  // namespace

void print_table(const TableOptions& options) {
  constexpr std::size_t kBlock = 8;
  fmt::print("loss in % of the optimum, mean over {} seeds, after 25, 50, 100, 200, 400 evaluations; * behind random\n",
             options.repeats);
  Totals totals;
  for (std::size_t done = 0; done < options.spaces; done += kBlock) {
    const std::size_t count = std::min(kBlock, options.spaces - done);
    const std::vector<Searched> block = search_block(options, done, count);
    for (std::size_t i = 0; i < count; ++i) print_space(block[i], options, totals);
  }
  for (const std::string& name : options.strategies) {
    std::string line = fmt::format("{:<10} median / mean", name);
    for (auto& look : totals.means)
      line += fmt::format(" {:>6.2f}/{:<6.2f}", 100 * median(look[name]), 100 * mean(look[name]));
    fmt::print("{}\n", line);
  }
  const auto& behind = totals.behind;
  fmt::print("{} behind random on {} {} {} {} {} of {} spaces\n", options.strategies.front(), behind[0], behind[1],
             behind[2], behind[3], behind[4], options.spaces);
}

}  // namespace ergotune::cliffs
