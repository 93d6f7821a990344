#include "verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/statistics.hpp"

namespace ergotune::bench {
namespace {

/// The part of a trace that a measurement of `budget` seconds would have had.
EnergyTrace cut(const EnergyTrace& trace, double end) {
  EnergyTrace part = trace;
  std::erase_if(part.stream.marks, [&](const LaunchMark& m) { return m.host_time > end; });
  for (auto& sensor : part.sensors) std::erase_if(sensor.readings, [&](const Reading& r) { return r.time > end; });
  std::erase_if(part.gpu, [&](const auto& b) { return b.first > end; });
  return part;
}

struct Measured {
  double energy = 0, half_width = 0, seconds = 0, time = 0;
  bool valid = false;
};

/// As EnergyMeter decides, on a recorded trace.
Measured measure(const EnergyTrace& whole, const VerdictOptions& options) {
  Measured out;
  if (whole.stream.marks.empty()) return out;
  const double start = whole.stream.queued_at;
  const double last = std::min(start + options.budget, whole.stream.marks.back().host_time);
  double settled = options.settle_again ? 0 : whole.settled_at;
  for (double now = start + options.energy.settle_at_least; settled == 0 && now < last; now += 0.02) {
    const auto from = settled_from(cut(whole, now), options.energy, now);
    if (from)
      settled = *from;
    else if (now - start >= options.energy.settle_at_most * options.budget)
      settled = now;
  }
  if (settled == 0) settled = start + options.energy.settle_at_most * options.budget;
  int good = 0;
  EnergyResult result;
  double now = settled + options.energy.window_at_least;
  while (true) {
    now = std::min(now, last);
    EnergyTrace part = cut(whole, now);
    part.settled_at = settled;
    result = estimate_energy(part, options.energy);
    good = precise_enough(result, options.energy) ? good + 1 : 0;
    if (good >= 2 || now >= last) break;
    now += 0.05;
  }
  out.seconds = now - start;
  const auto energy = result.quantities.find("energy");
  if (energy == result.quantities.end()) return out;
  out.valid = true;
  out.energy = energy->second.value;
  out.half_width = result.half_width;
  out.time = result.quantities.at("time").value;
  return out;
}

/// A long steady state: everything after the first seconds, energy over launches.
Measured refer(const EnergyTrace& trace, const VerdictOptions& options) {
  Measured out;
  if (trace.stream.marks.empty()) return out;
  EnergyTrace part = trace;
  part.settled_at = trace.stream.queued_at + options.reference_skip;
  EnergyOptions energy = options.energy;
  energy.whole_budget = true;
  const EnergyResult result = estimate_energy(part, energy);
  const auto found = result.quantities.find("energy");
  if (found == result.quantities.end()) return out;
  out.valid = true;
  out.energy = found->second.value;
  out.half_width = result.half_width;
  out.time = result.quantities.at("time").value;
  out.seconds = trace.stream.marks.back().host_time - trace.stream.queued_at;
  return out;
}

struct Reference {
  double when, energy;
};
/// Linear in time between the references before and after; the nearest one outside them.
double truth_at(const std::vector<Reference>& references, double when) {
  for (std::size_t i = 1; i < references.size(); ++i) {
    const auto &a = references[i - 1], &b = references[i];
    if (when < a.when) return a.energy;
    if (when <= b.when) return a.energy + (b.energy - a.energy) * (when - a.when) / (b.when - a.when);
  }
  return references.back().energy;
}

double percentile(std::vector<double> values, double q) { return values.empty() ? NAN : quantile(values, q); }

}  // namespace

nlohmann::ordered_json judge(const std::vector<Run>& runs, const VerdictOptions& options) {
  std::map<std::string, std::vector<Reference>> references;
  std::vector<std::string> kernels;
  for (const auto& run : runs) {
    if (std::ranges::find(kernels, run.kernel) == kernels.end()) kernels.push_back(run.kernel);
    if (run.kind != RunKind::reference) continue;
    const Measured measured = refer(run.trace, options);
    if (measured.valid) references[run.kernel].push_back({run.started + measured.seconds / 2, measured.energy});
  }
  struct Tally {
    std::vector<double> errors, naive, seconds, energies, times, temperatures;
    int covered = 0, failed = 0;
  };
  std::map<std::string, Tally> tallies;
  nlohmann::ordered_json document, list = nlohmann::ordered_json::array();
  for (const auto& run : runs) {
    auto& tally = tallies[run.kernel];
    if (run.kind == RunKind::reference || !references.contains(run.kernel)) continue;
    const double truth = truth_at(references[run.kernel], run.started);
    nlohmann::ordered_json entry{
        {"run", run.id}, {"kernel", run.kernel}, {"kind", to_string(run.kind)}, {"reference_j", truth}};
    if (run.kind == RunKind::naive) {
      const double energy = run.naive_power * run.naive_time;
      tally.naive.push_back(energy / truth - 1);
      entry["energy_j"] = energy;
      entry["error"] = energy / truth - 1;
    } else {
      const Measured measured = measure(run.trace, options);
      if (!measured.valid) {
        ++tally.failed;
        continue;
      }
      tally.errors.push_back(measured.energy / truth - 1);
      tally.seconds.push_back(measured.seconds);
      tally.energies.push_back(measured.energy);
      tally.times.push_back(measured.time);
      tally.covered += std::abs(measured.energy - truth) <= measured.half_width;
      entry["energy_j"] = measured.energy;
      entry["half_width_j"] = measured.half_width;
      entry["time_s"] = measured.time;
      entry["seconds"] = measured.seconds;
      entry["error"] = measured.energy / truth - 1;
    }
    list.push_back(entry);
  }
  auto magnitudes = [](std::vector<double> values) {
    for (double& v : values) v = std::abs(v);
    return values;
  };
  fmt::print(stderr, "{:<11} {:>11} {:>11} {:>8} | {:>9} {:>9} {:>9} {:>9} {:>7} | {:>9} {:>9} {:>9}\n", "kernel",
             "reference J", "time s", "refs", "bias %", "median %", "p95 %", "covered %", "s each", "naive med",
             "naive p95", "naive max");
  Tally all;
  auto row = [&](const std::string& name, const Tally& t, double reference, std::size_t count) {
    const auto errors = magnitudes(t.errors), naive = magnitudes(t.naive);
    const double n = static_cast<double>(std::max<std::size_t>(1, t.errors.size()));
    fmt::print(stderr,
               "{:<11} {:>11.5g} {:>11.5g} {:>8} | {:>+9.2f} {:>9.2f} {:>9.2f} {:>9.0f} {:>7.2f} | {:>9.2f} {:>9.2f} "
               "{:>9.2f}\n",
               name, reference, t.times.empty() ? 0.0 : median(t.times), count, 100 * mean(t.errors),
               100 * percentile(errors, 0.5), 100 * percentile(errors, 0.95), 100 * t.covered / n, mean(t.seconds),
               100 * percentile(naive, 0.5), 100 * percentile(naive, 0.95), 100 * percentile(naive, 1.0));
    return nlohmann::ordered_json{{"kernel", name},
                                  {"reference_j", reference},
                                  {"references", count},
                                  {"measurements", t.errors.size()},
                                  {"failed", t.failed},
                                  {"bias", mean(t.errors)},
                                  {"median_error", percentile(errors, 0.5)},
                                  {"p95_error", percentile(errors, 0.95)},
                                  {"interval_covers", t.covered / n},
                                  {"seconds", mean(t.seconds)},
                                  {"naive_median_error", percentile(naive, 0.5)},
                                  {"naive_p95_error", percentile(naive, 0.95)},
                                  {"naive_max_error", percentile(naive, 1.0)}};
  };
  auto table = nlohmann::ordered_json::array();
  for (const auto& kernel : kernels) {
    const auto& tally = tallies[kernel];
    double reference = 0;
    for (const auto& r : references[kernel]) reference += r.energy / static_cast<double>(references[kernel].size());
    table.push_back(row(kernel, tally, reference, references[kernel].size()));
    for (auto [from, to] :
         {std::pair(&tally.errors, &all.errors), {&tally.naive, &all.naive}, {&tally.seconds, &all.seconds}})
      to->insert(to->end(), from->begin(), from->end());
    all.covered += tally.covered;
    all.failed += tally.failed;
  }
  document["all"] = row("all", all, 0, 0);
  document["kernels"] = table;
  document["runs"] = list;
  return document;
}

}  // namespace ergotune::bench
