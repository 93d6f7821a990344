// Boards of one model are not the same board: leakage, cooling and memory differ by percents. What the same
// configuration, the reference, takes on each of them says how they compare.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/result.hpp"

namespace ergotune {

class DeviceFactors {
 public:
  /// How much of a quantity a board takes where the boards' geometric mean takes 1.
  struct Factor {
    double value = 1;
    double standard_error = 0;
    int n = 0;  ///< measurements of the reference on this board
  };

  /// Takes a measurement of the reference on a board; what is not usable is left out.
  void add(const std::string& board, const Measurement& reference);
  /// References were measured on two boards or more: only then is there something to compare.
  bool several() const { return logarithms_.size() > 1; }
  /// In the order in which they came.
  const std::vector<std::string>& boards() const { return order_; }
  /// nullopt where the reference was not measured there, or on no other board. `quantity`: one of compared().
  std::optional<Factor> factor(const std::string& board, const std::string& quantity) const;
  /// Quantities by which boards are compared: time, power and energies.
  static const std::vector<std::string>& compared();
  /// What was measured on a board as the mean board would have it: each compared quantity over its factor, standard
  /// errors with the factor's own. Metrics are left as they are. False where nothing was changed.
  bool level(Measurement& measurement, const std::string& board) const;

 private:
  struct Sample {
    double logarithm = 0, relative_error = 0;
  };
  struct Mean {
    double logarithm = 0, variance = 0;
    int n = 0;
  };
  static Mean mean_of(const std::vector<Sample>& samples);

  std::vector<std::string> order_;
  std::map<std::string, std::map<std::string, std::vector<Sample>>> logarithms_;  ///< by board and quantity
};

}  // namespace ergotune
