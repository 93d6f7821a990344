#include "counters/counters_observer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "counters/cupti.hpp"
#include "device/cuda/cuda_platform.hpp"
#include "ergotune/error.hpp"
#include "problem/tables/counter_names.hpp"

namespace ergotune {
namespace {

std::vector<std::string> names_of_ours() {
  std::vector<std::string> names;
  for (const CounterInfo& counter : counter_names()) names.emplace_back(counter.name);
  return names;
}

/// Throws UserError for a metric that the chip lacks, with the names of similar ones.
[[noreturn]] void refuse_metric(const std::string& chip, const std::string& metric) {
  const std::size_t dot = metric.find('.');
  const std::string base = metric.substr(0, dot);
  std::vector<std::string> known;
  for (const int kind : {0, 1, 2})
    for (std::string& name : cupti::base_metrics(chip, kind)) known.push_back(std::move(name));
  if (std::ranges::find(known, base) != known.end())
    throw UserError(
        fmt::format("{} has {}, but not its \"{}\"; counters have .sum, .avg, .min, .max, each alone or with "
                    ".per_second, .per_cycle_active, .per_cycle_elapsed, .pct_of_peak_sustained_active, "
                    ".pct_of_peak_sustained_elapsed; ratios .pct and .ratio",
                    chip, base, metric.substr(dot)));
  const std::string near = nearest_name(base, known);
  throw UserError(fmt::format("{} has no counter \"{}\"{}; `ergotune counters list` names those that it has", chip,
                              metric,
                              near.empty() ? "" : fmt::format(" (did you mean \"{}{}\"?)", near, metric.substr(dot))));
}

class CountersObserver : public Observer {
 public:
  CountersObserver(cupti::ProfiledDevice device, CounterPlan plan)
      : device_(std::move(device)),
        plan_(std::move(plan)),
        set_(device_.chip(), plan_.metrics, device_.availability()) {}
  std::string name() const override { return "counters"; }
  ObserverPhase phase() const override { return ObserverPhase::own; }
  void register_configuration(const ObservedConfiguration& configuration) override {
    one_launch_ = configuration.iteration_launches == 1;
    rounds_.reset();
    values_.clear();
    failure_.clear();
    passed_ = 0;
  }

  /// As many as planned, unless an error has occurred.
  int passes() override {
    if (!failure_.empty() || !values_.empty()) return passed_;
    return static_cast<int>(plan_.passes);
  }
  void begin_pass(int pass) override {
    guarded([&] {
      if (pass == 0) rounds_.emplace(device_, set_, one_launch_);
      rounds_->begin_pass();
    });
  }
  void end_pass(int) override {
    ++passed_;
    guarded([&] {
      rounds_->end_pass();
      if (!rounds_->complete() && passed_ < static_cast<int>(plan_.passes)) return;
      values_ = rounds_->values();
      rounds_.reset();
    });
  }

  std::map<std::string, Quantity> results() override {
    std::map<std::string, Quantity> results;
    if (values_.empty()) return results;
    for (std::size_t i = 0; i < plan_.counters.size(); ++i) {
      std::vector<double> metrics;
      for (const std::size_t place : plan_.behind[i]) metrics.push_back(values_[place]);
      const double value = counter_value(plan_.counters[i], metrics);
      if (!std::isfinite(value)) continue;
      results[plan_.counters[i]] = {value,
                                    0,
                                    1,
                                    fmt::format("cupti, {} pass{}", passed_, passed_ == 1 ? "" : "es"),
                                    "cupti:" + device_.chip(),
                                    Provenance::measured};
    }
    return results;
  }
  std::vector<std::string> warnings() override {
    if (failure_.empty()) return {};
    return {"no hardware counters: " + failure_};
  }

 private:
  /// Runs `work` and records its error: time and energy of the configuration are already measured and stay valid.
  template <class F>
  void guarded(F&& work) {
    if (!failure_.empty()) return;
    try {
      work();
    } catch (const DeviceError&) {
      rounds_.reset();
      throw;
    } catch (const Error& error) {
      failure_ = error.what();
      rounds_.reset();
    }
  }

