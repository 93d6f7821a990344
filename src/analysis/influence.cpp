#include "analysis/influence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/statistics.hpp"
#include "ergotune/random.hpp"
#include "problem/tables/counter_names.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune {
namespace {

constexpr std::size_t kFewest = 8;
/// Number of multiplications allowed for all replicates together: about a second.
constexpr double kMostWork = 4e8;
constexpr double kSignificant = 0.05;
enum Target { kSpeed, kEfficiency, kProduct, kTargets };

/// A variable to correlate: values by position in Tradeoff::points; NaN: none.
struct Variable {
  std::string name;
  bool is_parameter = false;
  std::vector<double> values;
};

/// Time, energy and metrics derived from them correlate trivially. Recordings of other tools do not distinguish metrics
/// from counters, so names are used.
bool follows_from_time_and_energy(const RecordedColumn& column, const Tradeoff& tradeoff) {
  const bool metric = column.is_metric && !quantity_info(column.name) && !is_chip_metric(column.name);
  const QuantityInfo* info = quantity_info(column.name);
  return metric || (info && info->unit == "s" && info->better) || column.name.starts_with("time.") ||
         column.name == "gpu_time" || column.name.ends_with("energy") || column.name == tradeoff.speed_name ||
         column.name == tradeoff.efficiency_name || column.name == "clock_latency";
}

bool varies(const std::vector<double>& values) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  std::size_t count = 0;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    low = std::min(low, v);
    high = std::max(high, v);
    ++count;
  }
  return count >= kFewest && high > low;
}

std::vector<Variable> variables_of(const Recording& recording, const Tradeoff& tradeoff) {
  std::vector<Variable> list;
  const auto add = [&](std::string name, bool is_parameter, auto&& value) {
    Variable variable{std::move(name), is_parameter, {}};
    for (const TradeoffPoint& p : tradeoff.points) variable.values.push_back(value(p.row));
    if (varies(variable.values)) list.push_back(std::move(variable));
  };
  for (const RecordedColumn& column : recording.columns)
    if (!follows_from_time_and_energy(column, tradeoff))
      add(column.name, false, [&](std::size_t row) { return column.value[row]; });
  for (std::size_t k = 0; k < recording.parameters.size(); ++k) {
    const auto& values = recording.parameters[k].values;
    if (std::ranges::any_of(values, [](const Value& v) { return !v.is_number(); })) continue;
    add(recording.parameters[k].name, true,
        [&](std::size_t row) { return values[recording.position(row)[k]].as_real(); });
  }
  return list;
}

/// Scales values to mean 0 and standard deviation 1, so that sums of products lose no precision.
std::vector<double> normalised(std::vector<double> values) {
  std::vector<double> known;
  for (const double v : values)
    if (std::isfinite(v)) known.push_back(v);
  const double middle = mean(known), deviation = std::sqrt(variance(known));
  for (double& v : values) v = deviation > 0 ? (v - middle) / deviation : 0;
  return values;
}

/// Correlations of a variable with several targets, with a weight for each row.
void weighted_correlations(const std::vector<double>& x, const std::vector<std::vector<double>>& targets,
                           const std::vector<double>& weight, double* r) {
  double n = 0, sx = 0, sxx = 0, sy[kTargets] = {}, syy[kTargets] = {}, sxy[kTargets] = {};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double w = weight[i];
    if (w == 0 || !std::isfinite(x[i])) continue;
    n += w;
    sx += w * x[i];
    sxx += w * x[i] * x[i];
    for (std::size_t t = 0; t < targets.size(); ++t) {
      const double y = targets[t][i];
      sy[t] += w * y;
      syy[t] += w * y * y;
      sxy[t] += w * x[i] * y;
    }
  }
  for (std::size_t t = 0; t < targets.size(); ++t) {
    const double vx = sxx - sx * sx / n, vy = syy[t] - sy[t] * sy[t] / n;
    r[t] = vx > 0 && vy > 0 ? std::clamp((sxy[t] - sx * sy[t] / n) / std::sqrt(vx * vy), -1.0, 1.0) : 0;
  }
}

/// p-value for no correlation, by Fisher's transformation.
double p_of(double r, std::size_t count) {
  const double z = std::atanh(std::clamp(std::abs(r), 0.0, 1 - 1e-12)) * std::sqrt(static_cast<double>(count) - 3);
  return std::min(1.0, 2 * normal_cdf(-z));
}

