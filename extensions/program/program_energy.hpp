// Energy of a program's runs: the sensors' readings during all samples as one quantity with an interval.
#pragma once

#include <string>
#include <vector>

#include "ergotune/result.hpp"
#include "measure/energy/span_energy.hpp"

namespace ergotune {

struct EnergyOfRuns {
  std::string why_not;             ///< why there is no value; empty: there is one
  Quantity energy;                 ///< J per run
  Quantity power;                  ///< W during a run
  double relative_half_width = 0;  ///< half-width of the 95 % interval of the energy, relative to the energy
};

/// Sensors measure different parts (CPU and GPU), and their energies are added. Each span contains `runs` runs. The
/// standard error is the larger of the scatter of the samples and the uncertainty at the edges of the sensors'
/// readings, combined with the GPUs' repeatability and the uncertainty of their calibrations.
EnergyOfRuns energy_of_runs(const std::vector<SensorTrace>& traces, const std::vector<TimeSpan>& spans,
                            std::size_t runs);

template <class Samples>
std::vector<TimeSpan> spans_of(const Samples& samples) {
  std::vector<TimeSpan> spans;
  for (const auto& sample : samples) spans.push_back(sample.span);
  return spans;
}

}  // namespace ergotune
