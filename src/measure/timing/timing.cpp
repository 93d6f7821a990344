#include "measure/timing/timing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/statistics.hpp"

namespace ergotune {

TimeEstimate estimate_time(std::span<const double> samples) {
  TimeEstimate result;
  const std::size_t n = samples.size();
  result.count = n;
  result.relative_half_width = std::numeric_limits<double>::infinity();
  if (n == 0) return result;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::ranges::sort(sorted);
  const std::size_t cut = n / 5;
  const std::size_t kept = n - 2 * cut;
  result.value = mean(std::span(sorted).subspan(cut, kept));
  if (n < 2) return result;

  std::vector<double> winsorised(samples.begin(), samples.end());
  const double low = sorted[cut], high = sorted[n - 1 - cut];
  for (double& x : winsorised) x = std::clamp(x, low, high);
  const double spread = variance(winsorised);
  const double share = static_cast<double>(kept) / static_cast<double>(n);
  result.standard_error = std::sqrt(spread / static_cast<double>(n)) / share;
  if (n >= 10) {
    const double r = correlation(winsorised, std::span(winsorised).subspan(1));
    // 1.65 / sqrt(n): exceeded by chance in one case of twenty.
    if (r > 1.65 / std::sqrt(static_cast<double>(n))) {
      const double bounded = std::min(r, 0.9);
      result.standard_error *= std::sqrt((1 + bounded) / (1 - bounded));
    }
  }
  result.degrees = static_cast<double>(kept - 1);
  if (result.value > 0)
    result.relative_half_width = half_width_95(result.standard_error, result.degrees) / result.value;
  return result;
}

bool has_outlier(std::span<const double> samples) {
  if (samples.size() < 3 || samples.size() > 4) return false;
  const double centre = median(samples);
  std::vector<double> distances;
  for (const double sample : samples) distances.push_back(std::abs(sample - centre));
  std::ranges::sort(distances);
  return distances.back() > std::max(0.1 * std::abs(centre), 5 * distances[distances.size() - 2]);
}

namespace {

std::size_t launches_in(double seconds, double each) {
  return static_cast<std::size_t>(std::clamp(std::ceil(seconds / std::max(each, 1e-9)), 1.0, 20000.0));
}

}  // namespace

Marker& MarkerPool::operator[](std::size_t i) {
  while (markers_.size() <= i) markers_.push_back(device_.make_marker());
  return *markers_[i];
}

double Timer::once(Workload& workload) {
  device_.record(markers_[0]);
  workload.launch(1);
  device_.record(markers_[1]);
  device_.synchronise();
  return device_.seconds_between(markers_[0], markers_[1]);
}

bool Timer::sweep() { return sweeps_ && !device_.info().is_cpu && sweeps_->sweep(flush_buffer()); }

void Timer::flush() {
  if (!sweep()) overwrite();
}

void Timer::overwrite() { device_.fill(flush_buffer(), ++flush_byte_); }

Buffer& Timer::flush_buffer() {
  if (!flush_) {
    // Twice the cache, because a write-back cache may retain lines of a buffer of its own size.
    double bytes = 0x1p25;  // 32 MiB
    if (const auto size = device_.info().properties.find("device.l2_bytes"); size != device_.info().properties.end())
      bytes = std::max(bytes, 2 * size->second.as_real());
    flush_ = device_.allocate(static_cast<std::size_t>(bytes));
  }
  return *flush_;
}

std::function<void()> Timer::preparation(const InputReset& reset) {
  if (!options_.cold_cache) return reset.before_each ? reset.apply : nullptr;
  return [this, reset] {
    if (reset.before_each) reset.apply();
    overwrite();
  };
}

void Timer::prepared(Workload& workload, std::size_t samples, const std::function<void()>& prepare,
                     std::vector<double>& out) {
  for (std::size_t i = 0; i < samples; ++i) {
    prepare();
    device_.record(markers_[2 * i]);
    workload.launch(1);
    device_.record(markers_[2 * i + 1]);
  }
  device_.synchronise();
  for (std::size_t i = 0; i < samples; ++i) {
    out.push_back(device_.seconds_between(markers_[2 * i], markers_[2 * i + 1]));
  }
}

void Timer::unobserved(Workload& workload, std::size_t samples, std::size_t launches, std::vector<double>& out) {
  // The first marker must not pass before the host has queued the following work, which the first launch of a graph
  // ensures. Of single launches, the first is only one of many samples.
  if (untimed_first_sample_) workload.launch(launches);
  device_.record(markers_[0]);
  for (std::size_t i = 0; i < samples; ++i) {
    workload.launch(launches);
    device_.record(markers_[i + 1]);
  }
  device_.synchronise();
  for (std::size_t i = 0; i < samples; ++i) {
    out.push_back(device_.seconds_between(markers_[i], markers_[i + 1]) / static_cast<double>(launches));
  }
}

void Timer::observed(Workload& workload, std::size_t samples, std::size_t launches, const RepetitionHooks& hooks,
                     const std::function<void()>& prepare, std::vector<double>& out) {
  for (std::size_t i = 0; i < samples; ++i) {
    if (prepare) {
      prepare();
      device_.synchronise();
    }
    hooks.before_start();
    device_.record(markers_[0]);
    workload.launch(launches);
    device_.record(markers_[1]);
    hooks.after_start();
    device_.synchronise();
    hooks.after_finish();
    out.push_back(device_.seconds_between(markers_[0], markers_[1]) / static_cast<double>(launches));
  }
}

namespace {

/// s; for samples of this length the overhead is less than a thousandth.
constexpr double kLongSample = 4e-3;

}  // namespace

/// Returns the time that a sample takes beyond the time of its iterations within a graph, determined from graphs of two
/// lengths; NaN without graphs.
double Timer::overhead_within_graph(Workload& workload, double expected, std::size_t launches, bool watched) {
  const auto seconds = [&](std::size_t rounds, bool by_itself) {
    std::vector<double> samples;
    if (by_itself)
      observed(workload, 5, rounds, {[] {}, [] {}, [] {}}, {}, samples);
    else
      unobserved(workload, 5, rounds, samples);
    return static_cast<double>(rounds) * median(samples);
  };
  // Shorter graphs would have to wait for the host.
  const std::size_t rounds = std::max(launches, launches_in(options_.min_sample_seconds, expected));
  if (!workload.prepare(3 * rounds)) return NAN;
  const double longer = seconds(3 * rounds, false);
  if (!workload.prepare(rounds)) return NAN;
  const double pitch = (longer - seconds(rounds, false)) / static_cast<double>(2 * rounds);
  workload.prepare(launches > 1 ? launches : 0);
  return seconds(launches, watched) - pitch * static_cast<double>(launches);
}

const Timer::Overhead& Timer::overhead(Workload& workload, double expected, std::size_t launches, bool watched,
                                       const InputReset& reset) {
  Overhead& known = overheads_[watched][launches > 1];
  const double sample = expected * static_cast<double>(launches);
  // A long kernel cannot resolve microseconds; the overhead is determined again for a much shorter one.
  if (sample > kLongSample || known.sample <= 4 * sample || !workload.prepare(launches)) return known;
  known = {0, 0, sample};
  untimed_first_sample_ = true;
  constexpr int kPasses = 5;
  std::vector<double> found;
  for (int i = 0; i < kPasses; ++i) {
    if (reset.apply) reset.apply();
    found.push_back(overhead_within_graph(workload, expected, launches, watched));
  }
  const double value = median(found), error = std::sqrt(variance(found) / kPasses);
  // Larger values are implausible on any device, and are not used.
  if (value > 0 && value < 5e-5 && error < 2e-6) known = {value, error, sample};
  return known;
}

namespace {

/// s, standard uncertainty of what is subtracted from a sample within a graph: launches at its beginning follow each
/// other faster than later ones, so that the overhead is found 0.5 to 1.5 us too long. A sample is so long that this is
/// a quarter of the precision.
constexpr double kUnevenness = 1e-6;
/// s; a launch by itself that takes less may take three times as long as one within a graph.
constexpr double kShort = 2e-5;
/// Standard uncertainty of a GPU's time, relative to it, from what differs between processes but not between the
/// samples of one (clocks, temperature, addresses), as nine kernels showed (docs/numbers.md); evaluated as type B (GUM,
/// JCGM 100:2008, 4.3).
constexpr double kReproducibility = 0.002;
/// Where a launch on a GPU takes this much more than the best, three samples usually show that it is worse.
constexpr double kClearlyWorse = 1.25;
constexpr std::size_t kFewest = 3;

}  // namespace

TimingResult Timer::measure(Workload& workload, double expected, double give_up_above, const InputReset& reset,
                            const RepetitionHooks* hooks) {
  TimingResult result;
  untimed_first_sample_ = false;
  const std::function<void()> prepare = preparation(reset);
  if (!prepare) {
    // Within a graph, launches follow each other without gaps. Iterations that read their own results change their
    // inputs with each launch, so there are no more of them than necessary.
    std::size_t& launches = result.launches_per_sample;
    const double accurate = 4 * kUnevenness / std::max(options_.precision, 1e-4);
    const double length =
        reset.apply ? options_.min_sample_seconds : std::max(3 * options_.min_sample_seconds, accurate);
    launches = launches_in(length, expected);
    untimed_first_sample_ = launches > 1 && workload.prepare(launches);
    if (untimed_first_sample_ && expected < kShort) {
      expected = std::min(expected, within_graph(workload, launches, reset));
      launches = launches_in(length, expected);
      untimed_first_sample_ = workload.prepare(launches);
    }
    if (!untimed_first_sample_) launches = launches_in(options_.min_sample_seconds, expected);
  }
  const double sample_seconds = std::max(expected * static_cast<double>(result.launches_per_sample), 1e-9);
  const bool graph = untimed_first_sample_;
  const Overhead beyond = overhead(workload, expected, result.launches_per_sample, hooks != nullptr, reset);
  untimed_first_sample_ = graph;
  result.overhead = beyond.value;
  const double share = 1 / static_cast<double>(result.launches_per_sample);
  const auto most = static_cast<std::size_t>(std::max(options_.max_repeats, 2));
  auto least = static_cast<std::size_t>(std::max(options_.min_repeats, 2));
  // A slow kernel has little noise relative to its length, so that three samples suffice at first.
  if (sample_seconds * static_cast<double>(least) > options_.max_seconds) least = std::min(least, kFewest);
  const bool loses = !device_.info().is_cpu && expected > kClearlyWorse * give_up_above;
  std::size_t next = loses ? std::min(least, kFewest) : least;
  double spent = 0;
  while (true) {
    next = std::min(next, most - result.samples.size());
    const std::size_t before = result.samples.size();
    if (reset.apply && !reset.before_each) reset.apply();
    if (hooks) {
      observed(workload, next, result.launches_per_sample, *hooks, prepare, result.samples);
    } else if (prepare) {
      prepared(workload, next, prepare, result.samples);
    } else {
      unobserved(workload, next, result.launches_per_sample, result.samples);
    }
    for (std::size_t i = before; i < result.samples.size(); ++i) {
      spent += result.samples[i] * static_cast<double>(result.launches_per_sample);
      result.samples[i] -= beyond.value * share;
    }
    result.estimate = estimate_time(result.samples);
    const std::size_t count = result.samples.size();
    result.converged = count >= std::min(least, most) && result.estimate.relative_half_width <= options_.precision;
    const double half_width = result.estimate.relative_half_width * result.estimate.value;
    result.gave_up = !result.converged && result.estimate.value - half_width > give_up_above;
    if (result.converged || result.gave_up || count >= most || (count >= least && spent >= options_.max_seconds)) break;
    // Doubles the number of samples, but a batch does not go far beyond the limit.
    const double each = spent / static_cast<double>(count);
    const double room = (options_.max_seconds - spent) / std::max(each, 1e-9);
    next = count < least ? least - count : std::min<std::size_t>({static_cast<std::size_t>(room) + 1, count, 256});
  }
  if (!device_.info().is_cpu) add_systematic(result, beyond.error);
  return result;
}

double Timer::within_graph(Workload& workload, std::size_t launches, const InputReset& reset) {
  std::vector<double> samples;
  if (reset.apply) reset.apply();
  unobserved(workload, 1, launches, samples);
  return samples.front();
}

void Timer::add_systematic(TimingResult& result, double overhead_error) const {
  TimeEstimate& estimate = result.estimate;
  const auto launches = static_cast<double>(result.launches_per_sample);
  const double of_overhead = std::hypot(overhead_error, launches > 1 ? kUnevenness : 0) / launches;
  const ErrorEstimate error =
      combined_error(std::array{ErrorEstimate{estimate.standard_error, estimate.degrees}, ErrorEstimate{of_overhead, 0},
                                ErrorEstimate{kReproducibility * estimate.value, 0}});
  estimate.standard_error = error.standard_error;
  estimate.degrees = error.degrees;
  if (estimate.value > 0)
    estimate.relative_half_width = half_width_95(error.standard_error, error.degrees) / estimate.value;
}

}  // namespace ergotune
