#include "tune/ledger/drift.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/statistics.hpp"

namespace ergotune {
namespace {

constexpr double kSignificance = 0.01;
constexpr double kLeastVariance = 1e-12;
/// Readings were taken together if the gap between them is at most this share of their duration plus this many s.
constexpr double kTogether = 0.5, kTogetherSeconds = 0.1;

struct Run {
  double time = 0, mean = 0;
  std::vector<Drift::Reading> readings;
};

/// Groups readings that follow each other without a gap into runs.
std::vector<Run> runs_of(const std::vector<Drift::Reading>& readings) {
  std::vector<Run> runs;
  for (const Drift::Reading& reading : readings) {
    bool follows = false;
    if (!runs.empty()) {
      const Drift::Reading& before = runs.back().readings.back();
      const double took = (reading.seconds + before.seconds) / 2;
      follows = reading.time - before.time <= (1 + kTogether) * took + kTogetherSeconds && !before.searched;
    }
    if (!follows) runs.emplace_back();
    runs.back().readings.push_back(reading);
  }
  return runs;
}

double within(const Run& run) {
  const auto n = static_cast<double>(run.readings.size());
  double mean = 0, squares = 0;
  for (const Drift::Reading& reading : run.readings) mean += reading.logarithm / n;
  for (const Drift::Reading& reading : run.readings) squares += std::pow(reading.logarithm - mean, 2);
  return squares;
}

/// Splits a run within which the conditions changed: one that scatters far more than all others.
void split_at_changes(std::vector<Run>& runs) {
  constexpr double kChange = 0.001;
  while (true) {
    double others = 0, degrees = 0;
    for (const Run& run : runs) {
      others += within(run);
      degrees += static_cast<double>(run.readings.size()) - 1;
    }
    const auto widest =
        std::ranges::max_element(runs, [](const Run& a, const Run& b) { return within(a) < within(b); });
    const double own = within(*widest), own_degrees = static_cast<double>(widest->readings.size()) - 1;
    others -= own;
    degrees -= own_degrees;
    if (own_degrees < 1 || degrees < 2 ||
        f_tail(own / own_degrees / std::max(others / degrees, kLeastVariance), own_degrees, degrees) > kChange)
      return;
    std::vector<Run> parts;
    for (const Drift::Reading& reading : widest->readings) parts.push_back({0, 0, {reading}});
    runs.insert(runs.erase(widest), parts.begin(), parts.end());
  }
}

std::vector<Run> means_of(std::vector<Run> runs) {
  for (Run& run : runs) {
    const auto n = static_cast<double>(run.readings.size());
    for (const Drift::Reading& reading : run.readings) {
      run.time += reading.time / n;
      run.mean += reading.logarithm / n;
    }
  }
  return runs;
}

}  // namespace

void Drift::add(const Reading& reading) {
  readings_.push_back(reading);
  fitted_ = false;
}

bool Drift::knows(ConfigurationIndex configuration) const {
  return std::ranges::any_of(readings_, [&](const Reading& reading) { return reading.configuration == configuration; });
}

std::vector<Drift::Reading> Drift::of_most_often() const {
  std::map<ConfigurationIndex, std::vector<Reading>> by_configuration;
  for (const Reading& reading : readings_) by_configuration[reading.configuration].push_back(reading);
  std::vector<Reading> most;
  for (auto& [configuration, list] : by_configuration)
    if (list.size() > most.size()) most = std::move(list);
  std::ranges::stable_sort(most, [](const Reading& a, const Reading& b) { return a.time < b.time; });
  return most;
}

/// One-way analysis of variance: runs differ by drift, readings within a run by noise. The effect of each run is shrunk
/// towards the mean by the share of its difference that noise explains.
void Drift::fit_runs(const std::vector<Reading>& readings) const {
  std::vector<Run> runs = runs_of(readings);
  if (runs.size() > 1) split_at_changes(runs);
  runs = means_of(std::move(runs));
  const auto n = static_cast<double>(readings.size()), k = static_cast<double>(runs.size());
  runs_ = runs.size();
  if (k < 2 || n - k < 1) return;
  double centre = 0, scatter = 0, between = 0, own = 0, squares = 0, middle = 0;
  for (const Reading& reading : readings) {
    centre += reading.logarithm / n;
    own += reading.relative_error * reading.relative_error / n;
  }
  for (const Run& run : runs) {
    const auto size = static_cast<double>(run.readings.size());
    scatter += within(run);
    between += size * std::pow(run.mean - centre, 2) / (k - 1);
    squares += size * size;
    middle += run.mean / k;
  }
  const double noise = std::max({scatter / (n - k), own, kLeastVariance});
  noise_ = std::sqrt(noise);
  if (f_tail(between / noise, k - 1, n - k) > kSignificance) return;
  const double drift = (between - noise) / ((n - squares / n) / (k - 1));
  for (const Run& run : runs) {
    const double error = noise / static_cast<double>(run.readings.size());
    knots_.push_back({run.time, drift / (drift + error) * (run.mean - middle), drift * error / (drift + error)});
  }
}

/// Adds knots at the search's measurements of configurations that were measured again later: these show the drift at
/// the time of the search.
void Drift::refine() const {
  const std::vector<Knot> runs = knots_;
  std::map<ConfigurationIndex, const Reading*> searched;
  for (const Reading& reading : readings_)
    if (reading.searched) searched[reading.configuration] = &reading;
  std::vector<Knot> found;
  const ConfigurationIndex default_one = of_most_often().front().configuration;
  for (const Reading& again : readings_) {
    const auto before = searched.find(again.configuration);
    if (again.searched || again.configuration == default_one || before == searched.end()) continue;
    const Effect now = interpolated(again.time), expected = interpolated(before->second->time);
    const double here = before->second->logarithm - again.logarithm + now.logarithm;
    const double error = 2 * noise_ * noise_ + now.deviation * now.deviation;
    const double prior = std::max(expected.deviation * expected.deviation, kLeastVariance);
    const double weight = prior / (prior + error);
    found.push_back(
        {before->second->time, weight * here + (1 - weight) * expected.logarithm, prior * error / (prior + error)});
  }
  knots_.insert(knots_.end(), found.begin(), found.end());
  std::ranges::stable_sort(knots_, [](const Knot& a, const Knot& b) { return a.time < b.time; });
}

void Drift::fit() const {
  if (fitted_) return;
  fitted_ = true;
  knots_.clear();
  noise_ = 0;
  fit_runs(of_most_often());
  if (!knots_.empty()) refine();
}

Drift::Effect Drift::interpolated(double time) const {
  const auto after =
      std::lower_bound(knots_.begin(), knots_.end(), time, [](const Knot& knot, double t) { return knot.time < t; });
  if (after == knots_.begin()) return {after->logarithm, std::sqrt(after->variance)};
  const Knot& before = *std::prev(after);
  if (after == knots_.end()) return {before.logarithm, std::sqrt(before.variance)};
  const double share = (time - before.time) / std::max(after->time - before.time, 1e-9);
  const double step = after->logarithm - before.logarithm;
  const double variance = (1 - share) * before.variance + share * after->variance + share * (1 - share) * step * step;
  return {before.logarithm + share * step, std::sqrt(variance)};
}

std::optional<Drift::Effect> Drift::at(double time) const {
  fit();
  if (knots_.empty()) return std::nullopt;
  return interpolated(time);
}

double Drift::noise() const {
  fit();
  return noise_;
}

std::optional<Drift::Range> Drift::range() const {
  fit();
  if (knots_.empty()) return std::nullopt;
  const auto [least, most] = std::minmax_element(
      knots_.begin(), knots_.end(), [](const Knot& a, const Knot& b) { return a.logarithm < b.logarithm; });
  return Range{least->logarithm, most->logarithm, runs_};
}

}  // namespace ergotune