  cupti::ProfiledDevice device_;
  CounterPlan plan_;
  cupti::MetricSet set_;
  bool one_launch_ = true;
  std::optional<cupti::CountedIterations> rounds_;
  std::vector<double> values_;
  std::string failure_;
  int passed_ = 0;
};

}  // namespace

void check_counter_names(const std::vector<std::string>& requested) {
  for (const std::string& name : requested)
    if (!counter_info(name) && !is_chip_metric(name))
      throw UserError(
          fmt::format("unknown counter \"{}\"{}, or a metric of the chip as CUPTI names it (dram__bytes_read.sum)",
                      name, suggestion(name, names_of_ours())));
}

CounterPlan plan_counters(std::vector<std::string> requested, const std::string& chip,
                          std::span<const std::uint8_t> availability) {
  check_counter_names(requested);
  if (requested.empty()) requested = usual_counters();
  std::vector<std::string> all;
  for (const std::string& counter : requested)
    for (std::string& metric : metrics_behind(counter))
      if (std::ranges::find(all, metric) == all.end()) all.push_back(std::move(metric));
  const std::vector<std::string> lacking = cupti::lacking(chip, all, availability);
  const auto lacks = [&](const std::string& m) { return std::ranges::find(lacking, m) != lacking.end(); };

  CounterPlan plan;
  for (const std::string& counter : requested) {
    const std::vector<std::string> metrics = metrics_behind(counter);
    if (std::ranges::any_of(metrics, lacks)) {
      if (!counter_info(counter)) refuse_metric(chip, counter);
      plan.missing.push_back(counter);
      continue;
    }
    std::vector<std::size_t> places;
    for (const std::string& metric : metrics) {
      auto place = std::ranges::find(plan.metrics, metric);
      if (place == plan.metrics.end()) place = plan.metrics.insert(place, metric);
      places.push_back(static_cast<std::size_t>(place - plan.metrics.begin()));
    }
    if (std::ranges::find(plan.counters, counter) != plan.counters.end()) continue;
    plan.counters.push_back(counter);
    plan.behind.push_back(std::move(places));
  }
  if (plan.counters.empty())
    throw UserError(fmt::format("{} has none of the counters asked for: {}", chip, fmt::join(plan.missing, ", ")));
  plan.passes = cupti::MetricSet(chip, plan.metrics, availability).passes();
  return plan;
}

std::string to_string(const CounterPlan& plan, const std::string& chip) {
  std::string text = fmt::format(
      "{} hardware counter{} of {}: {} further launch{} of each configuration, after its time and energy",
      plan.counters.size(), plan.counters.size() == 1 ? "" : "s", chip, plan.passes, plan.passes == 1 ? "" : "es");
  if (!plan.missing.empty()) text += fmt::format("; not available on this chip: {}", fmt::join(plan.missing, ", "));
  return text;
}

std::shared_ptr<Observer> make_counters_observer(const std::vector<std::string>& requested, const DeviceInfo& device,
                                                 std::vector<std::string>* notes) {
  check_counter_names(requested);
  if (device.backend != "cuda")
    throw UserError(fmt::format(
        "observer \"counters\" reads NVIDIA's hardware counters through CUDA, and {} is not a CUDA device{}",
        device.id.empty() ? "this" : device.id,
        device.is_cpu             ? "; CPUs have the observer \"perf\""
        : device.backend == "hip" ? "; AMD's (rocprofiler-sdk) are not read, rocprofv3 counts a configuration from "
                                    "outside (the page \"Hardware counters\")"
                                  : ""));
  cupti::ProfiledDevice profiled(cuda::find_device(device.id).device);
  CounterPlan plan = plan_counters(requested, profiled.chip(), profiled.availability());
  if (notes) notes->push_back(to_string(plan, profiled.chip()));
  return std::make_shared<CountersObserver>(std::move(profiled), std::move(plan));
}

}  // namespace ergotune
