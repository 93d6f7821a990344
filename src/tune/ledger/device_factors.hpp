// Correction factors between GPUs of one model. Such GPUs differ by some per cent (leakage, cooling, memory), and each
// GPU drifts with load and temperature. Repeated measurements of one configuration, the baseline runs, show how
// measurements of different GPUs and times compare.
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
  /// The value of a quantity on a GPU relative to the geometric mean over all GPUs.
  struct Factor {
    double value = 1;
    double standard_error = 0;
    int n = 0;  ///< baseline runs on this GPU
  };

  /// Adds a baseline run of a configuration on a GPU; an unusable measurement is ignored. `searched`: the search's own
  /// measurement of the same configuration on that GPU; null if there is none.
  void add(const std::string& gpu, ConfigurationIndex configuration, const Measurement& baseline,
           const Measurement* searched = nullptr);
  /// Increases with every baseline run that add() accepts. Measurements corrected by level() at an earlier revision
  /// have to be corrected again.
  std::size_t revision() const { return revision_; }
  /// Whether baseline runs of two or more GPUs are known; with fewer there are no factors.
  bool several() const { return order_.size() > 1; }
  /// GPUs in the order of their first baseline run.
  const std::vector<std::string>& gpus() const { return order_; }
  /// nullopt if the GPU, or every other GPU, has no baseline run. `quantity`: one of compared().
  std::optional<Factor> factor(const std::string& gpu, const std::string& quantity) const;
  /// The quantities that get factors: time, power and energies.
  static const std::vector<std::string>& compared();
  /// Converts a measurement taken on `gpu` to the mean GPU under its mean load: divides each compared quantity by the
  /// GPU's factor and, if `drifts`, by the drift at the time of the measurement. Standard errors include those of
  /// factor and drift. Metrics are not changed. Returns false if nothing was changed.
  bool level(Measurement& measurement, const std::string& gpu, bool drifts = true) const;
  /// How uncertain the drift was at the time of a measurement: the largest ratio, over the compared quantities, of the
  /// standard deviation of the drift to the noise of one baseline run. 0 if that deviation is at most 1 % or nothing
  /// drifts.
  double doubt(const Measurement& measurement, const std::string& gpu) const;
  /// The range of the drift of a quantity on the device where it is widest; nullopt if no device drifts.
  std::optional<Drift::Range> drift(const std::string& quantity) const;

 private:
  struct Sample {
    double logarithm = 0, relative_error = 0;
  };
  /// Samples of one configuration, by GPU and quantity.
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
