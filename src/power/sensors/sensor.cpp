#include "power/sensors/sensor.hpp"

namespace ergotune {

std::string to_string(SensorKind kind) {
  switch (kind) {
    case SensorKind::cumulative_energy:
      return "cumulative_energy";
    case SensorKind::instantaneous_power:
      return "instantaneous_power";
    case SensorKind::windowed_power:
      return "windowed_power";
    case SensorKind::exponential_power:
      return "exponential_power";
  }
  return "unknown";
}

std::string to_string(SensorScope scope) {
  switch (scope) {
    case SensorScope::chip:
      return "chip";
    case SensorScope::gpu:
      return "board";
    case SensorScope::module:
      return "module";
    case SensorScope::rail:
      return "rail";
    case SensorScope::package:
      return "package";
    case SensorScope::node:
      return "node";
  }
  return "unknown";
}

}  // namespace ergotune