void set_interval(Association& association, const std::vector<double>& replicates) {
  association.low = quantile(replicates, 0.025);
  association.high = quantile(replicates, 0.975);
}

/// Bootstrap replicates: [variable][target or shift][replicate].
using Replicates = std::vector<std::vector<std::vector<double>>>;

Replicates bootstrap(const std::vector<std::vector<double>>& scaled, const std::vector<std::vector<double>>& targets,
                     const InfluenceOptions& options) {
  const std::size_t rows = targets.front().size();
  const double each = static_cast<double>(rows) * static_cast<double>(scaled.size()) * 12;
  const auto replicates =
      static_cast<std::size_t>(std::clamp(kMostWork / each, 100.0, static_cast<double>(options.replicates)));
  Replicates all(scaled.size(), std::vector<std::vector<double>>(kTargets + 1));
  Random random(options.seed);
  std::vector<double> weight(rows);
  double r[kTargets] = {};
  for (std::size_t b = 0; b < replicates; ++b) {
    std::ranges::fill(weight, 0.0);
    for (std::size_t i = 0; i < rows; ++i) weight[random.below(rows)] += 1;
    for (std::size_t v = 0; v < scaled.size(); ++v) {
      weighted_correlations(scaled[v], targets, weight, r);
      for (std::size_t t = 0; t < targets.size(); ++t) all[v][t].push_back(r[t]);
      all[v][kTargets].push_back(r[kEfficiency] - r[kSpeed]);
    }
  }
  return all;
}

void correct(std::vector<Influence>& list, bool energy) {
  std::vector<Association*> tests, shifts;
  for (Influence& one : list) {
    tests.push_back(&one.speed);
    if (!energy) continue;
    tests.insert(tests.end(), {&one.efficiency, &one.product});
    shifts.push_back(&one.shift);
  }
  for (const auto& family : {tests, shifts}) {
    std::vector<double> p;
    for (const Association* test : family) p.push_back(test->p);
    p = holm_adjusted(p);
    for (std::size_t i = 0; i < p.size(); ++i) family[i]->p = p[i];
  }
}

void note_places(std::vector<Influence>& list) {
  std::vector<std::size_t> order(list.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return list[a].efficiency.r < list[b].efficiency.r; });
  for (std::size_t place = 0; place < order.size(); ++place) list[order[place]].place_in_efficiency = place;
  for (std::size_t place = 0; place < list.size(); ++place) {
    Influence& one = list[place];
    one.place_in_speed = place;
    const std::size_t a = one.place_in_speed, b = one.place_in_efficiency;
    const bool far = 4 * (a > b ? a - b : b - a) >= list.size();
    const bool goes_with_any = std::min(one.speed.p, one.efficiency.p) < kSignificant;
    one.moves = one.shift.p < kSignificant && goes_with_any && (far || one.speed.r * one.efficiency.r < 0);
  }
}

}  // namespace

std::vector<double> holm_adjusted(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, [&](auto a, auto b) { return p[a] < p[b]; });
  std::vector<double> adjusted(p.size());
  double least = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    least = std::max(least, std::min(1.0, static_cast<double>(order.size() - i) * p[order[i]]));
    adjusted[order[i]] = least;
  }
  return adjusted;
}

