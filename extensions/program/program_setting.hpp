// The clock or power limit at which a program needs least energy without getting too slow: by the power-frequency model
// and few runs.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/power_model.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {

struct SettingSearchOptions {
  /// By how much longer a run may take than at the fastest setting: 0.05 is 5 %.
  double max_slowdown = 0.05;
  /// Settings that are measured before the model is believed, and at most (confirmation not counted).
  std::size_t first = 6, most = 12;
  const std::atomic<bool>* interrupted = nullptr;
  /// Called with each setting that was measured.
  std::function<void(double setting, const Measurement&)> progress;
  /// While the best is measured again beside the unchanged: s that are left.
  std::function<void(double seconds_left)> confirming;
};

/// A ratio with its standard error and the half-width of its 95 % interval.
struct Ratio {
  double value = 0, standard_error = 0, half_width = 0;
};

struct SettingChoice : Confidence {
  std::string name;                             ///< of the execution parameter: "core_clock_mhz"
  std::map<double, ConfigurationResult> tried;  ///< by setting
  /// Least energy within the slowdown that is allowed, confirmed; nullopt when nothing worked.
  std::optional<double> best;
  /// What the machine does when left alone.
  double unchanged = 0;
  /// Of the best against the unchanged: time above 1 is slower, energy below 1 is less.
  std::optional<Ratio> time_ratio, energy_ratio;
  PowerModel model;  ///< of core clocks; not usable elsewhere
  std::string stopped_because;
};

/// The objective by which such settings are ranked everywhere: least energy under the slowdown.
ObjectiveSpec setting_objective(double max_slowdown);

/// Searches the one execution parameter of a prepared session with several values. Clocks are spread over the range,
/// power is fitted over the clock (model/power_model.hpp) and time over its inverse; the setting of which they promise
/// least energy is measured and fitted again, until it is one that was measured. Limits, and GPUs that the model does
/// not fit, are halved around the best. The best and the unchanged are confirmed side by side. Throws UserError where
/// there is nothing to search.
SettingChoice choose_setting(PreparedSession& prepared, const SettingSearchOptions& options);

}  // namespace ergotune
