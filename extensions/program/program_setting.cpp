#include "program/program_setting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "tune/ledger/leaderboard.hpp"
#include "tune/session/confirmation.hpp"

namespace ergotune {
namespace {

/// Measured values at a setting.
struct Point {
  double time = 0, energy = 0, power = 0, power_error = 0;
  double clock_mhz = 0;  ///< the actual clock
};

/// Requests settings one after the other, each where the least energy is predicted.
class SettingSource : public Source {
 public:
  SettingSource(std::map<double, ConfigurationIndex> by_setting, double unchanged, bool clocks,
                const SettingSearchOptions& options, std::function<void(ConfigurationIndex)> see)
      : by_setting_(std::move(by_setting)), clocks_(clocks), options_(options), see_(std::move(see)) {
    for (const auto& [setting, index] : by_setting_) all_.push_back(setting);
    // Taken from the back: the unchanged setting first, then from the highest.
    first_ = spaced_clocks(all_, std::min(options.first, all_.size()));
    std::erase(first_, unchanged);
    first_.push_back(unchanged);
  }

  std::vector<ConfigurationRequest> next(std::size_t) override {
    if (under_way_) return {};
    const auto setting = choose();
    if (!setting) return {};
    requested_.insert(*setting);
    under_way_ = setting;
    ConfigurationRequest wanted;
    wanted.index = by_setting_.at(*setting);
    wanted.objective_quantity = "energy";
    return {wanted};
  }

  void take(const ConfigurationRequest& wanted, const Measurement& m, bool) override {
    const double setting = *under_way_;
    under_way_.reset();
    see_(wanted.index);
    if (options_.progress) options_.progress(setting, m);
    const auto time = m.value("time"), energy = m.value("energy"), ran = m.value("core_clock");
    if (!usable(m.status) || !time || !energy) return;
    Point point{*time, *energy, m.value("power").value_or(*energy / *time), m.standard_error("power"), setting};
    if (ran && *ran * 1e-6 > 0.2 * setting && *ran * 1e-6 < 1.1 * setting) point.clock_mhz = *ran * 1e-6;
    points_[setting] = point;
  }

  PowerModel model() const {
    if (!clocks_) return {};
    std::vector<PowerSample> samples;
    for (const auto& [setting, point] : points_)
      samples.push_back({point.clock_mhz, point.power, point.power_error, {}, {}, {}});
    return fit_power_model(samples);
  }

 private:
  std::optional<double> choose() {
    if (!first_.empty()) {
      const double setting = first_.back();
      first_.pop_back();
      return setting;
    }
    if (points_.size() < 2 || requested_.size() >= std::min(options_.most, all_.size())) return std::nullopt;
    const PowerModel fitted = model();
    const auto promised = fitted.usable ? promised_best(fitted) : std::nullopt;
    if (promised) return is_known(*promised) ? std::nullopt : promised;
    return halving();
  }

  double fastest() const {
    double time = std::numeric_limits<double>::infinity();
    for (const auto& [setting, point] : points_) time = std::min(time, point.time);
    return time;
  }
  bool is_allowed(double seconds) const { return seconds <= (1 + options_.max_slowdown) * fastest(); }

  /// Whether a setting was requested or is so close to a requested one that noise hides the difference.
  bool is_known(double setting) const {
    const double near = (all_.back() - all_.front()) / 50;
    return std::ranges::any_of(requested_,
                               [&](double other) { return std::abs(setting - other) < std::max(near, 1e-9); });
  }

  /// The best setting according to the model; part of the time is proportional to the inverse of the clock, the rest is
  /// constant.
  std::optional<double> promised_best(const PowerModel& fitted) const {
    std::vector<double> inverse, times;
    for (const auto& [setting, point] : points_) {
      inverse.push_back(1 / point.clock_mhz);
      times.push_back(point.time);
    }
    const LineFit line = fit_line(inverse, times);
    std::optional<double> best;
    double least = std::numeric_limits<double>::infinity();
    for (const double setting : all_) {
      const double seconds = line.intercept + line.slope / setting;
      if (!(seconds > 0) || !is_allowed(seconds)) continue;
      const double joules = fitted.curve.power(setting) * seconds;
      if (joules < least) least = joules, best = setting;
    }
    return best;
  }

