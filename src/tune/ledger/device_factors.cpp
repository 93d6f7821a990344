#include "tune/ledger/device_factors.hpp"

#include <algorithm>
#include <cmath>

namespace ergotune {

const std::vector<std::string>& DeviceFactors::compared() {
  static const std::vector<std::string> names{"time", "energy", "power", "idle_subtracted_energy", "corrected_energy"};
  return names;
}

void DeviceFactors::add(const std::string& board, const Measurement& reference) {
  if (board.empty() || !usable(reference.status)) return;
  for (const std::string& name : compared()) {
    const auto value = reference.value(name);
    if (!value || !(*value > 0)) continue;
    if (std::find(order_.begin(), order_.end(), board) == order_.end()) order_.push_back(board);
    const double error = reference.standard_error(name) / *value;
    logarithms_[board][name].push_back({std::log(*value), std::isfinite(error) ? error : 0});
  }
}

/// The variance is that of what the measurements say of themselves, or of their scatter where that is larger: a board's
/// state lasts, and no single measurement sees it.
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

std::optional<DeviceFactors::Factor> DeviceFactors::factor(const std::string& board,
                                                           const std::string& quantity) const {
  std::optional<Mean> own;
  double centre = 0, variance = 0;
  int boards = 0;
  for (const auto& [name, quantities] : logarithms_) {
    const auto found = quantities.find(quantity);
    if (found == quantities.end()) continue;
    const Mean mean = mean_of(found->second);
    ++boards;
    centre += mean.logarithm;
    variance += mean.variance;
    if (name == board) own = mean;
  }
  if (!own || boards < 2) return std::nullopt;
  Factor factor;
  factor.value = std::exp(own->logarithm - centre / boards);
  // log f = x (1 - 1/B) - sum over the others / B
  const double share = 1.0 / boards;
  const double of_log = own->variance * (1 - share) * (1 - share) + (variance - own->variance) * share * share;
  factor.standard_error = factor.value * std::sqrt(std::max(0.0, of_log));
  factor.n = own->n;
  return factor;
}

bool DeviceFactors::level(Measurement& measurement, const std::string& board) const {
  bool changed = false;
  for (const std::string& name : compared()) {
    const auto quantity = measurement.quantities.find(name);
    if (quantity == measurement.quantities.end()) continue;
    const auto by = factor(board, name);
    if (!by) continue;
    Quantity& q = quantity->second;
    const double relative = q.value != 0 ? q.standard_error / q.value : 0;
    q.value /= by->value;
    q.standard_error = std::abs(q.value) * std::hypot(relative, by->standard_error / by->value);
    changed = true;
  }
  return changed;
}

}  // namespace ergotune
