#include "tune/plans/sample_clocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "ergotune/error.hpp"
#include "measure/execution_parameters.hpp"

namespace ergotune {
namespace {

/// A sample is throttled only if its clock is below the requested one by more than this share and by more than half of
/// a usual step.
constexpr double kSameClock = 0.01, kHalfStepMhz = 7.5;
/// Throttled samples are replaced by further ones, up to this number.
constexpr std::size_t kMostThrottled = 4;

bool is_throttled(const PowerSample& sample, double requested) {
  return sample.clock_mhz < requested - std::max(kHalfStepMhz, kSameClock * requested);
}

/// The sample at a requested clock; nullopt if the measurement failed. One that ran below the requested clock counts as
/// failed but shows where the GPU throttles.
std::optional<PowerSample> sample_of(const Measurement& m, double requested) {
  const auto energy = m.value("energy"), time = m.value("time"), ran = m.value("core_clock");
  auto power = m.value("power");
  if (!power && energy && time && *time > 0) power = *energy / *time;
  if (!power) return std::nullopt;
  const bool reported = ran && *ran * 1e-6 > 0.2 * requested && *ran * 1e-6 < 1.1 * requested;
  PowerSample sample;
  sample.clock_mhz = reported ? *ran * 1e-6 : requested;
  sample.power_w = *power;
  sample.power_error_w = m.standard_error("power");
  sample.voltage_v = m.value("core_voltage");
  if (const auto memory = m.value("memory_clock")) sample.memory_clock_mhz = *memory * 1e-6;
  sample.temperature_c = m.value("temperature");
  if (!usable(m.status) && !is_throttled(sample, requested)) return std::nullopt;
  return sample;
}

void add(PowerSampling& out, const PowerSample& sample, const Measurement& m) {
  out.samples.push_back(sample);
  out.time_s.push_back(m.value("time").value_or(std::numeric_limits<double>::quiet_NaN()));
}

/// Requests clocks one after the other: first evenly spaced, then where the model is least certain.
class ClockSource : public Source {
 public:
  ClockSource(std::map<double, ConfigurationIndex> by_clock, const SamplingOptions& options, PowerSampling& out)
      : by_clock_(std::move(by_clock)), options_(options), out_(out) {
    const std::size_t first = options.adaptive ? std::max<std::size_t>(5, options.count / 2 + 1) : options.count;
    // Ascending, and taken from the back: highest first, since the rest is measured on a warm GPU.
    spaced_ = spaced_clocks(out.supported_mhz, std::min(first, options.count));
  }

  std::vector<ConfigurationRequest> next(std::size_t) override {
    if (under_way_) return {};
    const auto clock = next_clock_to_try();
    if (!clock) return {};
    requested_.insert(*clock);
    under_way_ = clock;
    ConfigurationRequest wanted;
    wanted.index = by_clock_.at(*clock);
    wanted.objective_quantity = "energy";
    return {wanted};
  }

  void take(const ConfigurationRequest&, const Measurement& m, bool) override {
    const double requested = *under_way_;
    under_way_.reset();
    const auto sample = sample_of(m, requested);
    if (!sample) {
      out_.notes.push_back(fmt::format("{:.0f} MHz: {}", requested, m.message.empty() ? "no power" : m.message));
      return;
    }
    if (is_throttled(*sample, requested)) {
      // Going Green fits up to the highest clock before throttling: beyond it the power limit determines the clock.
      out_.throttled.push_back(*sample);
      out_.high_mhz = std::min(out_.high_mhz, sample->clock_mhz);
      out_.notes.push_back(
          fmt::format("{:.0f} MHz ran at {:.0f} MHz: left out of the fit, and no clock above that is asked", requested,
                      sample->clock_mhz));
    } else {
      add(out_, *sample, m);
    }
    for (const std::string& warning : m.warnings) {
      if (std::ranges::find(out_.notes, warning) == out_.notes.end()) out_.notes.push_back(warning);
    }
    if (options_.progress) options_.progress(*sample, requested_.size(), std::min(wanted(), out_.supported_mhz.size()));
  }

 private:
  std::size_t wanted() const { return options_.count + std::min(kMostThrottled, out_.throttled.size()); }

