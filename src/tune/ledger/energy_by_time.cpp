#include "tune/ledger/energy_by_time.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ergotune {
namespace {

/// Deviations below a guess, under which an energy is not expected.
constexpr double kDeviations = 2;
/// Of the logarithm of the power, before anything is known, and how many measurements that counts for.
constexpr double kDeviation = 0.2, kWeight = 2;
/// Spread of the logarithm of the time that the exponent's own expectation (0) counts for, times measurements.
constexpr double kSteady = 0.5;
constexpr double kLeastExponent = -0.9;

}  // namespace

double EnergyByTime::Guess::least() const { return energy * std::exp(-kDeviations * deviation); }

void EnergyByTime::add(const Measurement& measurement) {
  const auto time = measurement.value("time"), energy = measurement.value("energy");
  if (!usable(measurement.status) || !time || !energy || !(*time > 0) || !(*energy > 0)) return;
  const double x = std::log(*time), y = std::log(*energy / *time);
  ++n_;
  sum_x_ += x;
  sum_y_ += y;
  sum_xx_ += x * x;
  sum_xy_ += x * y;
  sum_yy_ += y * y;
  centre_ = sum_x_ / n_;
  level_ = sum_y_ / n_;
  const double xx = std::max(0.0, sum_xx_ - n_ * centre_ * centre_), xy = sum_xy_ - n_ * centre_ * level_;
  exponent_ = std::clamp(xy / (xx + kSteady), kLeastExponent, 0.0);
  const double yy = sum_yy_ - n_ * level_ * level_;
  const double residual = std::max(0.0, yy - 2 * exponent_ * xy + exponent_ * exponent_ * xx);
  deviation_ = std::sqrt((kWeight * kDeviation * kDeviation + residual) / (kWeight + n_));
  const double change = std::max(std::abs(level_ - reported_level_), std::abs(exponent_ - reported_exponent_));
  if (n_ > 1 && change < 0.02) return;
  reported_level_ = level_;
  reported_exponent_ = exponent_;
  ++revision_;
}

EnergyByTime::Guess EnergyByTime::at(double time) const {
  const double x = std::log(time);
  return {std::exp(x + level_ + exponent_ * (x - centre_)), deviation_};
}

double EnergyByTime::longest(double energy) const {
  if (n_ == 0 || !(energy < 1e300)) return std::numeric_limits<double>::infinity();
  // log energy = x + level + exponent (x - centre) - deviations
  return std::exp((std::log(energy) + kDeviations * deviation_ - level_ + exponent_ * centre_) / (1 + exponent_));
}

bool lacks_energy(const Measurement& measurement) {
  return usable(measurement.status) && measurement.value("time") && !measurement.value("energy");
}

}  // namespace ergotune
