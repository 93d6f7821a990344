#include "scoring/score.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

#include "base/process/environment.hpp"
#include "search/objective.hpp"

namespace ergotune {

namespace {

using Run = std::vector<ForeignEvaluation>;
constexpr int kLooks[] = {25, 50, 100, 200};

// CPU time of this thread, so that concurrent runs do not affect each other's score.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct SimulatedRun {
  Run evaluations;
  double own_seconds = 0;  // per evaluation
};

SimulatedRun simulate(const ScoredSpace& scored, const std::string& strategy_name, std::uint64_t seed,
                      const std::map<std::string, Value>& options) {
  const ScoredSpace::State& state = scored.state();
  StrategyContext context;
  context.space = &scored.space();
  context.seed = seed;
  context.budget = static_cast<std::uint64_t>(
      std::max(1.0, std::ceil(state.baseline.budget / std::max(state.baseline.median_seconds, 1e-12))));
  context.options = options;

  SimulatedRun run;
  double own = 0, clock = 0;
  double mark = thread_seconds();
  const auto lap = [&] {
    const double now = thread_seconds(), spent = now - mark;
    mark = now;
    return spent;
  };
  const auto strategy = make_strategy(strategy_name, context);
  std::vector<bool> seen(scored.space().size(), false);
  while (clock + own < state.baseline.budget) {
    const auto requested = strategy->ask(1);
    own += lap();
    if (requested.empty()) break;
    for (const ConfigurationIndex index : requested) {
      clock += seen[index] ? state.repeat_seconds(index) : state.seconds(index);
      seen[index] = true;
      Outcome outcome;
      outcome.ok = std::isfinite(state.values[index]);
      if (outcome.ok) outcome.values = {state.values[index]};
      if (!state.costs_unknown) outcome.seconds = state.seconds(index);
      lap();
      strategy->tell(index, outcome);
      own += lap();
      run.evaluations.push_back({clock + own, state.values[index]});
    }
  }
  run.own_seconds = run.evaluations.empty() ? 0 : own / static_cast<double>(run.evaluations.size());
  return run;
}

// Expected number of evaluations until `target`: all evaluations divided by the number of successes.
double expected_evaluations(const std::vector<Run>& runs, double target, std::size_t& successes) {
  double spent = 0;
  successes = 0;
  for (const Run& run : runs) {
    const auto hit = std::ranges::find_if(run, [&](const auto& e) { return e.value <= target; });
    if (hit == run.end()) {
      spent += static_cast<double>(run.size());
    } else {
      spent += static_cast<double>(hit - run.begin() + 1);
      ++successes;
    }
  }
  return successes > 0 ? spent / static_cast<double>(successes) : spent;
}

double relative(const Run& run, std::size_t evaluations, double optimum) {
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(evaluations, run.size()); ++i) best = std::min(best, run[i].value);
  if (!std::isfinite(best)) return 0;
  if (best == optimum) return 1;
  return optimum < 0 ? best / optimum : optimum / best;  // negative: a transformed maximised objective
}

}  // namespace

SpaceScore score_runs(const ScoredSpace& space, const std::vector<Run>& runs) {
  const search::ScoreBaseline& baseline = space.state().baseline;
  SpaceScore result;
  result.space = space.name();

  // step 6: the curve of all repeats, fitted over ranks (0 is the best)
  const std::size_t worst = baseline.descending.size() - 1;
  std::vector<double> times, ranks, ends;
  for (const Run& run : runs) {
    double best = std::numeric_limits<double>::infinity();
    for (const ForeignEvaluation& evaluation : run) {
      best = std::min(best, evaluation.value);
      if (!std::isfinite(best)) continue;
      times.push_back(evaluation.time);
      ranks.push_back(static_cast<double>(worst - baseline.rank(best)));
    }
    ends.push_back(run.empty() ? 0.0 : run.back().time);
    result.evaluations += static_cast<double>(run.size()) / static_cast<double>(runs.size());
  }
  std::vector<double> at = baseline.times;
  if (!ends.empty())
    for (double& t : at) t = std::min(t, median(ends));
  result.values = search::decreasing_fit(times, ranks, at);
  for (double& value : result.values) {
    const double rank = std::isfinite(value) ? std::nearbyint(value) : static_cast<double>(worst);
    value = baseline.descending[worst - static_cast<std::size_t>(rank)];
  }

  // step 7
  for (std::size_t i = 0; i < baseline.times.size(); ++i) {
    const double room = baseline.curve[i] - baseline.optimum;
    result.improvement.push_back(room > 0 ? (baseline.curve[i] - result.values[i]) / room : 0.0);
  }
  result.score = mean(result.improvement);

  const double scale = std::abs(baseline.optimum);
  result.evaluations_to_5_percent =
      expected_evaluations(runs, baseline.optimum + 0.05 * scale, result.successes_5_percent);
  result.evaluations_to_1_percent =
      expected_evaluations(runs, baseline.optimum + 0.01 * scale, result.successes_1_percent);
  for (const int look : kLooks) {
    double sum = 0;
    for (const Run& run : runs) sum += relative(run, static_cast<std::size_t>(look), baseline.optimum);
    result.relative_at[look] = runs.empty() ? 0.0 : sum / static_cast<double>(runs.size());
  }
  return result;
}