  /// The middle of the wider interval beside the best setting.
  std::optional<double> halving() const {
    const Point* best = nullptr;
    double at = 0;
    for (const auto& [setting, point] : points_)
      if (is_allowed(point.time) && (!best || point.energy < best->energy)) best = &point, at = setting;
    if (!best) return std::nullopt;
    std::optional<double> chosen;
    double widest = 0;
    for (const double setting : all_) {
      if (is_known(setting) || requested_.contains(setting)) continue;
      const auto above = requested_.upper_bound(setting), below = requested_.lower_bound(setting);
      if (above == requested_.end() || below == requested_.begin()) continue;
      const double low = *std::prev(below), high = *above;
      if (low != at && high != at) continue;
      const double room = std::min(setting - low, high - setting);
      if (room > widest) widest = room, chosen = setting;
    }
    return chosen;
  }

  std::map<double, ConfigurationIndex> by_setting_;
  bool clocks_;
  const SettingSearchOptions& options_;
  std::function<void(ConfigurationIndex)> see_;
  std::vector<double> all_, first_;
  std::set<double> requested_;
  std::map<double, Point> points_;
  std::optional<double> under_way_;
};

Ratio ratio_of(const Measurement& a, const Measurement& b, const char* name) {
  const double x = a.value(name).value_or(0), y = b.value(name).value_or(0);
  Ratio ratio{x / y, 0};
  const ErrorEstimate terms[] = {{a.standard_error(name) / x, a.degrees(name)},
                                 {b.standard_error(name) / y, b.degrees(name)}};
  const ErrorEstimate error = combined_error(terms);
  ratio.standard_error = ratio.value * error.standard_error;
  ratio.half_width = half_width_95(ratio.standard_error, error.degrees);
  return ratio;
}

/// The position of the parameter to be searched.
std::size_t searched_parameter(const SearchSpace& space) {
  for (std::size_t i = 0; i < space.dimensions(); ++i)
    if (space.parameters()[i].kind != ParameterKind::code && space.parameters()[i].values.size() > 1) return i;
  throw UserError("there is no clock or power limit with more than one value to choose from");
}

}  // namespace

ObjectiveSpec setting_objective(double max_slowdown) {
  ObjectiveSpec spec;
  spec.text = fmt::format("energy subject to time <= {} * best(time)", 1 + max_slowdown);
  return spec;
}

SettingChoice choose_setting(PreparedSession& prepared, const SettingSearchOptions& options) {
  const SearchSpace& space = *prepared.space;
  const std::size_t place = searched_parameter(space);
  const Parameter& parameter = space.parameters()[place];
  SettingChoice choice;
  choice.name = parameter.name;
  std::map<double, ConfigurationIndex> by_setting;
  for (ConfigurationIndex i = 0; i < space.size(); ++i) by_setting.emplace(space.configuration(i)[place].as_real(), i);
  choice.unchanged = parameter.default_value ? parameter.default_value->as_real() : by_setting.rbegin()->first;

  const auto ledger = prepared.open_ledger({}, options.interrupted);
  RunInfo run;
  run.objective = prepared.objective->spec();
  run.phase = "trying settings";
  ledger->begin_run(run);
  Leaderboard standing(*ledger, *prepared.objective);
  const std::uint64_t before = ledger->evaluated();
  SettingSource source(by_setting, choice.unchanged, parameter.kind == ParameterKind::core_clock_mhz, options,
                       [&](ConfigurationIndex index) {
                         if (standing.see(index)) standing.recompute_outcomes();
                       });
  choice.stopped_because = ledger->drive(source);
  choice.model = source.model();
  if (choice.stopped_because.empty()) {
    Confirmation confirmation(*ledger, *prepared.objective, standing, by_setting.at(choice.unchanged),
                              options.confirming);
    confirmation.run(ledger->evaluated() > before);
    static_cast<Confidence&>(choice) = confirmation.confidence();
    choice.stopped_because = ledger->interrupted() ? "interrupted" : "finished";
  }
  ledger->end_run(choice.stopped_because);
  for (const auto& [setting, index] : by_setting)
    if (const ConfigurationResult* entry = ledger->find(index)) choice.tried.emplace(setting, *entry);
  const std::vector<ConfigurationIndex> ranking = standing.ranking();
  if (ranking.empty()) return choice;
  choice.best = space.configuration(ranking.front())[place].as_real();
  const Measurement& best = choice.tried.at(*choice.best).measurement;
  const auto unchanged = choice.tried.find(choice.unchanged);
  if (unchanged != choice.tried.end() && usable(unchanged->second.measurement.status)) {
    choice.time_ratio = ratio_of(best, unchanged->second.measurement, "time");
    choice.energy_ratio = ratio_of(best, unchanged->second.measurement, "energy");
  }
  return choice;
}

}  // namespace ergotune