  std::optional<double> next_clock_to_try() {
    if (requested_.size() < wanted())
      if (const auto clock = highest_unthrottled()) return clock;
    while (!spaced_.empty()) {
      const double clock = spaced_.back();
      spaced_.pop_back();
      if (clock < out_.high_mhz || out_.throttled.empty()) return clock;
    }
    if (requested_.size() >= std::min(wanted(), out_.supported_mhz.size())) return std::nullopt;
    // Clocks within a step of a known one add little information.
    const double spacing = (out_.high_mhz - out_.low_mhz) / (2.5 * static_cast<double>(options_.count));
    std::vector<double> candidates;
    for (const double f : out_.supported_mhz) {
      if (!out_.throttled.empty() && f >= out_.high_mhz) continue;
      const bool near = std::ranges::any_of(requested_, [&](double g) { return std::abs(f - g) < spacing; });
      if (!near) candidates.push_back(f);
    }
    return next_clock(fit_power_model(out_.samples), out_.samples, candidates);
  }

  /// A throttling GPU drops the highest spaced clocks, and with them the rise of power above the ridge point. Returns a
  /// clock just below the throttling one in their place; nullopt if the samples already contain one.
  std::optional<double> highest_unthrottled() const {
    constexpr double kBelow = 0.97, kNear = 0.88;  // relative to the clock at which it throttles
    if (out_.throttled.empty()) return std::nullopt;
    for (const PowerSample& sample : out_.samples)
      if (sample.clock_mhz > kNear * out_.high_mhz) return std::nullopt;
    std::optional<double> found;
    for (const double f : out_.supported_mhz)
      if (f > kNear * out_.high_mhz && f <= kBelow * out_.high_mhz && !requested_.contains(f)) found = f;
    return found;
  }

  std::map<double, ConfigurationIndex> by_clock_;
  const SamplingOptions& options_;
  PowerSampling& out_;
  std::vector<double> spaced_;
  std::set<double> requested_;
  std::optional<double> under_way_;
};

std::size_t core_clock_of(const SearchSpace& space) {
  for (std::size_t i = 0; i < space.dimensions(); ++i)
    if (execution_kind(space.parameters()[i]) == ParameterKind::core_clock_mhz) return i;
  throw UserError("there is no core clock to vary");
}

}  // namespace

void sample_all(Ledger& ledger, const SamplingOptions& options, PowerSampling& out) {
  const SearchSpace& space = ledger.space();
  const std::size_t clock = core_clock_of(space);
  std::vector<ConfigurationIndex> list(space.size());
  std::iota(list.begin(), list.end(), 0);
  std::size_t done = 0;
  ListSource source(list, [&](const ConfigurationRequest& wanted, const Measurement& m, bool) {
    const double requested = space.configuration(wanted.index)[clock].as_real();
    const auto sample = sample_of(m, requested);
    if (sample && !is_throttled(*sample, requested)) {
      add(out, *sample, m);
      if (options.progress) options.progress(*sample, ++done, list.size());
    }
    return true;
  });
  source.set_objective_quantity("energy");
  ledger.drive(source);
}

PowerSampling sample_clocks(Ledger& ledger, const SamplingOptions& options) {
  const SearchSpace& space = ledger.space();
  PowerSampling out;
  out.source = ledger.evaluator().description();
  out.provenance = ledger.evaluator().provenance();
  const std::size_t clock = core_clock_of(space);
  std::map<double, ConfigurationIndex> by_clock;
  for (ConfigurationIndex i = 0; i < space.size(); ++i) by_clock.emplace(space.configuration(i)[clock].as_real(), i);
  for (const auto& [f, index] : by_clock) out.supported_mhz.push_back(f);
  out.low_mhz = out.supported_mhz.front();
  out.high_mhz = out.supported_mhz.back();
  ClockSource source(std::move(by_clock), options, out);
  ledger.drive(source);
  // If the GPU throttles at nearly every clock, throttled samples are used rather than none.
  if (out.samples.size() < 3) {
    for (const PowerSample& sample : out.throttled) {
      out.samples.push_back(sample);
      out.time_s.push_back(std::numeric_limits<double>::quiet_NaN());
    }
  }
  return out;
}

}  // namespace ergotune