StrategyScore combine_scores(const std::string& strategy, std::vector<SpaceScore> spaces) {
  StrategyScore score;
  score.strategy = strategy;
  score.improvement.assign(search::kScorePoints, 0.0);
  double log5 = 0, log1 = 0;
  const double count = static_cast<double>(spaces.size());
  for (const SpaceScore& space : spaces) {
    std::transform(score.improvement.begin(), score.improvement.end(), space.improvement.begin(),
                   score.improvement.begin(), [&](double sum, double one) { return sum + one / count; });
    log5 += std::log(space.evaluations_to_5_percent) / count;
    log1 += std::log(space.evaluations_to_1_percent) / count;
  }
  score.mean = mean(score.improvement);
  score.evaluations_to_5_percent = std::exp(log5);
  score.evaluations_to_1_percent = std::exp(log1);
  score.spaces = std::move(spaces);
  return score;
}

std::vector<StrategyScore> score_strategies(const std::vector<std::string>& strategy_names,
                                            const std::vector<ScoredSpace>& spaces, const ScoreOptions& options) {
  for (const auto& name : strategy_names) {  // reports a wrong name or option before any run
    if (spaces.empty()) break;
    StrategyContext context;
    context.space = &spaces.front().space();
    context.options = options.strategy_options;
    make_strategy(name, context);
  }
  const auto repeats = static_cast<std::size_t>(std::max(1, options.repeats));
  const std::size_t total = strategy_names.size() * spaces.size() * repeats;
  std::vector<SimulatedRun> runs(total);
  std::atomic<std::size_t> next{0}, done{0};
  std::mutex reporting;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t job = next++; job < total; job = next++) {
      try {
        const std::size_t repeat = job % repeats, space = job / repeats % spaces.size();
        runs[job] = simulate(spaces[space], strategy_names[job / repeats / spaces.size()], options.seed + repeat,
                             options.strategy_options);
      } catch (...) {
        const std::lock_guard lock(reporting);
        failure = std::current_exception();
        return;
      }
      const std::size_t finished = ++done;
      if (options.progress) {
        const std::lock_guard lock(reporting);
        options.progress(finished, total);
      }
    }
  };
  const unsigned cores = options.threads > 0 ? static_cast<unsigned>(options.threads) : usable_processors();
  {
    std::vector<std::jthread> pool;
    for (unsigned i = 1; i < std::min<std::size_t>(cores, total); ++i) pool.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);

  std::vector<StrategyScore> scores;
  for (std::size_t s = 0; s < strategy_names.size(); ++s) {
    std::vector<SpaceScore> by_space;
    for (std::size_t p = 0; p < spaces.size(); ++p) {
      std::vector<Run> of_space;
      std::vector<double> own;
      for (std::size_t r = 0; r < repeats; ++r) {
        SimulatedRun& run = runs[(s * spaces.size() + p) * repeats + r];
        of_space.push_back(std::move(run.evaluations));
        own.push_back(run.own_seconds);
      }
      by_space.push_back(score_runs(spaces[p], of_space));
      by_space.back().own_seconds = median(own);
    }
    scores.push_back(combine_scores(strategy_names[s], std::move(by_space)));
  }
  return scores;
}

ScoredSpace::ScoredSpace(Recording recording, const std::string& objective_text)
    : state_(new State{.table = ReplayTable(std::move(recording))}) {
  const Recording& source = state_->table.recording();
  ObjectiveSpec spec;
  if (objective_text.empty())
    spec = source.objective;
  else
    spec.text = objective_text;
  Objective objective = Objective::parse(spec, with_names(source.metrics, column_names(source)));
  if (objective.count() != 1)
    throw UserError(fmt::format("cannot score \"{}\": strategies are scored on one objective", spec.text));

  state_->name = source.file.empty() ? source.name : source.file.filename().string();
  for (const std::string_view ending : {".gz", ".json", ".csv", ".T4"})
    if (state_->name.size() > ending.size() && state_->name.ends_with(ending))
      state_->name.resize(state_->name.size() - ending.size());

  // two passes: best(...) in an objective means the best of the whole recording, which is known after the first
  const std::uint64_t size = state_->table.space().size();
  state_->values.assign(size, std::numeric_limits<double>::infinity());
  for (int pass = 0; pass < 2; ++pass) {
    for (ConfigurationIndex index = 0; index < size; ++index) {
      const Outcome outcome = objective.outcome(state_->table.measurement(index));
      state_->values[index] = outcome.ok ? outcome.values.front() : std::numeric_limits<double>::infinity();
    }
    if (objective.kind() == Objective::Kind::single && spec.text.find("best") == std::string::npos) break;
  }
  std::vector<double> values, valid_seconds, failed_seconds;
  for (ConfigurationIndex index = 0; index < size; ++index) {
    if (std::isfinite(state_->values[index])) {
      values.push_back(state_->values[index]);
      valid_seconds.push_back(state_->table.seconds(index));
    } else {
      failed_seconds.push_back(state_->table.seconds(index));
    }
  }
  if (values.empty()) throw UserError(fmt::format("{}: no configuration has a valid \"{}\"", state_->name, spec.text));
  state_->failed = failed_seconds.size();
  // a recording without costs is scored by evaluations, each of which counts as one second
  if (mean(valid_seconds) <= 0) {
    state_->costs_unknown = true;
    for (auto* list : {&valid_seconds, &failed_seconds}) std::ranges::fill(*list, 1.0);
  }
  state_->baseline = search::make_baseline(values, valid_seconds, failed_seconds);
}

}  // namespace ergotune
