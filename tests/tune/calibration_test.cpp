// What a session says of its winner holds: over many synthetic sessions the winner is the best of those that were
// measured again about as often as the session says, and loses no more than it says.
//
//   ERGOTUNE_CALIBRATION_SESSIONS=2000 build/release/tests/test_tune --gtest_filter='Calibration.*'
//
// prints the table of docs/measurements/calibration-2026-11-23.md.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

#include "ergotune/random.hpp"
#include "tune/session/session.hpp"

namespace ergotune {
namespace {

enum class Noise { normal, heavy_tailed, bimodal, drifting };
constexpr std::array kNoises{Noise::normal, Noise::heavy_tailed, Noise::bimodal, Noise::drifting};
constexpr std::array<const char*, 4> kNames{"normal", "heavy-tailed", "bimodal", "drifting"};

/// One device or two, each with a factor of its own, that measure known times with noise. Each measurement takes a
/// second of virtual time, so that baseline runs follow the drift.
class SyntheticDevices : public QueuedEvaluator {
 public:
  SyntheticDevices(std::vector<double> truth, Noise noise, double level, std::size_t devices, std::uint64_t seed)
      : truth_(std::move(truth)),
        noise_(noise),
        level_(level),
        random_(seed),
        drift_(devices, 0.0),
        measured_(devices, 0) {
    for (std::size_t d = 0; d < devices; ++d) factor_.push_back(devices == 1 ? 1 : std::exp(0.05 * random_.normal()));
  }

  std::set<ConfigurationIndex> confirmed;

  std::string description() const override { return "synthetic devices"; }
  Provenance provenance() const override { return Provenance::measured; }
  std::size_t capacity() const override { return factor_.size(); }
  std::vector<DeviceShare> gpus() const override {
    std::vector<DeviceShare> shares;
    for (std::size_t d = 0; factor_.size() > 1 && d < factor_.size(); ++d)
      shares.push_back({std::to_string(d), "synthetic:" + std::to_string(d), "Synthetic", 0, 1, 0, false});
    return shares;
  }
  EvaluationResult answer(const EvaluationRequest& request) override {
    if (request.repeat && !request.reference) confirmed.insert(request.index);
    const std::size_t device = request.gpu.empty() ? turn_++ % factor_.size() : std::stoul(request.gpu);
    EvaluationResult result;
    const double time = truth_[request.index] * factor_[device] * noise(device);
    // The scatter within a measurement is part of that between measurements.
    result.measurement.quantities["time"] = {time, 0.3 * level_ * time, 7, "synthetic", "", Provenance::measured};
    result.measurement.measure_seconds = 1;
    result.measurement.finished_at = 1e9 + static_cast<double>(++measured_[device]);
    if (factor_.size() > 1) result.gpu = std::to_string(device);
    return result;
  }

 private:
  double noise(std::size_t device) {
    const double x = random_.normal();
    switch (noise_) {
      case Noise::normal:
        return std::exp(level_ * x);
      case Noise::heavy_tailed: {  // Student's t of three degrees, of standard deviation `level_`
        double squares = 0;
        for (int i = 0; i < 3; ++i) squares += std::pow(random_.normal(), 2) / 3;
        return std::exp(level_ / std::sqrt(3.0) * x / std::sqrt(squares));
      }
      case Noise::bimodal:
        return (random_.chance(0.25) ? 1 + 2 * level_ : 1 - 2 * level_ / 3) * (1 + 0.05 * level_ * x);
      case Noise::drifting:
        drift_[device] = 0.97 * drift_[device] + 0.5 * level_ * random_.normal();
        break;
    }
    return std::exp(0.3 * level_ * x + drift_[device]);
  }

