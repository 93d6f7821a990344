// Searches the clock or power limit at which a program needs the least energy within a bound on its slowdown, with the
// power-frequency model and few runs.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "model/power_model.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {

struct SettingSearchOptions {
  /// Allowed relative increase of the run time compared to the fastest setting: 0.05 is 5 %.
  double max_slowdown = 0.05;
  /// Number of settings measured before the model is used, and their largest number (without confirmation).
  std::size_t first = 6, most = 12;
  const std::atomic<bool>* interrupted = nullptr;
  /// Called for each measured setting.
  std::function<void(double setting, const Measurement&)> progress;
  /// Called during the confirmation with the remaining s.
  std::function<void(double seconds_left)> confirming;
};

/// A ratio with its standard error and the half-width of its 95 % interval.
struct Ratio {
  double value = 0, standard_error = 0, half_width = 0;
};

struct SettingChoice : Confidence {
  std::string name;                             ///< of the execution parameter: "core_clock_mhz"
  std::map<double, ConfigurationResult> tried;  ///< by setting
  /// The setting with the least energy within the allowed slowdown, confirmed; nullopt if no run worked.
  std::optional<double> best;
  /// The machine's setting without ergotune.
  double unchanged = 0;
  /// Best relative to unchanged: a time ratio above 1 is slower, an energy ratio below 1 saves energy.
  std::optional<Ratio> time_ratio, energy_ratio;
  PowerModel model;  ///< of core clocks; otherwise not usable
  std::string stopped_because;
};

/// The objective that ranks settings: least energy within the slowdown.
ObjectiveSpec setting_objective(double max_slowdown);

/// Searches the only execution parameter with several values in a prepared session. Clocks are first spread over the
/// range; power is fitted over the clock (model/power_model.hpp) and time over its inverse. The setting with the least
/// predicted energy is measured and the fit repeated, until that setting has been measured already. For power limits,
/// and for GPUs that the model does not fit, intervals around the best are halved. The best and the unchanged setting
/// are confirmed together. Throws UserError if there is nothing to search.
SettingChoice choose_setting(PreparedSession& prepared, const SettingSearchOptions& options);

}  // namespace ergotune
