#include "tables.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "ergotune/random.hpp"
#include "scoring/score.hpp"
#include "tune/session/session.hpp"

namespace ergotune {
namespace {

/// Says that it measures, so that the session confirms its winner; what it says is recorded, with noise.
class Noisy : public QueuedEvaluator {
 public:
  Noisy(const ScoredSpace& scored, double noise, std::uint64_t seed) : scored_(scored), noise_(noise), random_(seed) {}
  std::string description() const override { return "replayed with noise"; }
  Provenance provenance() const override { return Provenance::measured; }
  double best() const { return best_; }
  std::size_t repeated() const { return repeated_; }

 private:
  EvaluationResult answer(const EvaluationRequest& request) override {
    EvaluationResult result;
    repeated_ += request.repeat;
    const double value = scored_.state().values[request.index];
    result.measurement.measure_seconds = scored_.state().seconds(request.index);
    if (!std::isfinite(value)) {
      result.measurement.status = Status::runtime_error;
      return result;
    }
    if (value < best_) best_ = value;
    const double seen = value * (1 + noise_ * random_.normal());
    result.measurement.quantities["time"] = {seen, noise_ * seen, 7, "replayed", "", Provenance::replayed};
    return result;
  }

  const ScoredSpace& scored_;
  double noise_, best_ = 1e300;
  Random random_;
  std::size_t repeated_ = 0;
};

struct Choice {
  double lost = 0, lost_of_measured = 0, said = 0, repeated = 0;
};

Choice choose(const ScoredSpace& scored, std::uint64_t evaluations, std::uint64_t seed, double noise) {
  Noisy evaluator(scored, noise, 77 * seed);
  SessionOptions options;
  options.seed = seed;
  options.budget.evaluations = evaluations;
  options.early_stop = false;
  Objective objective = Objective::parse({}, {});
  const SessionResult result = run_session(scored.space(), objective, evaluator, nullptr, 0, options);
  const double chosen = scored.state().values[result.best.front().index];
  return {chosen / scored.optimum() - 1, chosen / evaluator.best() - 1, result.expected_loss.value_or(0),
          static_cast<double>(evaluator.repeated())};
}

}  // namespace

void print_noise_table(const NoiseTableOptions& options) {
  fmt::print(
      "replayed with {:.0f} % noise, {} seeds: % lost against the optimum, against the best measured, as the session "
      "says; measured again\n",
      100 * options.noise, options.repeats);
  Choice all;
  for (const std::string& file : options.files) {
    const ScoredSpace scored(load_recording(file));
    const auto& baseline = scored.state().baseline;
    const auto budget = static_cast<std::uint64_t>(baseline.budget / std::max(baseline.median_seconds, 1e-12));
    const std::uint64_t evaluations = std::min<std::uint64_t>(options.evaluations, std::max<std::uint64_t>(budget, 1));
    std::vector<Choice> choices(options.repeats);
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t job = next++; job < choices.size(); job = next++)
        choices[job] = choose(scored, evaluations, options.first + job, options.noise);
    };
    {
      std::vector<std::jthread> pool;
      const int threads = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
      for (int i = 1; i < threads; ++i) pool.emplace_back(work);
      work();
    }
    Choice mean;
    for (const Choice& one : choices) {
      const double share = 1.0 / static_cast<double>(choices.size());
      mean.lost += share * one.lost;
      mean.lost_of_measured += share * one.lost_of_measured;
      mean.said += share * one.said;
      mean.repeated += share * one.repeated;
    }
    all.lost += mean.lost / static_cast<double>(options.files.size());
    all.lost_of_measured += mean.lost_of_measured / static_cast<double>(options.files.size());
    fmt::print("{:<24} {:>4} evaluations {:>7.2f} {:>7.2f} {:>7.2f} {:>6.0f}\n", scored.name(), evaluations,
               100 * mean.lost, 100 * mean.lost_of_measured, 100 * mean.said, mean.repeated);
    std::fflush(stdout);
  }
  fmt::print("{:<24} {:>16} {:>7.2f} {:>7.2f}\n", "mean", "", 100 * all.lost, 100 * all.lost_of_measured);
}

}  // namespace ergotune