  std::vector<double> truth_;
  Noise noise_;
  double level_;
  Random random_;
  std::vector<double> factor_, drift_;
  std::vector<int> measured_;
  std::size_t turn_ = 0;
};

SearchSpace cube() {
  std::vector<Parameter> parameters(3);
  for (std::size_t p = 0; p < 3; ++p) {
    parameters[p].name = std::string(1, static_cast<char>('x' + p));
    for (int v = 0; v < (p < 2 ? 4 : 3); ++v) parameters[p].values.emplace_back(v);
  }
  return SearchSpace::build(parameters, {});
}

/// Each parameter has an effect, and the configuration one of its own; where `crowded`, half of the configurations are
/// within a few per cent of that spread of the best.
std::vector<double> draw_truth(Random& random, const SearchSpace& space, bool crowded) {
  const double spread = 0.003 * std::pow(100, random.uniform());
  if (crowded) {
    std::vector<double> truth;
    for (ConfigurationIndex i = 0; i < space.size(); ++i)
      truth.push_back(1e-3 * std::exp(spread * std::pow(random.uniform(), 4)));
    return truth;
  }
  double effect[3][4];
  for (auto& parameter : effect)
    for (double& e : parameter) e = random.normal();
  std::vector<double> truth;
  for (ConfigurationIndex i = 0; i < space.size(); ++i) {
    const Configuration c = space.configuration(i);
    double sum = 0.5 * random.normal();
    for (std::size_t p = 0; p < 3; ++p) sum += effect[p][static_cast<std::size_t>(c[p].as_real())];
    truth.push_back(1e-3 * std::exp(spread * sum));
  }
  return truth;
}

struct Tally {
  double reported = 0, won = 0, reported_loss = 0, lost = 0, lost_squares = 0, won_all = 0, lost_all = 0, rounds = 0;
  int n = 0;
  void add(double probability, bool is_best, double loss, double lost_now) {
    ++n;
    reported += probability;
    won += is_best;
    reported_loss += loss;
    lost += lost_now;
    lost_squares += lost_now * lost_now;
  }
  double mean(double sum) const { return sum / std::max(n, 1); }
};

void calibrate(bool crowded) {
  const char* wanted = std::getenv("ERGOTUNE_CALIBRATION_SESSIONS");
  const int sessions = wanted ? std::atoi(wanted) : 200;
  const SearchSpace space = cube();
  std::array<Tally, 5> bins;
  std::array<std::array<Tally, 2>, 4> kinds;
  Tally all;
  for (int s = 0; s < sessions; ++s) {
    Random random(static_cast<std::uint64_t>(7000 + s));
    const std::size_t kind = static_cast<std::size_t>(s) % 4, devices = 1 + static_cast<std::size_t>(s) / 4 % 2;
    const std::vector<double> truth = draw_truth(random, space, crowded);
    const double level = 0.002 * std::pow(100, random.uniform());
    SyntheticDevices evaluator(truth, kNoises[kind], level, devices, random());
    SessionOptions options;
    options.strategy = "brute_force";
    Objective objective = Objective::parse({}, {});
    const SessionResult result = run_session(space, objective, evaluator, nullptr, 0, options);
    ASSERT_TRUE(result.probability_best && result.expected_loss);
    const double won = truth[result.best.front().index];
    double best = won, best_of_all = *std::ranges::min_element(truth);
    for (const ConfigurationIndex index : evaluator.confirmed) best = std::min(best, truth[index]);
    const auto bin = std::min<std::size_t>(4, static_cast<std::size_t>(*result.probability_best * 5));
    for (Tally* tally : {&bins[bin], &kinds[kind][devices - 1], &all}) {
      tally->add(*result.probability_best, won == best, *result.expected_loss, 1 - best / won);
      tally->won_all += won == best_of_all;
      tally->lost_all += 1 - best_of_all / won;
      tally->rounds += result.confirmation_repeats;
    }
  }
  std::string table =
      "| sessions | n | told probability | was best | told loss % | lost % | best of all | lost of all % | rounds |\n";
  const auto line = [&](const std::string& name, const Tally& t) {
    table += fmt::format("| {} | {} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.1f} |\n", name, t.n,
                         t.mean(t.reported), t.mean(t.won), 100 * t.mean(t.reported_loss), 100 * t.mean(t.lost),
                         t.mean(t.won_all), 100 * t.mean(t.lost_all), t.mean(t.rounds));
  };
  for (std::size_t kind = 0; kind < 4; ++kind)
    for (std::size_t d = 0; d < 2; ++d)
      line(fmt::format("{}, {}", kNames[kind], d == 0 ? "one device" : "two devices"), kinds[kind][d]);
  for (std::size_t bin = 0; bin < 5; ++bin) line(fmt::format("told {} to {} %", 20 * bin, 20 * bin + 20), bins[bin]);
  line("all", all);
  if (wanted) fmt::print("{}", table);
  // Within five points, and what chance alone makes of so few sessions.
  for (const Tally& bin : bins) {
    if (bin.n == 0 || crowded) continue;
    const double chance = 2 * std::sqrt(std::max(0.01, bin.mean(bin.reported) * (1 - bin.mean(bin.reported))) / bin.n);
    EXPECT_NEAR(bin.mean(bin.won), bin.mean(bin.reported), 0.05 + chance) << table;
  }
  const double chance = 2 * std::sqrt(all.mean(all.lost_squares) / all.n);
  EXPECT_LT(all.mean(all.lost), all.mean(all.reported_loss) + (wanted ? 0 : chance)) << table;
}

TEST(Calibration, ProbabilityAndLossHold) { calibrate(false); }
// Which of many that noise cannot tell apart is the best is a lottery; the loss of choosing one of them is what holds.
TEST(Calibration, LossHoldsAmongManyEqualOnes) { calibrate(true); }

}  // namespace
}  // namespace ergotune
