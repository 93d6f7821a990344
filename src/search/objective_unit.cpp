#include "search/objective_unit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "measure/propagate.hpp"
#include "problem/tables/quantity.hpp"
#include "search/objective_text.hpp"

namespace ergotune::search {
namespace {

std::string plain(const std::string& name) {
  return name.starts_with(kBestPrefix) ? name.substr(std::string_view(kBestPrefix).size()) : name;
}

/// The expression's value where everything of this unit is `scale` times as large; NaN where it has none.
double value_at(const Expression& expression, const std::map<std::string, std::string>& units, const std::string& unit,
                double scale) {
  std::vector<UncertainInput> inputs;
  double base = 1.0;
  for (const auto& [name, own] : units) {
    base += 0.37;  // different values, so that nothing cancels by chance
    inputs.push_back({name, Value(own == unit ? base * scale : base), 0});
  }
  const auto value = propagate(expression, inputs);
  return value ? value->value : std::numeric_limits<double>::quiet_NaN();
}

/// k where the expression grows as the k-th power of everything of this unit; nullopt where it does not.
std::optional<int> exponent(const Expression& expression, const std::map<std::string, std::string>& units,
                            const std::string& unit) {
  constexpr double kRounding = 1e-9;
  const auto growth = [&](double scale) {
    return std::log(value_at(expression, units, unit, scale) / value_at(expression, units, unit, 1)) / std::log(scale);
  };
  // a value that is missing, zero or of another sign makes what is no number, which is not within the rounding of one
  const double two = growth(2), five = growth(5);
  if (!(std::abs(two - std::round(two)) <= kRounding) || !(std::abs(five - two) <= kRounding)) return std::nullopt;
  return static_cast<int>(std::lround(two));
}

/// "GB/s", "GFLOP/s/W": more is better; "J", "J s", "ms": less; nullopt for what is neither.
std::optional<Direction> direction_of_unit(std::string_view unit) {
  static const std::set<std::string, std::less<>> kCosts{"s",  "ms", "us", "µs", "ns", "min", "h",
                                                         "J",  "kJ", "MJ", "mJ", "uJ", "µJ",  "nJ",
                                                         "pJ", "W",  "kW", "MW", "mW", "Wh",  "kWh"};
  bool below = false;
  std::optional<Direction> direction;
  for (std::size_t at = 0; at < unit.size();) {
    const std::size_t end = std::min(unit.find_first_of("/ *()^", at), unit.size());
    const std::string_view part = unit.substr(at, end - at);
    if (kCosts.contains(part) && !below) return Direction::minimise;
    if (kCosts.contains(part) || part.ends_with("FLOPS") || part.ends_with("flops")) direction = Direction::maximise;
    below = below || (end < unit.size() && unit[end] == '/');
    at = end + 1;
  }
  return direction;
}

std::optional<Direction> direction_of_name(const std::string& name, const std::vector<Metric>& metrics) {
  bool known = false;
  for (const Metric& metric : metrics) {
    if (metric.name != name) continue;
    known = true;
    if (!metric.unit.empty()) return direction_of_unit(metric.unit);
    if (!metric.expression.names().empty()) return direction_of_unit(unit_of_expression(metric.expression, metrics));
  }
  if (const QuantityInfo* info = quantity_info(name)) return info->better;
  // "nvml_energy", "benchmark_time"; of what is not known here others say so
  return !known || must_be_positive(name) ? std::optional(Direction::minimise) : std::nullopt;
}

}  // namespace

std::optional<Direction> direction_of_expression(const Expression& expression, const std::vector<Metric>& metrics) {
  const std::vector<std::string> names = expression.names();
  if (names.size() == 1 && expression.text() == names.front()) return direction_of_name(names.front(), metrics);
  // better where everything in it becomes better: "0.5 * time + 100 / rate" falls, "bandwidth / power" grows
  std::map<std::string, std::string> each;
  for (const std::string& name : names) each[name] = name;
  int falls = 0, grows = 0, costs = 0;
  for (const std::string& name : names) {
    const auto better = direction_of_name(plain(name), metrics);
    costs += better == Direction::minimise;
    if (name.starts_with(kBestPrefix)) continue;
    const double change = value_at(expression, each, name, 1.1) - value_at(expression, each, name, 1);
    if (!better || std::isnan(change)) ++falls, ++grows;  // not known
    if (better && change != 0) ++((change > 0) == (*better == Direction::minimise) ? falls : grows);
  }
  if (falls == 0 || grows == 0) return grows > 0 ? Direction::maximise : Direction::minimise;
  if (const auto direction = direction_of_unit(unit_of_expression(expression, metrics))) return direction;
  return costs == static_cast<int>(names.size()) ? std::optional(Direction::minimise) : std::nullopt;
}

std::string unit_of_expression(const Expression& expression, const std::vector<Metric>& metrics) {
  std::map<std::string, std::string> units;
  std::set<std::string> different;
  for (const std::string& name : expression.names()) different.insert(units[name] = unit_of(plain(name), metrics));
  std::string above, below;
  for (const std::string& unit : different) {
    if (unit.empty()) continue;
    const auto power = exponent(expression, units, unit);
    if (!power) return {};
    for (int k = 0; k < std::abs(*power); ++k) {
      std::string& part = *power > 0 ? above : below;
      part += (part.empty() ? "" : " ") + unit;
    }
  }
  if (below.empty()) return above;
  return fmt::format("{}/{}", above.empty() ? "1" : above, below.find(' ') == below.npos ? below : "(" + below + ")");
}

}  // namespace ergotune::search
