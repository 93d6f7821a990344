// Searches with many slots, replayed: an evaluation takes a slot as long as it took when it was recorded.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <queue>
#include <thread>

#include "base/statistics.hpp"
#include "ergotune/strategy.hpp"
#include "nodes.hpp"
#include "scoring/score.hpp"

namespace ergotune::bench {
namespace {

struct Point {
  double at = 0, best = 0;  ///< s, and the best so far
};

struct Search {
  std::vector<Point> improvements;
  double end = 0;
};

Search search(const ScoredSpace& space, const std::string& strategy_name, std::size_t slots, std::size_t evaluations,
              std::uint64_t seed) {
  StrategyContext context;
  context.space = &space.space();
  context.seed = seed;
  const auto strategy = make_strategy(strategy_name, context);
  using Running = std::pair<double, ConfigurationIndex>;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running;
  Search result;
  double now = 0, best = std::numeric_limits<double>::infinity();
  for (std::size_t requested = 0;;) {
    const std::size_t room = std::min(slots - running.size(), evaluations - requested);
    for (const ConfigurationIndex index : room > 0 ? strategy->ask(room) : std::vector<ConfigurationIndex>()) {
      running.emplace(now + std::max(1e-3, space.state().table.seconds(index)), index);
      ++requested;
    }
    if (running.empty()) break;
    const auto [at, index] = running.top();
    running.pop();
    now = at;
    Outcome outcome;
    const double value = space.state().values[index];
    outcome.ok = std::isfinite(value);
    if (outcome.ok) outcome.values = {value};
    outcome.seconds = space.state().table.seconds(index) / static_cast<double>(slots);
    if (outcome.ok && value < best) {
      best = value;
      result.improvements.push_back({now, best});
    }
    strategy->tell(index, outcome);
  }
  result.end = now;
  return result;
}

/// When a search first had something as good; its end where it never did.
double time_to(const Search& search, double value) {
  for (const Point& point : search.improvements)
    if (point.best <= value * (1 + 1e-9)) return point.at;
  return search.end;
}
double best_of(const Search& search) {
  return search.improvements.empty() ? std::numeric_limits<double>::infinity() : search.improvements.back().best;
}

}  // namespace

int parallel(int count, char** arguments) {
  const auto repeats = static_cast<std::size_t>(std::stoul(option(count, arguments, "repeats", "20")));
  const auto evaluations = static_cast<std::size_t>(std::stoul(option(count, arguments, "evaluations", "150")));
  const auto threads = static_cast<std::size_t>(std::stoul(option(count, arguments, "threads", "1")));
  const std::string strategy = option(count, arguments, "strategy", "auto");
  std::vector<std::size_t> slots;
  for (const std::string& text : split(option(count, arguments, "slots", "1,2,4,8,16,64")))
    slots.push_back(std::stoul(text));
  std::vector<ScoredSpace> spaces;
  for (const std::string& file : split(arguments[0])) spaces.emplace_back(load_recording(file));
  // [slots][space][repeat]
  std::vector<std::vector<std::vector<Search>>> runs(
      slots.size(), std::vector<std::vector<Search>>(spaces.size(), std::vector<Search>(repeats)));
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> workers;
  for (std::size_t t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      for (std::size_t i = next++; i < slots.size() * spaces.size() * repeats; i = next++) {
        const std::size_t s = i / (spaces.size() * repeats), space = i / repeats % spaces.size(), repeat = i % repeats;
        // Many slots spend evaluations where one spends time: they may have as many more as it takes them.
        const std::size_t most = slots[s] == 1 ? evaluations : 2 * evaluations + 4 * slots[s];
        runs[s][space][repeat] = search(spaces[space], strategy, slots[s], most, 1 + repeat);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  fmt::print("{}, {} evaluations with one slot, {} repeats; replayed. The answer is the best that one slot finds.\n",
             strategy, evaluations, repeats);
  fmt::print("{:>6} {:>26} {:>22} {:>14} {:>30}\n", "slots", "time to the answer, share", "speed-up", "answer found",
             "loss at one slot's count, %");
  for (std::size_t s = 0; s < slots.size(); ++s) {
    std::vector<double> shares, losses;
    double one_sum = 0, sum = 0, found = 0;
    std::vector<std::string> by_space;
    for (std::size_t space = 0; space < spaces.size(); ++space) {
      double space_one = 0, space_sum = 0;
      for (std::size_t r = 0; r < repeats; ++r) {
        const Search& one = runs[0][space][r];
        const double answer = best_of(one), alone = time_to(one, answer), here = time_to(runs[s][space][r], answer);
        shares.push_back(here / alone);
        space_one += alone;
        space_sum += here;
        found += best_of(runs[s][space][r]) <= answer * (1 + 1e-9);
        // what it has when it has spent as much GPU time as the one slot's whole search
        double best = std::numeric_limits<double>::infinity();
        for (const Point& point : runs[s][space][r].improvements)
          if (point.at * static_cast<double>(slots[s]) <= one.end * (1 + 1e-9)) best = point.best;
        losses.push_back(std::isfinite(best) ? 100 * (best / spaces[space].optimum() - 1) : 100);
      }
      one_sum += space_one;
      sum += space_sum;
      by_space.push_back(fmt::format("{} {:.3f}", spaces[space].name(), space_sum / space_one));
    }
    std::sort(shares.begin(), shares.end());
    fmt::print("{:>6} {:>12.3f} (median {:.3f}) {:>20.2f} {:>11.0f} % {:>20.2f} (mean) {:.2f} (median)\n", slots[s],
               sum / one_sum, median(shares), one_sum / sum, 100 * found / static_cast<double>(shares.size()),
               mean(losses), median(losses));
    for (const std::string& message : by_space) fmt::print("         {}\n", message);
  }
  return 0;
}

}  // namespace ergotune::bench
