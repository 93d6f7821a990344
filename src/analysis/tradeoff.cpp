#include "analysis/tradeoff.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <numeric>

#include "search/pareto.hpp"

namespace ergotune {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Normalises "GFLOP/s", "gflops" and the like, to find the metrics of work per second and per joule.
std::string plain(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '/') out += static_cast<char>(std::tolower(c));
  }
  return out;
}
bool is_efficiency(const std::string& name) {
  const std::string p = plain(name);
  return p.find("/w") != std::string::npos || p.find("perwatt") != std::string::npos ||
         p.find("/j") != std::string::npos || p.find("perjoule") != std::string::npos;
}
bool is_speed(const std::string& name) {
  const std::string p = plain(name);
  return !is_efficiency(name) && (p.find("flop") != std::string::npos || p.find("gops") != std::string::npos ||
                                  p.find("tops") != std::string::npos || p.find("gb/s") != std::string::npos);
}

const RecordedColumn* find_column(const Recording& recording, bool (*wanted)(const std::string&)) {
  for (const RecordedColumn& column : recording.columns) {
    if (wanted(column.name)) return &column;
  }
  return nullptr;
}

/// Intersection of the hull with the line x = at (or y = at, with the coordinates exchanged): lowest and highest
/// crossing.
std::pair<double, double> cut(const std::vector<std::size_t>& hull, const std::vector<double>& x,
                              const std::vector<double>& y, double at) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::size_t i = 0; i < hull.size(); ++i) {
    const std::size_t a = hull[i], b = hull[(i + 1) % hull.size()];
    if ((x[a] - at) * (x[b] - at) > 0) continue;
    const double share = x[b] != x[a] ? (at - x[a]) / (x[b] - x[a]) : 0;
    for (const double v : {y[a] + share * (y[b] - y[a]), x[b] == x[a] ? y[b] : y[a] + share * (y[b] - y[a])}) {
      low = std::min(low, v);
      high = std::max(high, v);
    }
  }
  return {low, high};
}

Quadrants quadrants_of(const std::vector<TradeoffPoint>& points) {
  Quadrants q;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].speed > points[q.fastest].speed) q.fastest = i;
    if (points[i].efficiency > points[q.most_efficient].efficiency) q.most_efficient = i;
  }
  const TradeoffPoint fastest = points[q.fastest], efficient = points[q.most_efficient];
  for (const TradeoffPoint& p : points) {
    const bool above = p.efficiency > fastest.efficiency, right = p.speed > efficient.speed;
    q.beat_fastest_in_energy += above;
    q.beat_most_efficient_in_speed += right;
    q.beat_both += above && right;
  }
  q.energy_saved = 1 - efficient.energy / fastest.energy;
  q.speed_lost = 1 - efficient.speed / fastest.speed;
  return q;
}

Spread spread_of(const Tradeoff& tradeoff, const std::vector<double>& speed, const std::vector<double>& efficiency) {
  Spread spread;
  const auto& points = tradeoff.points;
  const auto [e_low, e_high] = cut(tradeoff.hull, speed, efficiency, points[tradeoff.quadrants->most_efficient].speed);
  if (e_low > 0) spread.energy_at_equal_speed = std::max(1.0, e_high / e_low);
  const auto [s_low, s_high] = cut(tradeoff.hull, efficiency, speed, points[tradeoff.quadrants->fastest].efficiency);
  if (s_low > 0) spread.time_at_equal_efficiency = std::max(1.0, s_high / s_low);

  // Windows of 1 % over the times, with their extremes of energy kept in two monotone queues.
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < points.size(); ++i) order.push_back(i);
  std::ranges::sort(order, [&](auto a, auto b) { return points[a].time < points[b].time; });
  std::vector<std::size_t> least, most;
  std::size_t least_from = 0, most_from = 0, first = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto energy = [&](std::size_t k) { return points[order[k]].energy; };
    while (least.size() > least_from && energy(least.back()) >= energy(i)) least.pop_back();
    while (most.size() > most_from && energy(most.back()) <= energy(i)) most.pop_back();
    least.push_back(i);
    most.push_back(i);
    while (points[order[i]].time > 1.01 * points[order[first]].time) ++first;
    while (least[least_from] < first) ++least_from;
    while (most[most_from] < first) ++most_from;
    spread.energy_within_one_percent =
        std::max(spread.energy_within_one_percent, energy(most[most_from]) / energy(least[least_from]));
  }
  return spread;
}

/// The columns and the parameter that determine the position of a row.
struct Columns {
  const RecordedColumn *time, *energy, *power, *clock, *speed, *efficiency;
  std::optional<std::size_t> clock_parameter;

