// Fits for calibration: update period, window, lag, shape.
#include <algorithm>
#include <cmath>

#include "base/statistics.hpp"
#include "measure/calibration/calibration.hpp"

namespace ergotune {

Calibrated find_update_period(const std::vector<Reading>& readings) {
  std::vector<double> edges, width;
  for (std::size_t i = 1; i < readings.size(); ++i) {
    if (readings[i].value == readings[i - 1].value) continue;
    edges.push_back(0.5 * (readings[i].time + readings[i - 1].time));
    width.push_back(readings[i].time - readings[i - 1].time);
  }
  if (edges.size() < 4) return {};
  // For sensors with their own time stamps, and those faster than the polls, each reading is a change.
  if (edges.size() > 0.9 * static_cast<double>(readings.size() - 1)) {
    std::vector<double> gaps;
    for (std::size_t i = 1; i < readings.size(); ++i) gaps.push_back(readings[i].time - readings[i - 1].time);
    return {median(gaps), quantile(gaps, 0.1), quantile(gaps, 0.9)};
  }
  std::vector<double> gaps;
  for (std::size_t i = 1; i < edges.size(); ++i) gaps.push_back(edges[i] - edges[i - 1]);
  // Missed or equal updates cause gaps of several periods; the lower half of the gaps are single periods.
  std::ranges::sort(gaps);
  double period = median(std::span(gaps).first(std::max<std::size_t>(1, (gaps.size() + 1) / 2)));
  LineFit fit;
  std::vector<double> number(edges.size(), 0.0);
  for (int pass = 0; pass < 3; ++pass) {
    // Number the edges by counting periods from neighbour to neighbour, then a line through them.
    for (std::size_t i = 1; i < edges.size(); ++i)
      number[i] = number[i - 1] + std::max(1.0, std::round((edges[i] - edges[i - 1]) / period));
    fit = fit_line(number, edges);
    period = fit.slope;
  }
  const double polls = median(width) / std::sqrt(12.0) / number.back();
  const double error = 2 * std::hypot(fit.slope_error, polls);
  return {period, period - error, period + error};
}

namespace {

/// Time during which the load was on, up to a time t.
class BusyTime {
 public:
  explicit BusyTime(const std::vector<TimeSpan>& spans) : spans_(spans) {
    double sum = 0;
    for (const auto& span : spans_) {
      before_.push_back(sum);
      sum += span.length();
    }
  }
  double until(double t) const {
    const auto after = std::upper_bound(spans_.begin(), spans_.end(), t,
                                        [](double value, const TimeSpan& span) { return value < span.from; });
    if (after == spans_.begin()) return 0;
    const auto i = static_cast<std::size_t>(after - spans_.begin()) - 1;
    return before_[i] + std::min(t - spans_[i].from, spans_[i].length());
  }
  /// First-order response at t to the load, 0 to 1.
  double response(double t, double constant) const {
    double sum = 0;
    for (auto i = spans_.size(); i-- > 0;) {
      if (spans_[i].from >= t) continue;
      if (t - spans_[i].to > 12 * constant) break;
      sum += std::exp(-std::max(0.0, t - spans_[i].to) / constant) - std::exp(-(t - spans_[i].from) / constant);
    }
    return sum;
  }

