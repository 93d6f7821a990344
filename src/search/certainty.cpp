#include "search/certainty.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "ergotune/random.hpp"

namespace ergotune {
namespace {

constexpr int kBurnIn = 200, kDraws = 2000;
/// Degrees of freedom of the distributions of the candidates' noises around their common size, and of the candidates
/// around their centre.
constexpr double kNoiseDegrees = 4, kSpreadDegrees = 4;
constexpr double kLeastVariance = 1e-18, kMostVariance = 1e4;
/// The spread of the candidates is drawn from a grid of its logarithm around the error of one candidate. The prior is
/// flat below that error and falls as 1/x above it.
constexpr int kGrid = 40;
constexpr double kGridStep = 0.25, kGridBegin = -4;

double square(double x) { return x * x; }

/// Marsaglia and Tsang (2000).
double gamma_draw(Random& random, double shape) {
  if (shape < 1) return gamma_draw(random, shape + 1) * std::pow(1 - random.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal(), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - random.uniform()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

class Sampler {
 public:
  explicit Sampler(const std::vector<std::vector<RoundValue>>& candidates)
      : cells_(candidates.size()),
        candidate_(candidates.size()),
        noise_(candidates.size()),
        least_noise_(candidates.size()),
        weight_(candidates.size(), 1.0) {
    take(candidates);
    begin();
  }

  void sweep() {
    draw_candidates();
    draw_spread();
    draw_rounds();
    draw_noise();
  }
  const std::vector<double>& candidates() const { return candidate_; }

 private:
  struct Cell {
    std::size_t round;
    double value;
  };

  /// Takes the logarithms of the values if all have one sign, else the values relative to their mean size.
  void take(const std::vector<std::vector<RoundValue>>& candidates) {
    double size = 0, count = 0;
    bool positive = true, negative = true;
    std::map<int, std::size_t> rounds;
    for (const auto& values : candidates) {
      for (const RoundValue& v : values) {
        size += std::abs(v.value);
        ++count;
        positive = positive && v.value > 0;
        negative = negative && v.value < 0;
        rounds.emplace(v.round, 0);
      }
    }
    std::size_t number = 0;
    for (auto& [round, place] : rounds) place = number++;
    round_.assign(number, 0.0);
    size = size > 0 ? size / count : 1;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      double own = 0;
      for (const RoundValue& v : candidates[i]) {
        const double value = positive ? std::log(v.value) : negative ? -std::log(-v.value) : v.value / size;
        const double error = v.standard_error / (positive || negative ? std::abs(v.value) : size);
        cells_[i].push_back({rounds.at(v.round), value});
        own += std::isfinite(error) ? square(error) : 0;
      }
      least_noise_[i] = std::max(own / static_cast<double>(cells_[i].size()), kLeastVariance);
    }
  }

  void begin() {
    double squares = 0, count = 0;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      for (const Cell& cell : cells_[i]) candidate_[i] += cell.value / static_cast<double>(cells_[i].size());
      for (const Cell& cell : cells_[i]) squares += square(cell.value - candidate_[i]);
      count += static_cast<double>(cells_[i].size()) - 1;
    }
    common_noise_ = std::max(squares / std::max(count, 1.0), kLeastVariance);
    for (std::size_t i = 0; i < cells_.size(); ++i) noise_[i] = std::max(common_noise_, least_noise_[i]);
    const auto n = static_cast<double>(candidate_.size());
    centre_ = std::accumulate(candidate_.begin(), candidate_.end(), 0.0) / n;
    for (const double x : candidate_) spread_ += square(x - centre_) / n;
    spread_ = std::max(spread_, kLeastVariance);
    round_variance_ = common_noise_ / 2;
  }

  double chi_squared(double degrees) { return 2 * gamma_draw(random_, degrees / 2); }

  void draw_candidates() {
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const double prior = weight_[i] / spread_;
      double precision = prior + static_cast<double>(cells_[i].size()) / noise_[i], sum = prior * centre_;
      for (const Cell& cell : cells_[i]) sum += (cell.value - round_[cell.round]) / noise_[i];
      candidate_[i] = sum / precision + random_.normal() / std::sqrt(precision);
    }
  }

