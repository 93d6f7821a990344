#include "analysis/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <unordered_map>

#include "ergotune/error.hpp"
#include "ergotune/random.hpp"
#include "search/ranking.hpp"

namespace ergotune {
namespace {

constexpr std::size_t kMostPoints = 5000;

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> result(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) result[order[i]] = 0.5 * static_cast<double>(begin + end - 1) + 1;
    begin = end;
  }
  return result;
}

/// The usable rows of one session, best first.
struct Judged {
  std::vector<std::size_t> order;  ///< rows
  std::vector<double> values;      ///< by rank
  std::vector<double> half_widths;
  std::vector<std::string> marks;
  std::vector<std::string> keys;  ///< by rank
  std::unordered_map<std::string, std::size_t> place_of;
};

double error_of(const ComparedSession& session, std::size_t row) {
  const double error = session.recording->measurement(row).standard_error(session.objective->quantity());
  return std::isfinite(error) && error > 0 ? error : 0;
}

/// Names of the parameters that distinguish configurations.
std::vector<std::string> common_names(const std::vector<ComparedSession>& sessions) {
  std::set<std::string> varying;
  std::vector<std::string> names;
  for (const ComparedSession& session : sessions)
    for (const Parameter& parameter : session.recording->parameters)
      if (parameter.values.size() > 1) varying.insert(parameter.name);
  for (const std::string& name : varying) {
    const bool everywhere = std::ranges::all_of(sessions, [&](const ComparedSession& session) {
      const auto& list = session.recording->parameters;
      return std::ranges::any_of(list, [&](const Parameter& p) { return p.name == name; });
    });
    if (everywhere) names.push_back(name);
  }
  if (names.empty()) throw UserError("these sessions have no parameter in common: there is nothing to compare them by");
  return names;
}

Judged judge(const ComparedSession& session, const std::vector<std::string>& names) {
  const Recording& recording = *session.recording;
  Objective& objective = *session.objective;
  if (objective.kind() == Objective::Kind::pareto)
    throw UserError("a front has no best to compare by: name one objective (--objective time)");
  std::vector<Measurement> measurements;
  for (std::size_t row = 0; row < recording.size(); ++row) measurements.push_back(recording.measurement(row));
  std::vector<const Measurement*> pointers;
  for (const Measurement& m : measurements) pointers.push_back(&m);
  std::vector<std::size_t> at;
  std::vector<Parameter> parameters;
  for (const std::string& name : names)
    for (std::size_t p = 0; p < recording.parameters.size(); ++p)
      if (recording.parameters[p].name == name) {
        at.push_back(p);
        parameters.push_back(recording.parameters[p]);
      }
  Judged judged;
  for (const Ranked& ranked :
       rank(objective, pointers, [&](std::size_t row) { return recording.is_confirmed(row, objective.spec()); })) {
    if (!ranked.value) continue;
    const Configuration configuration = recording.configuration(ranked.position);
    Configuration compared;
    for (const std::size_t p : at) compared.push_back(configuration[p]);
    std::string key = describe(parameters, compared);
    if (!judged.place_of.emplace(key, judged.order.size()).second)
      continue;  // the better one of two equal
                 // configurations
    judged.order.push_back(ranked.position);
    judged.values.push_back(*ranked.value);
    const Measurement& measurement = measurements[ranked.position];
    const double half_width = measurement.half_width(objective.quantity());
    judged.half_widths.push_back(std::isfinite(half_width) ? half_width : 0);
    const bool stopped = std::ranges::any_of(measurement.warnings,
                                             [](const std::string& text) { return text.starts_with("stopped early"); });
    judged.marks.push_back(std::string(measurement.status == Status::not_converged ? "~" : "") + (stopped ? "!" : ""));
    judged.keys.push_back(std::move(key));
  }
  return judged;
}

struct Loss {
  std::optional<double> loss;
  double error = 0;
};