 private:
  const std::vector<TimeSpan>& spans_;
  std::vector<double> before_;
};

struct Prepared {
  const CalibrationTrace* trace;
  BusyTime busy;
};

/// Returns the residual sum of squares over all traces for one shape. Each trace has its own idle power, amplitude and
/// drift: a GPU draws more idle power just after a load, and more while it warms up.
double residual(const std::vector<Prepared>& traces, bool exponential, double window, double lag) {
  double total = 0;
  for (const auto& [trace, busy] : traces) {
    if (trace->readings.size() < 6) continue;
    const double origin = trace->readings.front().time, level = trace->readings.front().value;
    double n = 0, st = 0, sx = 0, sy = 0, stt = 0, stx = 0, sty = 0, sxx = 0, sxy = 0, syy = 0;
    for (const auto& reading : trace->readings) {
      const double when = reading.time - lag, t = reading.time - origin, y = reading.value - level;
      const double x =
          exponential ? busy.response(when, window) : (busy.until(when) - busy.until(when - window)) / window;
      n += 1;
      st += t, sx += x, sy += y;
      stt += t * t, stx += t * x, sty += t * y, sxx += x * x, sxy += x * y, syy += y * y;
    }
    const double vtt = stt - st * st / n, vtx = stx - st * sx / n, vty = sty - st * sy / n;
    double vxx = sxx - sx * sx / n, vxy = sxy - sx * sy / n, vyy = syy - sy * sy / n;
    if (vtt > 0) {  // remainder without the drift
      vxx -= vtx * vtx / vtt;
      vxy -= vtx * vty / vtt;
      vyy -= vty * vty / vtt;
    }
    // A negative amplitude is rejected.
    total += vxx > 1e-9 && vxy > 0 ? std::max(0.0, vyy - vxy * vxy / vxx) : std::max(0.0, vyy);
  }
  return total;
}

struct Point {
  double window = 0, lag = 0, rss = INFINITY;
};

Point best_point(const std::vector<Prepared>& traces, bool exponential, double period) {
  const double longest_lag = std::max(0.15, 1.5 * period);
  const double shortest = std::min(0.002, 0.1 * period);
  std::vector<Point> grid;
  for (double window = shortest; window < 3.0; window *= 1.25) {
    const double step = std::clamp(window / 3, longest_lag / 50, longest_lag / 12);
    for (double lag = 0; lag <= longest_lag; lag += step)
      grid.push_back({window, lag, residual(traces, exponential, window, lag)});
  }
  // Aliased waves cause several minima: descend from the best few points. A longer window with a shorter lag fits
  // almost equally well, so the steps go along the mean delay and across it.
  std::ranges::sort(grid, [](const Point& a, const Point& b) { return a.rss < b.rss; });
  const double share = exponential ? 1.0 : 0.5;
  Point best;
  for (std::size_t start = 0; start < std::min<std::size_t>(6, grid.size()); ++start) {
    Point at = grid[start];
    double step_window = 0.2, step_delay = 0.1 * at.window + 0.002;
    for (int i = 0; i < 80 && step_window > 1e-4; ++i) {
      Point next = at;
      const double delay = at.lag + share * at.window;
      for (const auto& [dw, dd] : {std::pair{1.0, 0.0}, {-1.0, 0.0}, {0.0, 1.0}, {0.0, -1.0}}) {
        const double window = at.window * std::exp(dw * step_window);
        for (const double lag : {std::max(0.0, delay + dd * step_delay - share * window), at.lag + dd * step_delay}) {
          if (lag < 0) continue;
          const double rss = residual(traces, exponential, window, lag);
          if (rss < next.rss) next = {window, lag, rss};
        }
      }
      if (next.rss < at.rss)
        at = next;
      else
        step_window /= 2, step_delay /= 2;
    }
    if (at.rss < best.rss) best = at;
  }
  return best;
}

/// Returns where the profile likelihood of one parameter leaves the 95 % region (likelihood ratio, with the other
/// parameter refitted).
Calibrated profile(const std::vector<Prepared>& traces, bool exponential, const Point& best, bool of_window,
                   double readings) {
  const double limit = best.rss * (1 + 3.84 / std::max(4.0, readings - 4));
  auto refit = [&](double window, double lag) {
    double low = INFINITY;
    for (int i = -8; i <= 8; ++i) {
      const double other = of_window ? std::max(0.0, best.lag + i * 0.15 * std::max(0.002, 0.25 * best.window))
                                     : best.window * std::exp(i * 0.04);
      low = std::min(
          low, of_window ? residual(traces, exponential, window, other) : residual(traces, exponential, other, lag));
    }
    return low;
  };
  Calibrated out;
  out.value = of_window ? best.window : best.lag;
  const double scale = of_window ? best.window : std::max(0.25 * best.window, 0.002);
  for (const double sign : {-1.0, 1.0}) {
    double inside = 0, outside = 0.01;
    auto at = [&](double share) { return std::max(0.0, out.value + sign * share * scale); };
    auto within = [&](double share) {
      const double x = at(share);
      return (of_window ? (x > 0 ? refit(x, best.lag) : INFINITY) : refit(best.window, x)) <= limit;
    };
    while (outside < 4 && within(outside)) inside = outside, outside *= 2;
    for (int i = 0; i < 8; ++i) {
      const double middle = 0.5 * (inside + outside);
      (within(middle) ? inside : outside) = middle;
    }
    (sign < 0 ? out.low : out.high) = at(inside);
  }
  return out;
}

}  // namespace

WindowFit fit_window(const std::vector<CalibrationTrace>& traces, double update_period) {
  std::vector<Prepared> prepared;
  double readings = 0, variance_sum = 0;
  for (const auto& trace : traces) {
    prepared.push_back({&trace, BusyTime(trace.busy)});
    readings += static_cast<double>(trace.readings.size());
    std::vector<double> values;
    for (const auto& r : trace.readings) values.push_back(r.value);
    variance_sum += variance(values) * std::max(0.0, static_cast<double>(values.size()) - 1);
  }
  const Point boxcar = best_point(prepared, false, update_period), lagged = best_point(prepared, true, update_period);
  WindowFit fit;
  fit.exponential = lagged.rss < boxcar.rss;
  const Point& best = fit.exponential ? lagged : boxcar;
  const Point& other = fit.exponential ? boxcar : lagged;
  fit.explained = variance_sum > 0 ? 1 - best.rss / variance_sum : 0;
  fit.explained_other = variance_sum > 0 ? 1 - other.rss / variance_sum : 0;
  // Readings with overlapping windows are not independent.
  const double independent = readings * std::min(1.0, update_period / std::max(best.window, 1e-9));
  fit.window = profile(prepared, fit.exponential, best, true, independent);
  fit.lag = profile(prepared, fit.exponential, best, false, independent);
  return fit;
}

}  // namespace ergotune
