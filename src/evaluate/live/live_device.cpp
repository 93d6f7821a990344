#include "evaluate/live/live_device.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace ergotune {

LiveOptions LiveOptions::from(const RunConfig& settings) {
  LiveOptions options;
  static_cast<LiveSettings&>(options) = settings;
  options.measure = MeasureOptions::from(settings);
  if (const double reference = settings.reference_seconds; reference > 0) {
    options.energy = true;
    options.time_limit = std::max(options.time_limit, 3 * reference + 30);
  }
  return options;
}

Measurement failed_measurement(Status status, const std::string& message) {
  Measurement measurement;
  measurement.status = status;
  measurement.message = message;
  measurement.finished_at = wall_seconds();
  return measurement;
}

}  // namespace ergotune
