// Serialised fields of configurations, measurements and devices, shared by all protocols.
#pragma once

#include "base/messages/serialise.hpp"
#include "device/device.hpp"
#include "ergotune/result.hpp"
#include "ergotune/space.hpp"
#include "measure/runner.hpp"

namespace ergotune {

constexpr Status last_value(Status) { return Status::unsupported; }
constexpr Provenance last_value(Provenance) { return Provenance::modelled; }

inline auto fields(Value& value) {
  // Any content of a variant of these types is valid.
  return std::tie(const_cast<std::variant<bool, std::int64_t, double, std::string>&>(value.data()));
}
inline auto fields(DeviceInfo& info) {
  auto& [id, name, backend, uuid, pci_address, driver_version, is_cpu, properties] = info;
  return std::tie(id, name, backend, uuid, pci_address, driver_version, is_cpu, properties);
}
inline auto fields(MeasureSettings& settings) {
  auto& [precision, warm_up, min_repeats, max_repeats, max_seconds, cold_cache, verify, reference_seconds] = settings;
  return std::tie(precision, warm_up, min_repeats, max_repeats, max_seconds, cold_cache, verify, reference_seconds);
}
inline auto fields(MeasureOptions& options) {
  // A structured binding cannot name a base's members as well: the additional members of MeasureOptions are listed
  // here.
  return std::tuple_cat(fields(static_cast<MeasureSettings&>(options)),
                        std::tie(options.min_sample_seconds, options.stream_seconds_limit, options.reference_file));
}
inline auto fields(RunOptions& options) {
  auto& [give_up_above, objective_quantity, energy_up_to, reference_only, resources_only, watched, requested_clock_mhz,
         clock_tolerance, set_at, state_only] = options;
  return std::tie(give_up_above, objective_quantity, energy_up_to, reference_only, resources_only, watched,
                  requested_clock_mhz, clock_tolerance, set_at, state_only);
}
inline auto fields(Quantity& quantity) {
  auto& [value, standard_error, n, method, sensor, provenance, degrees] = quantity;
  return std::tie(value, standard_error, n, method, sensor, provenance, degrees);
}
inline auto fields(Measurement& measurement) {
  auto& [status, message, quantities, metrics, metric_errors, metric_degrees, warnings, times, compile_seconds,
         verify_seconds, measure_seconds, tuner_seconds, finished_at] = measurement;
  return std::tie(status, message, quantities, metrics, metric_errors, metric_degrees, warnings, times, compile_seconds,
                  verify_seconds, measure_seconds, tuner_seconds, finished_at);
}

}  // namespace ergotune
