#include "counters/cupti_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ergotune/error.hpp"
#include "measure/observers/cupti_api.hpp"

namespace ergotune::cupti {
namespace {

/// Owns a CUPTI host object. After a request for a non-existent metric, the object cannot be used any more.
class Host {
 public:
  Host(const std::string& chip, std::span<const std::uint8_t> availability) {
    if (!api().usable()) throw UserError(how_to_get_it());
    auto begin = block(&HostInitialize::host);
    begin.chip = chip.c_str();
    begin.availability = availability.empty() ? nullptr : availability.data();
    check(api().cuptiProfilerHostInitialize(&begin), "cuptiProfilerHostInitialize");
    object_ = begin.host;
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() {
    if (object_) end(object_);
  }
  static void end(HostObject* object) {
    auto block_of_end = block(&HostDeinitialize::host);
    block_of_end.host = object;
    api().cuptiProfilerHostDeinitialize(&block_of_end);
  }
  HostObject* get() const { return object_; }
  HostObject* release() { return std::exchange(object_, nullptr); }

 private:
  HostObject* object_ = nullptr;
};

Result add(HostObject* host, const char** names, std::size_t count) {
  auto requested = block(&HostAddMetrics::count);
  requested.host = host;
  requested.names = names;
  requested.count = count;
  return api().cuptiProfilerHostConfigAddMetrics(&requested);
}

}  // namespace

std::string chip_of_architecture(int architecture) {
  struct Row {
    int architecture;
    const char* chip;
  };
  static constexpr std::array<Row, 11> rows{{{75, "TU102"},
                                             {80, "GA100"},
                                             {86, "GA102"},
                                             {87, "GA10B"},
                                             {89, "AD102"},
                                             {90, "GH100"},
                                             {100, "GB100"},
                                             {103, "GB110"},
                                             {110, "GB10B"},
                                             {120, "GB202"},
                                             {121, "GB20B"}}};
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.architecture == architecture; });
  return found == rows.end() ? std::string() : found->chip;
}

std::vector<std::string> base_metrics(const std::string& chip, int kind) {
  const Host host(chip, {});
  auto list = block(&HostBaseMetrics::count);
  list.host = host.get();
  list.type = kind;
  check(api().cuptiProfilerHostGetBaseMetrics(&list), "cuptiProfilerHostGetBaseMetrics");
  std::vector<std::string> names(list.names, list.names + list.count);
  std::sort(names.begin(), names.end());
  return names;
}

std::string describe(const std::string& chip, const std::string& metric) {
  const Host host(chip, {});
  auto requested = block(&HostProperties::type);
  requested.host = host.get();
  requested.name = metric.c_str();
  if (api().cuptiProfilerHostGetMetricProperties(&requested) != kSuccess || !requested.description) return {};
  return requested.description;
}

MetricSet::MetricSet(const std::string& chip, std::vector<std::string> metrics,
                     std::span<const std::uint8_t> availability)
    : metrics_(std::move(metrics)) {
  for (const std::string& metric : metrics_) names_.push_back(metric.c_str());
  Host host(chip, availability);
  // All metrics in one call: those added one after the other get a separate pass each.
  if (const Result code = add(host.get(), names_.data(), names_.size()); code != kSuccess) {
    for (const std::string& metric : lacking(chip, metrics_, availability))
      throw UserError(fmt::format("{} has no metric \"{}\"; `ergotune counters list` names what it has", chip, metric));
    check(code, "cuptiProfilerHostConfigAddMetrics");
  }
  auto size = block(&HostImageSize::bytes);
  size.host = host.get();
  check(api().cuptiProfilerHostGetConfigImageSize(&size), "cuptiProfilerHostGetConfigImageSize");
  image_.resize(size.bytes);
  auto image = block(&HostImage::image);
  image.host = host.get();
  image.bytes = image_.size();
  image.image = image_.data();
  check(api().cuptiProfilerHostGetConfigImage(&image), "cuptiProfilerHostGetConfigImage");
  auto passes = block(&HostPasses::passes);
  passes.bytes = image_.size();
  passes.image = image_.data();
  check(api().cuptiProfilerHostGetNumOfPasses(&passes), "cuptiProfilerHostGetNumOfPasses");
  passes_ = passes.passes;
  host_ = host.release();
}

MetricSet::~MetricSet() { Host::end(host_); }

std::vector<double> MetricSet::evaluate(std::span<const std::uint8_t> data, std::size_t range) const {
  std::vector<double> values(names_.size());
  auto requested = block(&HostEvaluate::values);
  requested.host = host_;
  requested.data = data.data();
  requested.bytes = data.size();
  requested.range = range;
  requested.names = names_.data();
  requested.count = names_.size();
  requested.values = values.data();
  check(api().cuptiProfilerHostEvaluateToGpuValues(&requested), "cuptiProfilerHostEvaluateToGpuValues");
  return values;
}

std::vector<std::string> lacking(const std::string& chip, const std::vector<std::string>& metrics,
                                 std::span<const std::uint8_t> availability) {
  std::vector<const char*> names;
  for (const std::string& metric : metrics) names.push_back(metric.c_str());
  if (const Host host(chip, availability); add(host.get(), names.data(), names.size()) == kSuccess) return {};
  std::vector<std::string> missing;
  for (const std::string& metric : metrics) {
    const Host host(chip, availability);
    const char* name = metric.c_str();
    if (add(host.get(), &name, 1) != kSuccess) missing.push_back(metric);
  }
  return missing;
}

}  // namespace ergotune::cupti
