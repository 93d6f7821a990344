// Rooflines of time (Williams, Waterman, Patterson 2009) and energy (Choi, Bedard, Fowler, Vuduc 2013), and an
// explanation from them and the correlations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>

#include "analysis/influence.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// The first of these columns that contains a number.
const RecordedColumn* first_of(const Recording& recording, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const RecordedColumn* column = recording.column(name);
    if (column && std::ranges::any_of(column->value, [](double v) { return std::isfinite(v); })) return column;
  }
  return nullptr;
}

/// Operations per unit of a metric named GFLOP/s, gflops, TFLOPS or similar; 0 if it is not a rate of operations.
double operations_per_unit(const std::string& name) {
  std::string plain;
  for (const char c : name) plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::size_t at = plain.find("flop");
  if (at == plain.npos) return 0;
  const char prefix = at > 0 ? plain[at - 1] : ' ';
  return prefix == 'k'   ? 1e3
         : prefix == 'm' ? 1e6
         : prefix == 'g' ? 1e9
         : prefix == 't' ? 1e12
         : prefix == 'p' ? 1e15
                         : 1;
}

/// Operations and bytes of device memory per iteration, as far as recorded.
struct Counted {
  const RecordedColumn *single = nullptr, *twice = nullptr, *read = nullptr, *written = nullptr;
  double unit = 0;  ///< of the metric for speed, where operations were not counted
  std::string work;

  Counted(const Recording& recording, const Tradeoff& tradeoff)
      : single(first_of(recording, {"flop_count_sp"})),
        twice(first_of(recording, {"flop_count_dp"})),
        read(first_of(recording, {"dram_read_bytes", "dram__bytes_read.sum"})),
        written(first_of(recording, {"dram_write_bytes", "dram__bytes_write.sum"})) {
    if (single) work = single->name;
    if (twice) work += (work.empty() ? "" : " + ") + twice->name;
    if (!work.empty()) return;
    unit = operations_per_unit(tradeoff.speed_name);
    if (unit > 0) work = tradeoff.speed_name;
  }
  double operations(const TradeoffPoint& p) const {
    if (unit > 0) return p.speed * unit * p.time;
    if (!single && !twice) return kNone;
    return (single ? single->value[p.row] : 0) + (twice ? twice->value[p.row] : 0);
  }
  double bytes(const TradeoffPoint& p) const {
    return read && written ? read->value[p.row] + written->value[p.row] : kNone;
  }
};

/// Raises the peaks to the highest rates of a recording; rates that it lacks are not changed.
void raise_peaks(Roofline& roofline, const Recording& recording) {
  const Tradeoff tradeoff = analyse_tradeoff(recording);
  const Counted counted(recording, tradeoff);
  const auto raise = [](double& peak, double value) {
    if (std::isfinite(value)) peak = std::max(peak, value);
  };
  for (const TradeoffPoint& p : tradeoff.points) {
    const double operations = counted.operations(p), bytes = counted.bytes(p);
    raise(roofline.peak_rate, operations / p.time);
    raise(roofline.peak_bandwidth, bytes / p.time);
    raise(roofline.peak_per_joule, operations / p.energy);
    raise(roofline.peak_bytes_per_joule, bytes / p.energy);
  }
}

std::string as_text(double rate, const char* unit) {
  static constexpr std::array<std::pair<double, const char*>, 4> scales{
      {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [factor, prefix] : scales)
    if (rate >= factor) return fmt::format("{:.3g} {}{}", rate / factor, prefix, unit);
  return fmt::format("{:.3g} {}", rate, unit);
}

std::string of_fastest(const Roofline& roofline, std::size_t fastest) {
  const auto found = std::ranges::find_if(roofline.points, [&](const RooflinePoint& p) { return p.point == fastest; });
  if (found == roofline.points.end()) return {};
  const double ridge = roofline.peak_rate / roofline.peak_bandwidth;
  const double of_rate = found->rate / roofline.peak_rate;
  const double of_bandwidth = found->rate / found->intensity / roofline.peak_bandwidth;
  const bool memory = found->intensity < ridge;
  std::string text = fmt::format(
      "The fastest does {:.3g} operations per byte of device memory; the two roofs meet at {:.3g}, so {} bounds it: it "
      "reaches {:.0f} % of {} and {:.0f} % of {} ({}).",
      found->intensity, ridge, memory ? "memory" : "arithmetic", 100 * of_rate, as_text(roofline.peak_rate, "FLOP/s"),
      100 * of_bandwidth, as_text(roofline.peak_bandwidth, "B/s"), roofline.peaks);
  if (std::max(of_rate, of_bandwidth) < 0.6)
    text += " It is near neither roof: latency, shared memory or the issue of instructions holds it back.";
  return text;
}

double value_at(const Recording& recording, const Tradeoff& tradeoff, const Influence& influence, std::size_t point) {
  const std::size_t row = tradeoff.points[point].row;
  if (const RecordedColumn* column = influence.is_parameter ? nullptr : recording.column(influence.name))
    return column->value[row];
  for (std::size_t k = 0; k < recording.parameters.size(); ++k)
    if (recording.parameters[k].name == influence.name)
      return recording.parameters[k].values[recording.position(row)[k]].as_real();
  return kNone;
}

/// Names of the strongest significant correlations of a kind, strongest first.
std::vector<std::string> strongest(const std::vector<Influence>& influences, Association Influence::*which,
                                   std::size_t most) {
  std::vector<const Influence*> list;
  for (const Influence& one : influences) {
    const QuantityInfo* info = one.is_parameter ? nullptr : quantity_info(one.name);
    const bool consequence = info && info->needs_sensor();  // power and heat are consequences, not causes
    if ((one.*which).p < 0.05 && !consequence) list.push_back(&one);
  }
  std::ranges::stable_sort(
      list, [&](const auto* a, const auto* b) { return std::abs((a->*which).r) > std::abs((b->*which).r); });
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < list.size() && i < most; ++i)
    texts.push_back(fmt::format("{} ({:+.2f})", list[i]->name, (list[i]->*which).r));
  return texts;
}

