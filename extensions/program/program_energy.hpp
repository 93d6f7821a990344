// Energy of a program's runs: what sensors saw of each sample, as one quantity with an interval.
#pragma once

#include <string>
#include <vector>

#include "ergotune/result.hpp"
#include "measure/energy/span_energy.hpp"

namespace ergotune {

struct EnergyOfRuns {
  std::string why_not;             ///< empty where there is a value
  Quantity energy;                 ///< J of one run
  Quantity power;                  ///< W while it runs
  double relative_half_width = 0;  ///< of the 95 % interval of the energy, over it
};

/// Several sensors are of different parts (processor and GPU), and their energies are added. `runs` lie in each span.
/// The standard error is the larger of what samples scatter and what the edges of the sensors leave open, with the
/// GPUs' repeatability and what their calibrations leave open.
EnergyOfRuns energy_of_runs(const std::vector<SensorTrace>& traces, const std::vector<TimeSpan>& spans,
                            std::size_t runs);

template <class Samples>
std::vector<TimeSpan> spans_of(const Samples& samples) {
  std::vector<TimeSpan> spans;
  for (const auto& sample : samples) spans.push_back(sample.span);
  return spans;
}

}  // namespace ergotune