/// The loss from using the best of `from` in `to`.
Loss loss(const Judged& from, const ComparedSession& session, const Judged& to) {
  if (from.keys.empty() || to.keys.empty()) return {};
  const auto found = to.place_of.find(from.keys.front());
  if (found == to.place_of.end()) return {};
  const double best = to.values.front(), value = to.values[found->second];
  if (!(best > 0) || !(value > 0)) return {};
  const bool larger = session.objective->direction() == Direction::maximise;
  const double ratio = larger ? best / value : value / best;
  if (found->second == 0) return {0.0, 0.0};
  const double relative =
      std::hypot(error_of(session, to.order.front()) / best, error_of(session, to.order[found->second]) / value);
  return {ratio - 1, ratio * relative};
}

Comparison::Pair compare(const std::vector<ComparedSession>& sessions, const std::vector<Judged>& judged, std::size_t a,
                         std::size_t b) {
  Comparison::Pair pair;
  pair.a = a;
  pair.b = b;
  std::vector<double> x, y;
  for (std::size_t place = 0; place < judged[a].keys.size(); ++place) {
    const auto found = judged[b].place_of.find(judged[a].keys[place]);
    if (found == judged[b].place_of.end()) continue;
    x.push_back(judged[a].values[place]);
    y.push_back(judged[b].values[found->second]);
  }
  pair.common = x.size();
  pair.rank_correlation = rank_correlation(x, y);
  const Loss there = loss(judged[a], sessions[b], judged[b]), back = loss(judged[b], sessions[a], judged[a]);
  pair.loss_of_a_in_b = there.loss;
  pair.loss_error_a_in_b = there.error;
  pair.loss_of_b_in_a = back.loss;
  pair.loss_error_b_in_a = back.error;
  return pair;
}

void list_best(Comparison& comparison, const std::vector<Judged>& judged, std::size_t top) {
  std::set<std::string> listed;
  for (const Judged& session : judged) {
    for (std::size_t place = 0; place < std::min(top, session.keys.size()); ++place) {
      const std::string& key = session.keys[place];
      if (!listed.insert(key).second) continue;
      Comparison::Row row{key, {}, {}, {}, {}};
      for (const Judged& other : judged) {
        const auto found = other.place_of.find(key);
        const bool there = found != other.place_of.end();
        row.values.push_back(there ? std::optional(other.values[found->second]) : std::nullopt);
        row.places.push_back(there ? std::optional(found->second + 1) : std::nullopt);
        row.half_widths.push_back(there ? other.half_widths[found->second] : 0);
        row.marks.push_back(there ? other.marks[found->second] : "");
      }
      comparison.rows.push_back(std::move(row));
    }
  }
}

void sample_points(Comparison& comparison, const Judged& a, const Judged& b) {
  for (std::size_t place = 0; place < a.keys.size(); ++place)
    if (const auto found = b.place_of.find(a.keys[place]); found != b.place_of.end())
      comparison.points.emplace_back(a.values[place], b.values[found->second]);
  if (comparison.points.size() <= kMostPoints) return;
  Random random(1);
  random.shuffle(std::span(comparison.points));
  comparison.points.resize(kMostPoints);
}

}  // namespace

std::optional<double> rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 3) return std::nullopt;
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = 0.5 * (static_cast<double>(a.size()) + 1);
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  if (!(xx > 0) || !(yy > 0)) return std::nullopt;
  return xy / std::sqrt(xx * yy);
}

Comparison compare_sessions(const std::vector<ComparedSession>& sessions, std::size_t top) {
  Comparison comparison;
  const std::vector<std::string> names = common_names(sessions);
  std::vector<Judged> judged;
  for (const ComparedSession& session : sessions) {
    judged.push_back(judge(session, names));
    Comparison::Side side;
    side.usable = judged.back().order.size();
    if (side.usable > 0) {
      side.best = judged.back().order.front();
      side.value = judged.back().values.front();
      side.standard_error = error_of(session, *side.best);
      side.half_width = judged.back().half_widths.front();
    }
    comparison.sides.push_back(side);
  }
  for (std::size_t a = 0; a < sessions.size(); ++a)
    for (std::size_t b = a + 1; b < sessions.size(); ++b) comparison.pairs.push_back(compare(sessions, judged, a, b));
  list_best(comparison, judged, top);
  if (sessions.size() > 1) sample_points(comparison, judged[0], judged[1]);
  return comparison;
}

}  // namespace ergotune
