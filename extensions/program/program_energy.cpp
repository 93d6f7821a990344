#include "program/program_energy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/statistics.hpp"
#include "measure/energy/energy_plausible.hpp"
#include "measure/timing/timing.hpp"

namespace ergotune {

EnergyOfRuns energy_of_runs(const std::vector<SensorTrace>& traces, const std::vector<TimeSpan>& spans,
                            std::size_t runs) {
  EnergyOfRuns out;
  std::vector<double> joules(spans.size(), 0.0);
  double edges = 0, lasting = 0;
  std::string sensors;
  for (const SensorTrace& trace : traces) {
    const std::vector<SpanEnergy> seen = energy_over(trace, spans);
    double sum = 0, seconds = 0, edge = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (!seen[i].why_not.empty()) {
        out.why_not = fmt::format("{}: {}", trace.info.id, seen[i].why_not);
        return out;
      }
      joules[i] += seen[i].joules;
      sum += seen[i].joules;
      seconds += spans[i].length();
      edge += seen[i].edge_error;
    }
    edges = std::hypot(edges, edge / static_cast<double>(spans.size()));
    // Errors that are common to all samples, for the share of one sensor.
    const double watts = seconds > 0 ? sum / seconds : 0;
    lasting = std::hypot(lasting, std::hypot(trace.info.repeatability, calibration_error(trace.info, watts)) * sum /
                                      static_cast<double>(spans.size()));
    sensors += (sensors.empty() ? "" : ",") + trace.info.id;
  }
  std::vector<double> powers;
  for (std::size_t i = 0; i < spans.size(); ++i) powers.push_back(joules[i] / spans[i].length());
  const TimeEstimate energy = estimate_time(joules), power = estimate_time(powers);
  const double count = std::sqrt(static_cast<double>(spans.size())), each = static_cast<double>(runs);
  // The scatter is estimated from few samples; the sensor's uncertainty is known.
  const auto scatter_or = [](const TimeEstimate& e, double edge) {
    return e.standard_error > edge ? ErrorEstimate{e.standard_error, e.degrees} : ErrorEstimate{edge};
  };
  const ErrorEstimate terms[] = {scatter_or(energy, edges / count), {lasting}};
  const auto [error, degrees] = combined_error(terms);
  const auto n = static_cast<std::int64_t>(spans.size() * runs);
  const std::string method = runs > 1 ? fmt::format("trimmed mean over runs, {} each", runs) : "trimmed mean over runs";
  out.energy = {energy.value / each, error / each, n, method, sensors, Provenance::measured, degrees};
  const double relative = energy.value > 0 ? std::hypot(std::max(0.0, edges / count), lasting) / energy.value : 0;
  const ErrorEstimate of_power = scatter_or(power, relative * power.value);
  out.power = {power.value, of_power.standard_error, n, method, sensors, Provenance::measured, of_power.degrees};
  if (energy.count < 2 || !(energy.value > 0)) {
    out.why_not = "one run alone gives no error";
    return out;
  }
  out.relative_half_width = out.energy.half_width() / out.energy.value;
  return out;
}

}  // namespace ergotune
