// Energy of regions of code from sensor readings that extend before and after them.
#pragma once

#include <string>
#include <vector>

#include "ergotune/energy_region.hpp"
#include "measure/energy/span_energy.hpp"
#include "power/sensors/stored_calibration.hpp"

namespace ergotune {

/// Returns the time in s between readings of a sensor while regions are measured: half of its update period, between
/// 1/50 s and 1/10 s.
double region_reading_period(const SensorInfo& sensor);

/// Longest time in s before a region from which readings are used.
constexpr double kMostMargin = 30;

/// Sums a sensor's energy over the spans. Spans with hardly a gap between them are merged, since each end adds
/// uncertainty. The interval covers the ends (SpanEnergy::edge_error, with readings `period` s apart), the time between
/// windows of a sensor that does not cover all of the time, the repeatability of the device, the calibration, and the
/// share of time spent on reading the sensor, during which the program may have to wait.
///
/// `at_most` is an upper bound. Counters: all ticks that overlap with a region. Sensors whose windows cover all of the
/// time: all windows that overlap with a region, each counted once. It never exceeds the most that the device can draw,
/// which is the only bound for other sensors.
SensorEnergy energy_of_regions(const SensorTrace& trace, const std::vector<TimeSpan>& spans,
                               const std::optional<IdlePower>& idle, double period, double share_reading = 0);

/// Returns the sum over all sensors.
RegionEnergy sum_of(std::string name, const std::vector<TimeSpan>& spans, std::vector<SensorEnergy> sensors);

}  // namespace ergotune