std::string against_fastest(const Recording& recording, const Tradeoff& tradeoff,
                            const std::vector<Influence>& influences) {
  const Quadrants& q = *tradeoff.quadrants;
  if (q.fastest == q.most_efficient) return "The fastest is the most efficient.";
  std::string text =
      fmt::format("The most efficient needs {:.1f} % less energy than the fastest and {:.1f} % more time",
                  100 * q.energy_saved, 100 * q.time_added());
  std::vector<std::pair<double, std::string>> differences;
  for (const Influence& one : influences) {
    const double a = value_at(recording, tradeoff, one, q.fastest),
                 b = value_at(recording, tradeoff, one, q.most_efficient);
    const QuantityInfo* info = one.is_parameter ? nullptr : quantity_info(one.name);
    if (!std::isfinite(a) || !std::isfinite(b) || a == b || (info && info->needs_sensor())) continue;
    // differences weigh more if they correlate with efficiency
    const double relative = std::abs(b - a) / std::max(std::abs(a), std::abs(b));
    differences.emplace_back(relative * std::abs(one.efficiency.r),
                             fmt::format("{} {:.4g} instead of {:.4g}", one.name, b, a));
  }
  std::ranges::sort(differences, [](const auto& a, const auto& b) { return a.first > b.first; });
  if (differences.size() > 4) differences.resize(4);
  std::vector<std::string> texts;
  for (const auto& [weight, what] : differences) texts.push_back(what);
  return texts.empty() ? text + "." : fmt::format("{}: it has {}.", text, fmt::join(texts, ", "));
}

}  // namespace

double Roofline::roof(double intensity) const { return std::min(peak_rate, intensity * peak_bandwidth); }
/// Energies of operations and bytes add up, which would give the arch 1 / (1 / per_joule + 1 / (intensity *
/// bytes_per_joule)). The peaks, however, were measured with the GPU's whole power, so that the roof is the lower of
/// the two.
double Roofline::energy_roof(double intensity) const {
  return std::min(peak_per_joule, intensity * peak_bytes_per_joule);
}

std::optional<Roofline> roofline_of(const Recording& recording, const Tradeoff& tradeoff,
                                    std::span<const Recording> peaks) {
  const Counted counted(recording, tradeoff);
  Roofline roofline;
  for (std::size_t i = 0; i < tradeoff.points.size(); ++i) {
    const TradeoffPoint& p = tradeoff.points[i];
    const double operations = counted.operations(p), bytes = counted.bytes(p);
    if (!(operations > 0) || !(bytes > 0)) continue;
    roofline.points.push_back({i, operations / bytes, operations / p.time, operations / p.energy});
  }
  if (roofline.points.empty()) return std::nullopt;
  roofline.work = counted.work;
  raise_peaks(roofline, recording);
  for (const Recording& other : peaks) raise_peaks(roofline, other);
  roofline.peaks = peaks.empty() ? "the highest of these configurations; --peaks names recordings that reach more"
                                 : "the highest measured, in these and the recordings given for it";
  return roofline;
}

std::vector<std::string> explain(const Recording& recording, const Tradeoff& tradeoff,
                                 const std::vector<Influence>& influences, const std::optional<Roofline>& roofline) {
  std::vector<std::string> text;
  std::size_t fastest = 0;
  for (std::size_t i = 1; i < tradeoff.points.size(); ++i)
    if (tradeoff.points[i].speed > tradeoff.points[fastest].speed) fastest = i;
  if (roofline)
    if (std::string texts = of_fastest(*roofline, fastest); !texts.empty()) text.push_back(std::move(texts));
  if (const auto texts = strongest(influences, &Influence::speed, 4); !texts.empty())
    text.push_back(fmt::format("With speed goes most: {}.", fmt::join(texts, ", ")));
  if (!tradeoff.quadrants) return text;
  if (const auto texts = strongest(influences, &Influence::efficiency, 4); !texts.empty())
    text.push_back(fmt::format("With efficiency: {}.", fmt::join(texts, ", ")));
  std::vector<std::string> moved;
  for (const Influence& one : influences)
    if (one.moves) moved.push_back(fmt::format("{} ({:+.2f} to {:+.2f})", one.name, one.speed.r, one.efficiency.r));
  if (!moved.empty()) text.push_back(fmt::format("Between the two move: {}.", fmt::join(moved, ", ")));
  text.push_back(against_fastest(recording, tradeoff, influences));
  return text;
}

}  // namespace ergotune
