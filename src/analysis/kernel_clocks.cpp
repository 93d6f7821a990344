#include "analysis/kernel_clocks.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "ergotune/error.hpp"

namespace ergotune {
namespace {

constexpr double kNormal95 = 1.96;
constexpr double kNever = std::numeric_limits<double>::infinity();

struct Cost {
  double seconds = 0, joules = kNever;
};

/// Of a stretch that begins at one clock and for which another is requested.
Cost cost(const KernelStretch& stretch, std::size_t from, std::size_t to, double latency) {
  const AtClock &before = stretch.at[from], &after = stretch.at[to];
  if (from == to) return {before.seconds, before.joules};
  if (before.seconds <= latency) return {};
  const double share = latency / before.seconds;  // of its work, done before the change
  return {latency + (1 - share) * after.seconds, share * before.joules + (1 - share) * after.joules};
}

/// A clock for each stretch, and what they cost in all.
struct Path : Cost {
  std::vector<std::size_t> clocks;
};

Path path_of(const std::vector<KernelStretch>& stretches, double latency, std::vector<std::size_t> clocks) {
  Path path{{0, 0}, std::move(clocks)};
  for (std::size_t i = 0, from = path.clocks.back(); i < stretches.size(); from = path.clocks[i++]) {
    const Cost one = cost(stretches[i], from, path.clocks[i], latency);
    path.seconds += one.seconds;
    path.joules += one.joules;
  }
  return path;
}

/// The least J + `watts` * s of stretches that begin at the clock `first` and end at it: dynamic programming.
std::vector<std::size_t> cheapest_from(const std::vector<KernelStretch>& stretches, double latency, std::size_t first,
                                       double watts) {
  const std::size_t clocks = stretches.front().at.size();
  std::vector<double> least(clocks, kNever);
  least[first] = 0;
  std::vector<std::vector<std::size_t>> before;
  for (const KernelStretch& stretch : stretches) {
    std::vector<double> next(clocks, kNever);
    std::vector<std::size_t>& from = before.emplace_back(clocks, first);
    for (std::size_t a = 0; a < clocks; ++a) {
      if (least[a] == kNever) continue;
      for (std::size_t b = 0; b < clocks; ++b) {
        const Cost one = cost(stretch, a, b, latency);
        if (const double sum = least[a] + one.joules + watts * one.seconds; sum < next[b]) next[b] = sum, from[b] = a;
      }
    }
    least = std::move(next);
  }
  std::vector<std::size_t> path(stretches.size());
  for (std::size_t i = stretches.size(), clock = first; i-- > 0; clock = before[i][clock]) path[i] = clock;
  return path;
}

Path cheapest(const std::vector<KernelStretch>& stretches, double latency, double watts) {
  Path best;
  for (std::size_t first = 0; first < stretches.front().at.size(); ++first) {
    Path path = path_of(stretches, latency, cheapest_from(stretches, latency, first, watts));
    if (path.joules + watts * path.seconds < best.joules + watts * best.seconds) best = std::move(path);
  }
  return best;
}

}  // namespace

KernelClocks choose_kernel_clocks(const std::vector<KernelStretch>& stretches, double latency, double max_slowdown) {
  if (stretches.empty() || stretches.front().at.empty())
    throw UserError("there are no kernels or clocks to choose from");
  std::vector<Path> common;
  double fastest = kNever;
  for (std::size_t c = 0; c < stretches.front().at.size(); ++c) {
    common.push_back(path_of(stretches, latency, std::vector(stretches.size(), c)));
    fastest = std::min(fastest, common.back().seconds);
  }
  const double bound = (1 + max_slowdown) * fastest;
  Path one, path;
  const auto take = [&](Path& best, const Path& candidate) {
    if (candidate.seconds <= bound && candidate.joules < best.joules) best = candidate;
  };
  for (const Path& candidate : common) take(one, candidate);
  path = one;
  // What a second is worth, W: the least with which the bound is kept (Lagrange).
  take(path, cheapest(stretches, latency, 0));
  for (double low = 0.1, high = 1e7; high / low > 1.001;) {
    const double watts = std::sqrt(low * high);
    const Path candidate = cheapest(stretches, latency, watts);
    take(path, candidate);
    (candidate.seconds <= bound ? high : low) = watts;
  }
  KernelClocks out;
  const std::size_t same = one.clocks.front();
  out.common_mhz = stretches.front().at[same].clock_mhz;
  out.common_seconds = one.seconds, out.common_joules = one.joules;
  out.seconds = path.seconds, out.joules = path.joules;
  std::map<std::string, std::pair<double, double>> errors;  // a kernel's stretches share its errors
  for (std::size_t i = 0, from = path.clocks.back(); i < stretches.size(); from = path.clocks[i++]) {
    const std::size_t to = path.clocks[i];
    out.clocks_mhz.push_back(stretches[i].at[to].clock_mhz);
    out.changes += from != to;
    if (to == same) continue;
    errors[stretches[i].kernel].first += stretches[i].at[to].joules_error;
    errors[stretches[i].kernel].second += stretches[i].at[same].joules_error;
  }
  for (const auto& [kernel, error] : errors) out.saved_error = std::hypot(out.saved_error, error.first, error.second);
  out.saved = out.common_joules - out.joules;
  out.pays = out.changes > 0 && out.saved > kNormal95 * out.saved_error;
  return out;
}

}  // namespace ergotune
