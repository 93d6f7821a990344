#include "prior_table.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <map>
#include <thread>

#include "scoring/score.hpp"
#include "search/models/prior.hpp"

namespace ergotune {
namespace {

using Priors = std::vector<PriorResults>;

/// As if measured another time, with 1 % noise, for each seed, or every seed would see the same search.
PriorResults changed(PriorResults prior, const std::string& kind, std::uint64_t seed) {
  Random noise(seed);
  for (auto& [index, outcome] : prior.outcomes)
    if (outcome.ok) outcome.values.front() *= 1 + 0.01 * noise.normal();
  std::vector<double> values;
  for (auto& [index, outcome] : prior.outcomes)
    if (outcome.ok) values.push_back(outcome.values.front());
  Random random(seed);
  if (kind == "shuffled") random.shuffle(std::span<double>(values));
  std::size_t next = 0;
  for (auto& [index, outcome] : prior.outcomes) {
    if (!outcome.ok) continue;
    outcome.values.front() = kind == "inverted" ? 1 / values[next] : values[next];
    ++next;
  }
  return prior;
}

std::size_t evaluations_to_one_percent(const ScoredSpace& target, const Priors& priors, std::uint64_t seed,
                                       const PriorTableOptions& options, bool& arrived) {
  StrategyContext context;
  context.space = &target.space();
  context.seed = seed;
  context.priors = priors;
  const auto strategy = make_strategy(options.strategy, context);
  for (std::size_t done = 1; done <= options.evaluations; ++done) {
    const auto requested = strategy->ask(1);
    if (requested.empty()) break;
    const double value = target.state().values[requested.front()];
    Outcome outcome;
    outcome.ok = std::isfinite(value);
    if (outcome.ok) outcome.values = {value};
    strategy->tell(requested.front(), outcome);
    arrived = value <= target.optimum() + 0.01 * std::abs(target.optimum());
    if (arrived) return done;
  }
  return options.evaluations;
}

}  // namespace

void print_prior_table(const PriorTableOptions& options) {
  std::vector<Recording> recordings;
  std::vector<ScoredSpace> targets;
  for (const std::string& file : options.files) {
    recordings.push_back(load_recording(file));
    targets.emplace_back(recordings.back());
  }
  const std::vector<std::string>& kinds = options.kinds;
  std::vector<double> logs(kinds.size(), 0.0);
  fmt::print("replayed: expected evaluations to 1 % of the optimum, {} seeds\n{:<24}", options.repeats, "");
  for (const std::string& kind : kinds) fmt::print(" {:>10}", kind);
  fmt::print("\n");
  for (std::size_t t = 0; t < targets.size(); ++t) {
    Priors others, foreign;
    for (std::size_t r = 0; r < recordings.size(); ++r) {
      if (r == t) continue;
      (recordings[r].name == recordings[t].name ? others : foreign)
          .push_back(prior_results(recordings[r], targets[t].space(),
                                   Objective::parse(recordings[t].objective, recordings[t].metrics)));
    }
    std::vector<std::atomic<std::size_t>> spent(kinds.size()), arrivals(kinds.size());
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t job = next++; job < kinds.size() * options.repeats; job = next++) {
        const std::string& kind = kinds[job / options.repeats];
        const std::uint64_t seed = options.first + job % options.repeats;
        Priors priors;
        if (kind != "none")
          for (const PriorResults& other : kind == "foreign" ? foreign : others)
            priors.push_back(changed(other, kind, seed));
        bool arrived = false;
        spent[job / options.repeats] += evaluations_to_one_percent(targets[t], priors, seed, options, arrived);
        arrivals[job / options.repeats] += arrived;
      }
    };
    {
      std::vector<std::jthread> pool;
      const int threads = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
      for (int i = 1; i < threads; ++i) pool.emplace_back(work);
      work();
    }
    fmt::print("{:<24}", targets[t].name());
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      const double expected = static_cast<double>(spent[k]) / std::max(1.0, static_cast<double>(arrivals[k].load()));
      logs[k] += std::log(expected) / static_cast<double>(targets.size());
      fmt::print(" {:>10.1f}", expected);
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  fmt::print("{:<24}", "geometric mean");
  for (const double log : logs) fmt::print(" {:>10.1f}", std::exp(log));
  fmt::print("\n");
}

}  // namespace ergotune
