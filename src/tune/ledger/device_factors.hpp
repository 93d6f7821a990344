// Devices of one model differ by percents (leakage, cooling, memory), and one device differs from itself minutes later
// (other load, heat). What the same configuration, the reference, takes on each of them and at each time says how
// measurements compare.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/result.hpp"
#include "tune/ledger/drift.hpp"

namespace ergotune {

class DeviceFactors {
 public:
  /// How much of a quantity a GPU takes where the GPUs' geometric mean takes 1.
  struct Factor {
    double value = 1;
    double standard_error = 0;
    int n = 0;  ///< measurements of the reference on this GPU
  };

  /// Takes a baseline run of a configuration on a GPU; what is not usable is left out. `searched`: what the search
  /// measured of the same configuration on that GPU; null: nothing.
  void add(const std::string& gpu, ConfigurationIndex configuration, const Measurement& baseline,
           const Measurement* searched = nullptr);
  /// Changes whenever add() has taken something: what was levelled before may compare otherwise now.
  std::size_t revision() const { return revision_; }
  /// References were measured on two GPUs or more: only then is there something to compare.
  bool several() const { return order_.size() > 1; }
  /// In the order in which they came.
  const std::vector<std::string>& gpus() const { return order_; }
  /// nullopt where the reference was not measured there, or on no other GPU. `quantity`: one of compared().
  std::optional<Factor> factor(const std::string& gpu, const std::string& quantity) const;
  /// Quantities by which GPUs are compared: time, power and energies.
  static const std::vector<std::string>& compared();
  /// What was measured on a GPU as the mean GPU would have it in its mean condition: each compared quantity over
  /// the GPU's factor and, where `drifts`, over the drift when it was measured; standard errors with those of the
  /// factors. Metrics are left as they are. False where nothing was changed.
  bool level(Measurement& measurement, const std::string& gpu, bool drifts = true) const;
  /// How little is known of the conditions when this was measured: the standard deviation of a compared quantity's
  /// drift over the noise of one baseline run, the largest of them; 0 where it is below 1 % or nothing drifts.
  double doubt(const Measurement& measurement, const std::string& gpu) const;
  /// The drift of a quantity on the device where it is largest; nullopt where no device drifts.
  std::optional<Drift::Range> drift(const std::string& quantity) const;

 private:
  struct Sample {
    double logarithm = 0, relative_error = 0;
  };
  /// Of one configuration, by GPU and quantity.
  using Samples = std::map<std::string, std::map<std::string, std::vector<Sample>>>;
  struct Mean {
    double logarithm = 0, variance = 0;
    int n = 0;
  };
  static Mean mean_of(const std::vector<Sample>& samples);
  const Samples& of_most_gpus() const;
  const Drift* drift_of(const std::string& gpu, const std::string& quantity) const;

  std::vector<std::string> order_;
  std::map<ConfigurationIndex, Samples> samples_;
  std::map<std::string, std::map<std::string, Drift>> drifts_;  ///< by GPU and quantity
  std::size_t revision_ = 0;
};

}  // namespace ergotune
