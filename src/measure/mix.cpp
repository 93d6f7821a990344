#include "measure/mix.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/statistics.hpp"
#include "ergotune/problem.hpp"
#include "measure/timing/estimate.hpp"
#include "measure/timing/timing.hpp"

namespace ergotune {
namespace {

constexpr std::size_t kLeastRounds = 3, kMostRounds = 10;

struct Interval {
  double begin, end;
};

/// Returns the time in s during which at least `at_least` intervals overlap.
double covered(const std::vector<Interval>& intervals, int at_least) {
  std::vector<std::pair<double, int>> edges;
  for (const Interval& interval : intervals) {
    edges.emplace_back(interval.begin, 1);
    edges.emplace_back(interval.end, -1);
  }
  // Intervals that only touch do not overlap: ends are sorted before beginnings.
  std::sort(edges.begin(), edges.end());
  double total = 0, before = 0;
  int running = 0;
  for (const auto& [at, change] : edges) {
    if (running >= at_least) total += at - before;
    running += change;
    before = at;
  }
  return total;
}

Quantity quantity_of(const std::vector<double>& samples, const char* method) {
  const TimeEstimate estimate = estimate_time(samples);
  return {estimate.value,       estimate.standard_error, static_cast<std::int64_t>(estimate.count), method, {},
          Provenance::measured, estimate.degrees};
}

}  // namespace

void measure_kernel_times(Device& device, LoadedIteration& round, const Problem& problem, double seconds,
                          Measurement& result) {
  KernelWorkload& workload = round.kernels();
  const std::size_t steps = workload.steps().size();
  MarkerPool markers(device);  // begin and end of the iteration, then two per step
  std::vector<std::vector<double>> times(problem.kernels.size());
  std::vector<double> overlaps;
  double spent = 0;
  for (std::size_t i = 0; i < kMostRounds && (i < kLeastRounds || spent < seconds); ++i) {
    device.record(markers[0]);
    workload.launch_marked([&](std::size_t step, bool after, Queue* queue) {
      device.record(markers[2 + 2 * step + (after ? 1 : 0)], queue);
    });
    device.record(markers[1]);
    device.synchronise();
    spent += device.seconds_between(markers[0], markers[1]);
    std::vector<Interval> intervals(steps);
    std::vector<double> of_kernel(problem.kernels.size(), 0.0);
    for (std::size_t step = 0; step < steps; ++step) {
      const double took = device.seconds_between(markers[2 + 2 * step], markers[3 + 2 * step]);
      const double end = device.seconds_between(markers[0], markers[3 + 2 * step]);
      intervals[step] = {end - took, end};
      of_kernel[round.kernel_of(step)] += took;
    }
    for (std::size_t k = 0; k < times.size(); ++k) times[k].push_back(of_kernel[k]);
    const double busy = covered(intervals, 1);
    overlaps.push_back(busy > 0 ? covered(intervals, 2) / busy : 0.0);
  }
  for (std::size_t k = 0; k < times.size(); ++k)
    if (mean(times[k]) > 0)
      result.quantities["time." + problem.kernels[k].name] =
          quantity_of(times[k], "device events around the kernel's launches, in the mix");
  result.quantities["overlap"] = quantity_of(overlaps, "device events around every launch");
}

}  // namespace ergotune
