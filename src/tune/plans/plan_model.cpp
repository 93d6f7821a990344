// The fit_model stage of a plan: fits the energy of one code configuration over the clock, from a few clocks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/statistics.hpp"
#include "ergotune/random.hpp"
#include "tune/plans/device_model.hpp"
#include "tune/plans/plan_run.hpp"

namespace ergotune::plans {
namespace {

struct ClockPoint {
  double requested_mhz = 0, energy = 0, time = 0;
  PowerSample sample;
};

/// Energy over the clock: the power model times a time of t0 + c/f, scaled by the interpolated ratio of measured to
/// modelled energy. The model gives the shape between the samples; the samples correct it where a kernel does not load
/// the device as the model assumes (a memory-bound kernel need not slow down with the clock).
class EnergyCurve {
 public:
  EnergyCurve(const PowerModel& model, std::vector<ClockPoint> points) : model_(model), points_(std::move(points)) {
    std::ranges::sort(points_,
                      [](const ClockPoint& a, const ClockPoint& b) { return a.requested_mhz < b.requested_mhz; });
    std::vector<double> x, y;
    for (const ClockPoint& p : points_) {
      x.push_back(1 / p.requested_mhz);
      y.push_back(p.time);
    }
    const LineFit line = fit_line(x, y);
    start_ = std::max(0.0, line.intercept);
    slope_ = std::max(0.0, line.slope);
    if (start_ == 0 && slope_ == 0) start_ = mean(y);
  }
  double at(double clock_mhz) const { return shape(clock_mhz) * correction(clock_mhz); }

 private:
  double shape(double f) const { return (model_.usable ? model_.curve.power(f) : 1.0) * (start_ + slope_ / f); }
  double correction(double f) const {
    const auto ratio = [&](const ClockPoint& p) { return p.energy / shape(p.requested_mhz); };
    if (f <= points_.front().requested_mhz) return ratio(points_.front());
    for (std::size_t i = 1; i < points_.size(); ++i) {
      const double low = points_[i - 1].requested_mhz, high = points_[i].requested_mhz;
      if (f > high) continue;
      const double share = high > low ? (f - low) / (high - low) : 0;
      return (1 - share) * ratio(points_[i - 1]) + share * ratio(points_[i]);
    }
    return ratio(points_.back());
  }
  const PowerModel& model_;
  std::vector<ClockPoint> points_;
  double start_ = 0, slope_ = 0;
};

std::optional<ClockPoint> clock_point(const Measurement& m, double requested_mhz) {
  const auto energy = m.value("energy"), time = m.value("time");
  if (!usable(m.status) || !energy || !time || *energy <= 0 || *time <= 0) return std::nullopt;
  ClockPoint point;
  point.requested_mhz = requested_mhz;
  point.energy = *energy;
  point.time = *time;
  // The actual clock, if it was recorded: throttled samples then lie on the curve.
  point.sample.clock_mhz = m.value("core_clock") ? *m.value("core_clock") * 1e-6 : requested_mhz;
  if (point.sample.clock_mhz < 0.2 * requested_mhz || point.sample.clock_mhz > 1.2 * requested_mhz)
    point.sample.clock_mhz = requested_mhz;
  point.sample.power_w = *energy / *time;
  if (m.value("core_voltage")) point.sample.voltage_v = m.value("core_voltage");
  return point;
}

}  // namespace

std::optional<ConfigurationIndex> PlanRun::representative(const PlanStage& stage) {
  // Tries a twenty-fifth of the code configurations: at least 5 (a quarter of them, if there are few), at most 20 that
  // work.
  double code = static_cast<double>(space_.size());
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    if (kinds_[i] != ParameterKind::code) code /= static_cast<double>(space_.parameters()[i].values.size());
  }
  const auto enough = static_cast<std::size_t>(std::clamp(code / 25, std::min(5.0, std::ceil(code / 4)), 20.0));
  const std::size_t tries = 10 * enough;
  // The default code if it runs, and random ones. The one with the least energy is most similar to the code that tuning
  // will find.
  std::vector<ConfigurationIndex> candidates;
  if (const auto index = space_.index_of(state_.current)) candidates.push_back(*index);
  Random random(options_.seed);
  std::vector<std::uint32_t> positions(kinds_.size());
  for (std::size_t i = 0; i < 40 * tries && candidates.size() < tries; ++i) {
    space_.values_at(space_.sample(random), positions);
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      if (kinds_[k] != ParameterKind::code) positions[k] = state_.current[k];
    }
    const auto index = space_.index_of(positions);
    if (index && std::ranges::find(candidates, *index) == candidates.end()) candidates.push_back(*index);
  }
  std::size_t usable_ones = 0;
  evaluate(stage, candidates, [&](ConfigurationIndex, const Measurement& measurement, bool) {
    usable_ones += usable(measurement.status);
    return usable_ones < enough && !interrupted();
  });
  const auto best = this->best(candidates, objective("energy"));
  return best ? std::optional(best->index) : std::nullopt;
}

