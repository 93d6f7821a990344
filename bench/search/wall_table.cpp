#include "tables.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <thread>

#include "base/statistics.hpp"
#include "ergotune/strategy.hpp"
#include "scoring/score.hpp"

namespace ergotune {
namespace {

constexpr std::size_t kAhead = 3;  ///< that a live evaluator takes beyond its compile workers

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Run {
  std::vector<double> loss;  ///< per look
  double evaluations = 0, seconds = 0;
  double best_at = 0, evaluations_after = 0;  ///< s until the best (to 0.1 %), and what came after it
  double thought = 0;
};

struct Waiting {
  double ready = 0;  ///< compiled, s
  ConfigurationIndex index = 0;
};

class Session {
 public:
  Session(const ScoredSpace& scored, const WallTableOptions& options)
      : scored_(scored), options_(options), seats_(options.jobs, 0.0) {}

  Run run(const std::string& name, std::uint64_t seed) {
    StrategyContext context;
    context.space = &scored_.space();
    context.seed = seed;
    context.clock = thread_seconds;
    const double end = options_.looks.back();
    Run run;
    double best = std::numeric_limits<double>::infinity();
    std::unique_ptr<Strategy> strategy;
    think(run, [&] { strategy = make_strategy(name, context); });
    for (;;) {
      std::vector<ConfigurationIndex> requested;
      think(run, [&] { requested = strategy->ask(options_.jobs + kAhead - waiting_.size()); });
      for (const ConfigurationIndex index : requested) compile(index);
      if (waiting_.empty()) break;
      const ConfigurationIndex index = measure();
      while (run.loss.size() < options_.looks.size() && now_ >= options_.looks[run.loss.size()])
        run.loss.push_back(best / scored_.optimum() - 1);
      if (now_ >= end) break;
      const Outcome outcome = reported(index);
      ++run.evaluations;
      if (outcome.ok && outcome.values.front() < best * 0.999) {
        run.best_at = now_;
        run.evaluations_after = 0;
      }
      if (outcome.ok) best = std::min(best, outcome.values.front());
      ++run.evaluations_after;
      think(run, [&] { strategy->tell(index, outcome); });
    }
    run.seconds = std::min(now_, end);
    run.loss.resize(options_.looks.size(), best / scored_.optimum() - 1);
    return run;
  }

 private:
  const ReplayTable& table() const { return scored_.state().table; }
  Measurement recorded(ConfigurationIndex index) const { return table().recording().measurement(table().row(index)); }

  template <class Work>
  void think(Run& run, Work&& work) {
    const double before = thread_seconds();
    work();
    const double took = thread_seconds() - before;
    run.thought += took;
    now_ += took;
  }

  void compile(ConfigurationIndex index) {
    auto seat = std::ranges::min_element(seats_);
    *seat = std::max(*seat, now_) + recorded(index).compile_seconds;
    waiting_.push_back({*seat, index});
  }

  /// What is compiled first is measured next; time goes on to its result.
  ConfigurationIndex measure() {
    const auto next =
        std::ranges::min_element(waiting_, [](const Waiting& a, const Waiting& b) { return a.ready < b.ready; });
    const ConfigurationIndex index = next->index;
    const Measurement m = recorded(index);
    runner_ = std::max(runner_, next->ready) + m.verify_seconds + m.measure_seconds;
    now_ = std::max(now_, runner_);
    waiting_.erase(next);
    return index;
  }

  Outcome reported(ConfigurationIndex index) {
    const double value = scored_.state().values[index];
    const Measurement m = recorded(index);
    Outcome outcome;
    outcome.ok = std::isfinite(value);
    if (outcome.ok) outcome.values = {value};
    outcome.seconds =
        std::max(m.verify_seconds + m.measure_seconds, m.compile_seconds / static_cast<double>(options_.jobs));
    return outcome;
  }

  const ScoredSpace& scored_;
  const WallTableOptions& options_;
  std::vector<double> seats_;  ///< when each compile worker is free
  std::deque<Waiting> waiting_;
  double now_ = 0, runner_ = 0;
};

double mean_of(const std::vector<Run>& runs, double (*value)(const Run&)) {
  double sum = 0;
  for (const Run& run : runs) sum += value(run);
  return sum / static_cast<double>(runs.size());
}

void print_strategy(const std::string& name, const std::vector<Run>& runs, std::size_t looks) {
  std::string line = fmt::format("{:<12}", name);
  for (std::size_t l = 0; l < looks; ++l) {
    std::vector<double> losses;
    for (const Run& run : runs) losses.push_back(100 * run.loss[l]);
    std::ranges::sort(losses);
    line += fmt::format(" {:>6.2f} ({:.2f} to {:.2f})", mean(losses), losses.front(), losses.back());
  }
  fmt::print("{} {:>8.1f} {:>8.1f} {:>8.1f} {:>7.1f}\n", line,
             mean_of(runs, [](const Run& r) { return r.evaluations / r.seconds; }),
             mean_of(runs, [](const Run& r) { return r.best_at; }),
             mean_of(runs, [](const Run& r) { return r.evaluations_after / std::max(1e-9, r.seconds - r.best_at); }),
             mean_of(runs, [](const Run& r) { return 1e3 * r.thought / r.evaluations; }));
}

}  // namespace

void print_wall_table(const WallTableOptions& options) {
  const ScoredSpace scored(load_recording(options.file));
  fmt::print("{}: {} configurations, {} failed; replayed with their costs, {} compile workers, {} seeds\n",
             scored.name(), scored.space().size(), scored.failed(), options.jobs, options.repeats);
  fmt::print("loss in % of the optimum, mean (least to most), after");
  for (const double look : options.looks) fmt::print(" {:g}", look);
  fmt::print(" s; configurations a second; s to the best; a second after it; ms of thought each\n");
  for (const std::string& name : options.strategies) {
    std::vector<Run> runs(options.repeats);
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t r = next++; r < runs.size(); r = next++)
        runs[r] = Session(scored, options).run(name, options.first + r);
    };
    {
      std::vector<std::jthread> pool;
      const int threads = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
      for (int i = 1; i < threads; ++i) pool.emplace_back(work);
      work();
    }
    print_strategy(name, runs, options.looks.size());
  }
}

}  // namespace ergotune