  explicit Columns(const Recording& recording)
      : time(recording.column("time")),
        energy(recording.column("energy")),
        power(recording.column("power")),
        clock(recording.column("core_clock")),
        speed(find_column(recording, is_speed)),
        efficiency(find_column(recording, is_efficiency)) {
    for (std::size_t i = 0; i < recording.parameters.size(); ++i) {
      if (recording.parameters[i].kind == ParameterKind::core_clock_mhz) clock_parameter = i;
    }
  }
};

/// nullopt for a row without a valid time. Energy: as recorded, else power times time; NaN if neither is known.
std::optional<TradeoffPoint> point_of(const Recording& recording, const Columns& columns, std::size_t row) {
  const double t = columns.time->value[row];
  if (!usable(recording.statuses[row]) || !(t > 0) || !std::isfinite(t)) return std::nullopt;
  double e = columns.energy != nullptr ? columns.energy->value[row] : kNone;
  if (!std::isfinite(e) && columns.power != nullptr) e = columns.power->value[row] * t;
  if (!(e > 0)) e = kNone;
  TradeoffPoint point{row, t, e, 1 / t, 1 / e, kNone};
  if (columns.speed != nullptr && columns.speed->value[row] > 0) {
    point.speed = columns.speed->value[row];
    // Compute work per joule from work per second; a recorded efficiency may use another power.
    point.efficiency = point.speed * t / e;
  }
  if (const auto p = columns.clock_parameter) {
    point.clock_mhz = recording.parameters[*p].values[recording.position(row)[*p]].as_real();
  } else if (columns.clock != nullptr) {
    point.clock_mhz = columns.clock->value[row] * 1e-6;
  }
  return point;
}

/// Adds Pareto front, hull, quadrants and spread.
void add_geometry(Tradeoff& tradeoff) {
  std::vector<std::vector<double>> costs;
  std::vector<double> speeds, efficiencies;
  for (const TradeoffPoint& p : tradeoff.points) {
    costs.push_back({p.time, tradeoff.has_energy ? p.energy : 0.0});
    speeds.push_back(p.speed);
    efficiencies.push_back(p.efficiency);
  }
  tradeoff.pareto = pareto_front(costs);
  if (!tradeoff.has_energy) return;
  tradeoff.quadrants = quadrants_of(tradeoff.points);
  tradeoff.hull = convex_hull(speeds, efficiencies);
  const auto top = std::ranges::find(tradeoff.hull, tradeoff.quadrants->most_efficient);
  if (top != tradeoff.hull.end()) std::rotate(tradeoff.hull.begin(), top, tradeoff.hull.end());
  tradeoff.spread = spread_of(tradeoff, speeds, efficiencies);
}

}  // namespace

Tradeoff analyse_tradeoff(const Recording& recording) {
  Tradeoff tradeoff;
  const Columns columns(recording);
  tradeoff.speed_name = columns.speed != nullptr ? columns.speed->name : "launches per second";
  tradeoff.efficiency_name =
      columns.efficiency != nullptr && columns.speed != nullptr ? columns.efficiency->name : "launches per joule";
  if (columns.time == nullptr) return tradeoff;
  for (std::size_t row = 0; row < recording.size(); ++row) {
    const auto point = point_of(recording, columns, row);
    if (!point) continue;
    tradeoff.has_energy = tradeoff.has_energy || std::isfinite(point->energy);
    tradeoff.points.push_back(*point);
  }
  if (tradeoff.points.empty()) return tradeoff;
  if (tradeoff.has_energy)
    std::erase_if(tradeoff.points, [](const TradeoffPoint& p) { return !std::isfinite(p.energy); });
  add_geometry(tradeoff);
  return tradeoff;
}

std::vector<std::size_t> convex_hull(std::span<const double> x, std::span<const double> y) {
  // Andrew's monotone chain.
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    if (x[a] != x[b]) return x[a] < x[b];
    return y[a] != y[b] ? y[a] < y[b] : a < b;
  });
  order.erase(std::unique(order.begin(), order.end(), [&](auto a, auto b) { return x[a] == x[b] && y[a] == y[b]; }),
              order.end());
  if (order.size() < 3) return order;
  const auto turn = [&](std::size_t a, std::size_t b, std::size_t c) {
    return (x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a]);
  };
  std::vector<std::size_t> hull;
  const auto add = [&](std::size_t i, std::size_t least) {
    while (hull.size() >= least + 2 && turn(hull[hull.size() - 2], hull.back(), i) <= 0) hull.pop_back();
    hull.push_back(i);
  };
  for (const std::size_t i : order) add(i, 0);
  hull.pop_back();
  const std::size_t lower = hull.size();
  for (auto it = order.rbegin(); it != order.rend(); ++it) add(*it, lower);
  hull.pop_back();
  return hull;
}

}  // namespace ergotune
