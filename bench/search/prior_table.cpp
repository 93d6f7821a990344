#include "tables.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "base/statistics.hpp"
#include "scoring/score.hpp"
#include "search/models/prior.hpp"

namespace ergotune {
namespace {

constexpr std::size_t kLook = 50, kCompared = 10;

PriorResults misleading(PriorResults prior, const std::string& kind) {
  std::vector<double> values;
  for (const auto& [index, outcome] : prior.outcomes)
    if (outcome.ok) values.push_back(outcome.values.front());
  if (kind == "shuffled") Random(1).shuffle(std::span<double>(values));
  std::size_t next = 0;
  for (auto& [index, outcome] : prior.outcomes)
    if (outcome.ok) outcome.values.front() = kind == "inverted" ? 1 / values[next++] : values[next++];
  return prior;
}

/// A target with a prior, searched once for each seed.
struct Case {
  std::string name, kind;
  std::size_t target = 0;
  std::vector<PriorResults> priors = {};
  std::vector<std::size_t> spent = {};
  std::vector<bool> arrived = {};
  std::vector<double> loss = {};
  std::vector<std::vector<ConfigurationIndex>> first = {};

  double expected() const {
    double all = 0, arrivals = 0;
    for (std::size_t i = 0; i < spent.size(); ++i) all += static_cast<double>(spent[i]), arrivals += arrived[i];
    return all / std::max(1.0, arrivals);
  }
  std::size_t different() const { return std::set(first.begin(), first.end()).size(); }
};

void search_once(Case& one, std::size_t repeat, const ScoredSpace& target, const PriorTableOptions& options) {
  StrategyContext context;
  context.space = &target.space();
  context.seed = options.first + repeat;
  context.priors = one.priors;
  const auto strategy = make_strategy(options.strategy, context);
  const double enough = target.optimum() + 0.01 * std::abs(target.optimum());
  double best = std::numeric_limits<double>::infinity();
  one.spent[repeat] = options.evaluations;
  for (std::size_t done = 1; done <= options.evaluations; ++done) {
    const auto requested = strategy->ask(1);
    if (requested.empty()) break;
    if (done <= kCompared) one.first[repeat].push_back(requested.front());
    const double value = target.state().values[requested.front()];
    Outcome outcome;
    outcome.ok = std::isfinite(value);
    if (outcome.ok) outcome.values = {value};
    strategy->tell(requested.front(), outcome);
    best = std::min(best, value);
    if (done <= kLook) one.loss[repeat] = best / target.optimum() - 1;
    if (best <= enough && !one.arrived[repeat]) one.arrived[repeat] = true, one.spent[repeat] = done;
    if (best <= enough && done >= kLook) break;
  }
}

}  // namespace

void print_prior_table(const PriorTableOptions& options) {
  std::vector<Recording> recordings;
  std::vector<ScoredSpace> targets;
  for (const std::string& file : options.files) {
    recordings.push_back(load_recording(file));
    targets.emplace_back(recordings.back());
  }
  std::vector<Case> cases;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    cases.push_back({targets[t].name(), "none", t});
    bool foreign = false;
    for (std::size_t s = 0; s < targets.size(); ++s) {
      const bool family = recordings[s].name == recordings[t].name;
      if (s == t || (!family && foreign)) continue;
      foreign = foreign || !family;
      const PriorResults prior = prior_results(recordings[s], targets[t].space(),
                                               Objective::parse(recordings[t].objective, recordings[t].metrics));
      for (const std::string& kind : options.kinds)
        if (family != (kind == "foreign"))
          cases.push_back({targets[t].name() + " <- " + targets[s].name(), kind, t, {misleading(prior, kind)}});
    }
  }
  for (Case& one : cases) {
    one.spent.resize(options.repeats);
    one.arrived.resize(options.repeats);
    one.loss.resize(options.repeats);
    one.first.resize(options.repeats);
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {  // each thread has whole cases
    for (std::size_t at = next++; at < cases.size(); at = next++)
      for (std::size_t repeat = 0; repeat < options.repeats; ++repeat)
        search_once(cases[at], repeat, targets[cases[at].target], options);
  };
  {
    std::vector<std::jthread> pool;
    const int threads = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
    for (int i = 1; i < threads; ++i) pool.emplace_back(work);
    work();
  }
  fmt::print(
      "replayed, {} seeds: expected evaluations to 1 %, and of those without a prior; loss in % after {}, and without "
      "a prior; searches that differ\n",
      options.repeats, kLook);
  struct Total {
    double log = 0, log_none = 0;
    std::size_t count = 0, behind = 0;
  };
  std::map<std::string, Total> totals;
  const Case* none = nullptr;
  for (const Case& one : cases) {
    if (one.kind == "none") none = &one;
    Total& total = totals[one.kind];
    ++total.count;
    total.log += std::log(one.expected());
    total.log_none += std::log(none->expected());
    const bool behind = mean(one.loss) > mean(none->loss) + 1e-9;
    total.behind += behind;
    fmt::print("{:<9} {:<54} {:>7.1f} {:>7.1f} {:>8.2f} {:>8.2f}{} {:>4}\n", one.kind, one.name, one.expected(),
               none->expected(), 100 * mean(one.loss), 100 * mean(none->loss), behind ? '*' : ' ', one.different());
  }
  for (const auto& [kind, total] : totals)
    fmt::print("{:<9} geometric mean {:.1f}, without a prior {:.1f}; behind after {} on {} of {}\n", kind,
               std::exp(total.log / static_cast<double>(total.count)),
               std::exp(total.log_none / static_cast<double>(total.count)), kLook, total.behind, total.count);
}

}  // namespace ergotune
