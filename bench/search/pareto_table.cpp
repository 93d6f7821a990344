#include "tables.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <thread>

#include "cliffs.hpp"
#include "ergotune/strategy.hpp"
#include "evaluate/recorded/replay.hpp"
#include "search/pareto.hpp"

namespace ergotune {
namespace {

using Points = std::vector<std::vector<double>>;

constexpr std::size_t kLooks[] = {50, 100, 200};

/// A space whose objectives are all known.
struct Known {
  std::string name;
  std::shared_ptr<const void> owner;
  const SearchSpace* space = nullptr;
  Points values;  ///< by configuration; empty for a failure
  std::vector<double> reference;
  double volume = 0;

  void finish() {
    Points ok;
    for (const auto& v : values)
      if (!v.empty()) ok.push_back(v);
    Points front;
    for (const std::size_t f : pareto_front(ok)) front.push_back(ok[f]);
    reference.assign(front.front().size(), 0.0);
    for (const auto& p : front)
      for (std::size_t o = 0; o < p.size(); ++o) reference[o] = std::max(reference[o], 1.1 * p[o]);
    volume = hypervolume(front, reference);
    name += fmt::format(" ({} configurations, {} in the front)", space->size(), front.size());
  }
};

Known recorded(const std::string& file) {
  const auto table = std::make_shared<ReplayTable>(load_recording(file));
  Known known{table->recording().file.filename().string(), table, &table->space(), {}, {}, 0};
  for (ConfigurationIndex i = 0; i < table->space().size(); ++i) {
    const Measurement m = table->measurement(i);
    const auto time = m.value("time"), energy = m.value("energy");
    known.values.emplace_back();
    if (usable(m.status) && time && energy && *time > 0 && *energy > 0) known.values.back() = {*time, *energy};
  }
  known.finish();
  return known;
}

/// Power and error depend on the parameters in ways of their own: power rises with some, error falls with few.
Known drawn(std::uint64_t seed, std::size_t objectives) {
  cliffs::Options options = cliffs::draw_options(seed);
  options.largest = std::min(options.largest, 4e4);
  const auto cliffs = std::make_shared<cliffs::Space>(options);
  const SearchSpace& space = cliffs->space();
  Known known{fmt::format("drawn {}, {} objectives", seed, objectives), cliffs, &space, {}, {}, 0};
  Random random(seed + 71);
  std::vector<double> power(space.dimensions()), error(space.dimensions());
  for (double& w : power) w = random.normal();
  for (double& w : error) w = random.chance(0.4) ? random.uniform() : 0.0;
  std::vector<std::uint32_t> at(space.dimensions());
  for (ConfigurationIndex i = 0; i < space.size(); ++i) {
    known.values.emplace_back();
    if (!std::isfinite(cliffs->value(i))) continue;
    space.values_at(i, at);
    double watts = 0, wrong = 0;
    for (std::size_t p = 0; p < at.size(); ++p) {
      const double x = (at[p] + 0.5) / static_cast<double>(space.parameters()[p].values.size());
      watts += power[p] * x;
      wrong += error[p] * x;
    }
    const double time = cliffs->value(i);
    known.values.back() = {time, time * std::exp(0.5 * watts)};
    if (objectives > 2) known.values.back().push_back(1e-6 * std::exp(-2 * wrong));
  }
  known.finish();
  return known;
}

std::vector<double> reached(const Known& known, const std::string& name, std::uint64_t seed, std::size_t slots) {
  StrategyContext context;
  context.space = known.space;
  context.seed = seed;
  context.objectives = known.reference.size();
  const auto strategy = make_strategy(name, context);
  Points seen;
  std::vector<double> shares;
  std::deque<ConfigurationIndex> under_way;
  std::size_t done = 0;
  while (shares.size() < std::size(kLooks)) {
    for (const ConfigurationIndex index : strategy->ask(slots - under_way.size())) under_way.push_back(index);
    if (under_way.empty()) break;
    const ConfigurationIndex index = under_way.front();
    under_way.pop_front();
    Outcome outcome;
    outcome.values = known.values[index];
    outcome.ok = !outcome.values.empty();
    if (outcome.ok) seen.push_back(outcome.values);
    strategy->tell(index, outcome);
    if (++done != kLooks[shares.size()]) continue;
    Points front;
    for (const std::size_t f : pareto_front(seen)) front.push_back(seen[f]);
    shares.push_back(hypervolume(front, known.reference) / known.volume);
  }
  shares.resize(std::size(kLooks), shares.empty() ? 0.0 : shares.back());
  return shares;
}

}  // namespace

void print_pareto_table(const ParetoTableOptions& options) {
  std::vector<std::function<Known()>> makers;
  for (const std::string& file : options.files) makers.push_back([file] { return recorded(file); });
  for (std::size_t objectives = 2; objectives <= 3; ++objectives)
    for (std::uint64_t s = 0; s < options.spaces; ++s)
      makers.push_back([seed = options.first + s, objectives] { return drawn(seed, objectives); });
  fmt::print(
      "share of the true front's volume in %, mean over {} seeds, after 50, 100, 200 evaluations, {} at a time\n",
      options.repeats, options.slots);
  std::map<std::pair<std::size_t, std::string>, std::vector<double>> totals;
  for (const auto& make : makers) {
    const Known known = make();
    fmt::print("{}\n", known.name);
    std::vector<std::vector<double>> results(options.strategies.size() * options.repeats);
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t job = next++; job < results.size(); job = next++)
        results[job] =
            reached(known, options.strategies[job / options.repeats], 1 + job % options.repeats, options.slots);
    };
    {
      std::vector<std::jthread> pool;
      const int threads = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
      for (int i = 1; i < threads; ++i) pool.emplace_back(work);
      work();
    }
    for (std::size_t s = 0; s < options.strategies.size(); ++s) {
      std::string line = fmt::format("  {:<12}", options.strategies[s]);
      auto& total = totals[{known.reference.size(), options.strategies[s]}];
      total.resize(std::size(kLooks) + 1);
      ++total.back();
      for (std::size_t l = 0; l < std::size(kLooks); ++l) {
        double sum = 0;
        for (std::size_t r = 0; r < options.repeats; ++r) sum += results[s * options.repeats + r][l];
        line += fmt::format(" {:>6.1f}", 100 * sum / static_cast<double>(options.repeats));
        total[l] += sum / static_cast<double>(options.repeats);
      }
      fmt::print("{}\n", line);
    }
    std::fflush(stdout);
  }
  for (const auto& [what, sums] : totals)
    fmt::print("{} objectives, {:<10} mean {:>6.1f} {:>6.1f} {:>6.1f}\n", what.first, what.second,
               100 * sums[0] / sums[3], 100 * sums[1] / sums[3], 100 * sums[2] / sums[3]);
}

}  // namespace ergotune
