#include "tune/ledger/device_factors.hpp"

#include <algorithm>
#include <cmath>

namespace ergotune {

const std::vector<std::string>& DeviceFactors::compared() {
  static const std::vector<std::string> names{"time", "energy", "power", "idle_subtracted_energy", "corrected_energy"};
  return names;
}

void DeviceFactors::add(const std::string& gpu, ConfigurationIndex configuration, const Measurement& baseline,
                        const Measurement* searched) {
  if (!usable(baseline.status)) return;
  ++revision_;
  const auto take = [&](const Measurement& measurement, const std::string& name, bool is_searched) {
    const auto value = measurement.value(name);
    if (!value || !(*value > 0)) return;
    const double error = measurement.standard_error(name) / *value;
    const Sample sample{std::log(*value), std::isfinite(error) ? error : 0};
    drifts_[gpu][name].add({configuration, measurement.finished_at - measurement.measure_seconds / 2,
                            measurement.verify_seconds + measurement.measure_seconds, sample.logarithm,
                            sample.relative_error, is_searched});
    if (is_searched || gpu.empty()) return;
    if (std::ranges::find(order_, gpu) == order_.end()) order_.push_back(gpu);
    samples_[configuration][gpu][name].push_back(sample);
  };
  for (const std::string& name : compared()) {
    const bool known = drifts_[gpu][name].knows(configuration);
    if (!known && searched && usable(searched->status)) take(*searched, name, true);
    take(baseline, name, false);
  }
}

const DeviceFactors::Samples& DeviceFactors::of_most_gpus() const {
  static const Samples none;
  const Samples* most = &none;
  for (const auto& [configuration, samples] : samples_)
    if (samples.size() > most->size()) most = &samples;
  return *most;
}

const Drift* DeviceFactors::drift_of(const std::string& gpu, const std::string& quantity) const {
  const auto quantities = drifts_.find(gpu);
  if (quantities == drifts_.end()) return nullptr;
  const auto drift = quantities->second.find(quantity);
  return drift == quantities->second.end() ? nullptr : &drift->second;
}

/// Mean of the logarithms. Its variance is the larger of two: that from the measurements' standard errors, and that
/// from their scatter. The state of a GPU lasts, so that a single measurement does not show its variation.
DeviceFactors::Mean DeviceFactors::mean_of(const std::vector<Sample>& samples) {
  Mean mean;
  mean.n = static_cast<int>(samples.size());
  const double n = mean.n;
  double own = 0, scatter = 0;
  for (const Sample& sample : samples) {
    mean.logarithm += sample.logarithm / n;
    own += sample.relative_error * sample.relative_error / (n * n);
  }
  for (const Sample& sample : samples) scatter += std::pow(sample.logarithm - mean.logarithm, 2);
  mean.variance = mean.n > 1 ? std::max(own, scatter / (n - 1) / n) : own;
  return mean;
}

std::optional<DeviceFactors::Factor> DeviceFactors::factor(const std::string& gpu, const std::string& quantity) const {
  std::optional<Mean> own;
  double centre = 0, variance = 0;
  int gpus = 0;
  for (const auto& [name, quantities] : of_most_gpus()) {
    const auto found = quantities.find(quantity);
    if (found == quantities.end()) continue;
    const Mean mean = mean_of(found->second);
    ++gpus;
    centre += mean.logarithm;
    variance += mean.variance;
    if (name == gpu) own = mean;
  }
  if (!own || gpus < 2) return std::nullopt;
  Factor factor;
  factor.value = std::exp(own->logarithm - centre / gpus);
  // log f = x (1 - 1/B) - sum over the others / B
  const double share = 1.0 / gpus;
  const double of_log = own->variance * (1 - share) * (1 - share) + (variance - own->variance) * share * share;
  factor.standard_error = factor.value * std::sqrt(std::max(0.0, of_log));
  factor.n = own->n;
  return factor;
}

bool DeviceFactors::level(Measurement& measurement, const std::string& gpu, bool drifts) const {
  bool changed = false;
  const double at = measurement.finished_at - measurement.measure_seconds / 2;
  for (const std::string& name : compared()) {
    const auto quantity = measurement.quantities.find(name);
    if (quantity == measurement.quantities.end()) continue;
    const auto by = factor(gpu, name);
    const Drift* drift = drifts ? drift_of(gpu, name) : nullptr;
    const auto effect = drift ? drift->at(at) : std::nullopt;
    if (!by && !effect) continue;
    Quantity& q = quantity->second;
    const double relative = q.value != 0 ? q.standard_error / q.value : 0;
    const double of_gpu = by ? by->standard_error / by->value : 0, of_drift = effect ? effect->deviation : 0;
    q.value /= (by ? by->value : 1) * (effect ? std::exp(effect->logarithm) : 1);
    q.standard_error = std::abs(q.value) * std::hypot(relative, of_gpu, of_drift);
    changed = true;
  }
  return changed;
}

double DeviceFactors::doubt(const Measurement& measurement, const std::string& gpu) const {
  constexpr double kLeast = 0.01;
  double most = 0;
  for (const std::string& name : compared()) {
    const Drift* drift = measurement.value(name) ? drift_of(gpu, name) : nullptr;
    const auto effect = drift ? drift->at(measurement.finished_at - measurement.measure_seconds / 2) : std::nullopt;
    if (effect && effect->deviation > kLeast) most = std::max(most, effect->deviation / drift->noise());
  }
  return most;
}

std::optional<Drift::Range> DeviceFactors::drift(const std::string& quantity) const {
  std::optional<Drift::Range> widest;
  for (const auto& [gpu, quantities] : drifts_) {
    const auto range = quantities.contains(quantity) ? quantities.at(quantity).range() : std::nullopt;
    if (range && (!widest || range->most - range->least > widest->most - widest->least)) widest = range;
  }
  return widest;
}

}  // namespace ergotune