std::vector<Influence> influences(const Recording& recording, const Tradeoff& tradeoff,
                                  const InfluenceOptions& options) {
  std::vector<Influence> list;
  if (tradeoff.points.size() < kFewest) return list;
  const std::vector<Variable> variables = variables_of(recording, tradeoff);
  if (variables.empty()) return list;
  std::vector<std::vector<double>> targets(tradeoff.has_energy ? kTargets : 1);
  for (const TradeoffPoint& p : tradeoff.points) {
    targets[kSpeed].push_back(p.speed);
    if (!tradeoff.has_energy) continue;
    targets[kEfficiency].push_back(p.efficiency);
    targets[kProduct].push_back(p.speed * p.efficiency);
  }
  for (auto& target : targets) target = normalised(std::move(target));
  std::vector<std::vector<double>> scaled;
  for (const Variable& variable : variables) scaled.push_back(normalised(variable.values));
  const Replicates replicates = bootstrap(scaled, targets, options);
  const std::vector<double> once(tradeoff.points.size(), 1.0);
  for (std::size_t v = 0; v < variables.size(); ++v) {
    Influence one;
    one.name = variables[v].name;
    one.is_parameter = variables[v].is_parameter;
    one.count = static_cast<std::size_t>(std::ranges::count_if(scaled[v], [](double x) { return std::isfinite(x); }));
    double r[kTargets] = {};
    weighted_correlations(scaled[v], targets, once, r);
    Association* const places[] = {&one.speed, &one.efficiency, &one.product};
    for (std::size_t t = 0; t < targets.size(); ++t) {
      places[t]->r = r[t];
      places[t]->p = p_of(r[t], one.count);
      set_interval(*places[t], replicates[v][t]);
    }
    if (tradeoff.has_energy) {
      const std::vector<double>& shifts = replicates[v][kTargets];
      const double deviation = std::sqrt(variance(shifts));
      one.shift.r = r[kEfficiency] - r[kSpeed];
      one.shift.p = deviation > 0 ? std::min(1.0, 2 * normal_cdf(-std::abs(one.shift.r) / deviation)) : 1;
      set_interval(one.shift, shifts);
    }
    list.push_back(std::move(one));
  }
  correct(list, tradeoff.has_energy);
  std::ranges::stable_sort(list, [](const Influence& a, const Influence& b) { return a.speed.r < b.speed.r; });
  if (tradeoff.has_energy) note_places(list);
  return list;
}

std::vector<Level> levels_of(const Recording& recording, const Tradeoff& tradeoff, const std::string& quantity) {
  constexpr std::size_t kMostLevels = 32;
  constexpr double kFinest = 64;
  const RecordedColumn* column = recording.column(quantity);
  if (!column) return {};
  std::map<double, std::pair<RunningStatistics, RunningStatistics>> groups;
  for (const TradeoffPoint& p : tradeoff.points) {
    const double value = column->value[p.row];
    if (!std::isfinite(value)) continue;
    auto& [speed, efficiency] = groups[std::round(value * kFinest) / kFinest];
    speed.add(p.speed);
    if (tradeoff.has_energy) efficiency.add(p.efficiency);
  }
  std::vector<Level> levels;
  if (groups.size() > kMostLevels) return levels;
  for (const auto& [value, statistics] : groups) {
    const auto& [speed, efficiency] = statistics;
    levels.push_back(
        {value, speed.count(), speed.mean(), speed.standard_error(), efficiency.mean(), efficiency.standard_error()});
  }
  return levels;
}

std::vector<WeightedBest> weighted_sweep(const Tradeoff& tradeoff) {
  std::vector<WeightedBest> sweep;
  if (!tradeoff.has_energy || tradeoff.points.empty()) return sweep;
  double t0 = std::numeric_limits<double>::infinity(), e0 = t0;
  for (const TradeoffPoint& p : tradeoff.points) {
    t0 = std::min(t0, p.time);
    e0 = std::min(e0, p.energy);
  }
  const auto at = [&](std::size_t i, double a) {
    return a * tradeoff.points[i].time / t0 + (1 - a) * tradeoff.points[i].energy / e0;
  };
  // From the least energy: the next best is the first to overtake the current one.
  std::size_t now = 0;
  for (std::size_t i = 1; i < tradeoff.points.size(); ++i) {
    const auto& [p, q] = std::pair(tradeoff.points[i], tradeoff.points[now]);
    if (p.energy < q.energy || (p.energy == q.energy && p.time < q.time)) now = i;
  }
  double from = 0;
  while (true) {
    double until = 1;
    std::size_t next = now;
    for (std::size_t i = 0; i < tradeoff.points.size(); ++i) {
      const double gain = (tradeoff.points[now].time - tradeoff.points[i].time) / t0;
      if (!(gain > 0)) continue;
      const double cost = (tradeoff.points[i].energy - tradeoff.points[now].energy) / e0;
      const double crossing = cost / (cost + gain);
      if (crossing < until || (crossing == until && next != now && at(i, 1) < at(next, 1))) {
        until = crossing;
        next = i;
      }
    }
    sweep.push_back({from, next == now ? 1 : until, now});
    if (next == now) return sweep;
    from = until;
    now = next;
  }
}

}  // namespace ergotune