std::vector<ConfigurationIndex> PlanRun::at_spaced_clocks(std::size_t clock, ConfigurationIndex code) const {
  std::vector<double> clocks;
  for (const Value& value : space_.parameters()[clock].values) clocks.push_back(value.as_real());
  std::vector<ConfigurationIndex> indices;
  std::vector<std::uint32_t> positions(kinds_.size());
  space_.values_at(code, positions);
  for (const double f : spaced_clocks(clocks, options_.model_clocks)) {
    positions[clock] = static_cast<std::uint32_t>(std::ranges::find(clocks, f) - clocks.begin());
    if (const auto index = space_.index_of(positions)) indices.push_back(*index);
  }
  return indices;
}

void PlanRun::use_model(std::size_t clock, const std::vector<ConfigurationIndex>& indices) {
  std::vector<double> clocks;
  for (const Value& value : space_.parameters()[clock].values) clocks.push_back(value.as_real());
  std::vector<ClockPoint> points;
  std::vector<PowerSample> samples;
  std::vector<std::uint32_t> positions(kinds_.size());
  for (const ConfigurationIndex index : indices) {
    if (find(index) == nullptr) continue;
    space_.values_at(index, positions);
    if (const auto point = clock_point(*find(index), clocks[positions[clock]])) {
      points.push_back(*point);
      samples.push_back(point->sample);
    }
  }
  if (points.empty()) {
    result_.why_not = "no energies at any clock to fit the model to";
    return;
  }
  result_.model = fit_power_model(samples);
  const EnergyCurve curve(*result_.model, points);
  double best = clocks.front();
  for (const double f : clocks) {
    if (curve.at(f) < curve.at(best)) best = f;
  }
  PowerModel around = *result_.model;
  around.optimal_clock_mhz.value = best;
  around.low_mhz = *std::ranges::min_element(clocks);
  around.high_mhz = *std::ranges::max_element(clocks);
  state_.model_clock = best;
  state_.model_range = suggested_range(around, options_.model_share, clocks);
  result_.model_range = state_.model_range;
}

void PlanRun::use_device_model() {
  const auto clock = core_clock();
  if (!clock) return;  // no clock to vary: parameters fixed at "model" keep their default
  if (!options_.device_model || !options_.device_model->model.usable) {
    result_.why_not = "it fixes the clock at \"model\", and there is no model of this device: see \"ergotune model\"";
    return;
  }
  std::vector<double> clocks;
  for (const Value& value : space_.parameters()[*clock].values) clocks.push_back(value.as_real());
  result_.model = options_.device_model->model;
  state_.model_clock = best_clock(*result_.model, clocks);
  state_.model_range = suggested_range(*result_.model, options_.model_share, clocks);
  result_.model_range = state_.model_range;
}

void PlanRun::fit_model(const PlanStage& stage) {
  StageResult result;
  result.name = stage.name;
  result.objective = "power over clock";
  const std::uint64_t before = requested_.size(), measured_before = result_.evaluated;
  const auto clock = core_clock();
  if (!clock) {
    // No clock to vary: the plan continues with the other parameters.
    result.strategy = "no core clock to fit over";
    result_.stages.push_back(std::move(result));
    return;
  }
  const auto code = representative(stage);
  if (!code) {
    result_.why_not = "no configuration worked to fit the model with";
    return;
  }
  space_.values_at(*code, state_.current);
  const std::vector<ConfigurationIndex> indices = at_spaced_clocks(*clock, *code);
  evaluate(stage, indices);
  use_model(*clock, indices);
  if (!result_.why_not.empty()) return;
  result.space = space_.parameters()[*clock].values.size();
  result.strategy = fmt::format("{} clocks of one code configuration", result_.model->samples);
  result.requested = requested_.size() - before;
  result.evaluated = result_.evaluated - measured_before;
  result.best = best(indices, objective("energy"));
  result_.stages.push_back(std::move(result));
}

}  // namespace ergotune::plans