  void draw_spread() {
    double weights = 0, sum = 0, squares = 0, error = 0;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      weights += weight_[i];
      sum += weight_[i] * candidate_[i];
      error += noise_[i] / static_cast<double>(cells_[i].size() * cells_.size());
    }
    centre_ = sum / weights + random_.normal() * std::sqrt(spread_ / weights);
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const double away = square(candidate_[i] - centre_);
      weight_[i] = 2 * gamma_draw(random_, (kSpreadDegrees + 1) / 2) / (kSpreadDegrees + away / spread_);
      squares += weight_[i] * away;
    }
    const auto at = [&](double place) { return std::sqrt(error) * std::exp(kGridBegin + kGridStep * place); };
    double density[kGrid], most = -1e300, all = 0;
    for (int g = 0; g < kGrid; ++g) {
      const double x = at(g);
      density[g] = (1 - static_cast<double>(cells_.size())) * std::log(x) - squares / (2 * x * x) -
                   std::log(x + std::sqrt(error));
      most = std::max(most, density[g]);
    }
    for (double& d : density) all += d = std::exp(d - most);
    double left = random_.uniform() * all;
    int g = 0;
    while (g + 1 < kGrid && (left -= density[g]) > 0) ++g;
    spread_ = square(at(g + random_.uniform() - 0.5));
  }

  void draw_rounds() {
    std::vector<double> precision(round_.size(), 1 / round_variance_), sum(round_.size(), 0.0);
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      for (const Cell& cell : cells_[i]) {
        precision[cell.round] += 1 / noise_[i];
        sum[cell.round] += (cell.value - candidate_[i]) / noise_[i];
      }
    }
    double squares = 0;
    for (std::size_t r = 0; r < round_.size(); ++r) {
      round_[r] = sum[r] / precision[r] + random_.normal() / std::sqrt(precision[r]);
      squares += square(round_[r]);
    }
    const double degrees = std::max(0.5, static_cast<double>(round_.size()) - 1);
    round_variance_ = std::clamp(squares / chi_squared(degrees), kLeastVariance, kMostVariance);
  }

  void draw_noise() {
    double inverse = 0;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      double squares = kNoiseDegrees * common_noise_;
      for (const Cell& cell : cells_[i]) squares += square(cell.value - round_[cell.round] - candidate_[i]);
      noise_[i] =
          std::max(squares / chi_squared(kNoiseDegrees + static_cast<double>(cells_[i].size())), least_noise_[i]);
      inverse += 1 / noise_[i];
    }
    const double shape = static_cast<double>(cells_.size()) * kNoiseDegrees / 2;
    common_noise_ =
        std::clamp(2 * gamma_draw(random_, shape) / (kNoiseDegrees * inverse), kLeastVariance, kMostVariance);
  }

  std::vector<std::vector<Cell>> cells_;  ///< by candidate
  std::vector<double> candidate_, noise_, least_noise_, weight_, round_;
  double common_noise_ = 0, centre_ = 0, spread_ = 0, round_variance_ = 0;
  Random random_{20240901};
};

}  // namespace

std::optional<ChoiceProbabilities> choice_probabilities(const std::vector<std::vector<RoundValue>>& candidates) {
  if (candidates.size() < 2) return std::nullopt;
  Sampler sampler(candidates);
  ChoiceProbabilities chances;
  chances.of.assign(candidates.size(), 0.0);
  for (int draw = -kBurnIn; draw < kDraws; ++draw) {
    sampler.sweep();
    if (draw < 0) continue;
    const std::vector<double>& values = sampler.candidates();
    const auto best = std::min_element(values.begin(), values.end());
    chances.of[static_cast<std::size_t>(best - values.begin())] += 1.0 / kDraws;
    chances.expected_loss += (1 - std::exp(*best - values.front())) / kDraws;
  }
  chances.probability_best = chances.of.front();
  return chances;
}

}  // namespace ergotune
