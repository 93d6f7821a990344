// Energy of regions of code from the readings of sensors that go on before and after them.
#pragma once

#include <string>
#include <vector>

#include "ergotune/energy_region.hpp"
#include "measure/energy/span_energy.hpp"
#include "power/sensors/idle_power.hpp"

namespace ergotune {

/// s between readings of a sensor while regions are measured: two in its update period, at most 50 and at least 10 in a
/// second.
double region_reading_period(const SensorInfo& sensor);

/// s before a region of which readings are looked at, at most.
constexpr double kMostMargin = 30;

/// What the sensor saw of the spans, added up. Spans that follow each other with hardly a gap count as one: its edges
/// then are two. The interval is that of the edges (SpanEnergy::edge_error, with readings `period` s apart), of what
/// lies between the windows of a sensor that does not see all of the time, of the device's repeatability and of the
/// calibration, and the share of the time in which the sensor is read, since the program may wait meanwhile.
///
/// `at_most` is a bound: of a counter all ticks that a region touches, of a sensor whose windows cover all of the time
/// all windows that it touches, each counted once; and never more than the most that the device can draw, which alone
/// bounds what other sensors see.
SensorEnergy energy_of_regions(const SensorTrace& trace, const std::vector<TimeSpan>& spans,
                               const std::optional<IdlePower>& idle, double period, double share_reading = 0);

/// All sensors added up.
RegionEnergy sum_of(std::string name, const std::vector<TimeSpan>& spans, std::vector<SensorEnergy> sensors);

}  // namespace ergotune
