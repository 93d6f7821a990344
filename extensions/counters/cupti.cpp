#include "counters/cupti.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "device/cuda/cuda_api.hpp"
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
  const auto found = std::ranges::find_if(rows, [&](const Row& row) { return row.architecture == architecture; });
  return found == rows.end() ? std::string() : found->chip;
}

std::vector<std::string> base_metrics(const std::string& chip, int kind) {
  const Host host(chip, {});
  auto list = block(&HostBaseMetrics::count);
  list.host = host.get();
  list.type = kind;
  check(api().cuptiProfilerHostGetBaseMetrics(&list), "cuptiProfilerHostGetBaseMetrics");
  std::vector<std::string> names(list.names, list.names + list.count);
  std::ranges::sort(names);
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

namespace {

constexpr const char* kRange = "round";

/// Why the device cannot be profiled, as far as CUPTI reports it.
std::string reason_of(const DeviceSupported& answer) {
  if (answer.architecture != kSupported)
    return "its architecture has no range profiler, which begins with compute capability 7.5";
  if (answer.virtual_gpu != kSupported) return "it is a virtual GPU whose host does not allow counters";
  if (answer.confidential != kSupported) return "confidential computing is on";
  if (answer.sli != kSupported) return "SLI is on";
  if (answer.mining != kSupported) return "it is a mining GPU";
  if (answer.wsl != kSupported) return "counters are not to be had under WSL here";
  return "CUPTI gives no reason";
}

}  // namespace

ProfiledDevice::ProfiledDevice(int device) {
  if (!api().usable()) throw UserError(how_to_get_it());
  auto begin = Initialize{};
  begin.size = sizeof(Header);
  check(api().cuptiProfilerInitialize(&begin), "cuptiProfilerInitialize");
  auto supported = block(&DeviceSupported::api);
  supported.device = device;
  check(api().cuptiProfilerDeviceSupported(&supported), "cuptiProfilerDeviceSupported");
  if (supported.supported != kSupported)
    throw UserError("the device has no hardware counters to read: " + reason_of(supported));
  auto name = block(&ChipName::name);
  name.device = static_cast<std::size_t>(device);
  check(api().cuptiDeviceGetChipName(&name), "cuptiDeviceGetChipName");
  chip_ = name.name;
  cuda::CUcontext context = nullptr;
  cuda::check(cuda::api().cuCtxGetCurrent(&context), DeviceFault::runtime, "cuCtxGetCurrent");
  context_ = context;
  // The first call that a driver rejects without permission; enabling and configuring always succeed.
  auto available = block(&CounterAvailability::image);
  available.context = context_;
  check(api().cuptiProfilerGetCounterAvailability(&available), "cuptiProfilerGetCounterAvailability");
  availability_.resize(available.bytes);
  available.image = availability_.data();
  check(api().cuptiProfilerGetCounterAvailability(&available), "cuptiProfilerGetCounterAvailability");
  availability_.resize(available.bytes);
}

CountedIterations::CountedIterations(const ProfiledDevice& device, const MetricSet& set, bool one_launch)
    : set_(set), one_launch_(one_launch) {
  auto enable = block(&RangeEnable::ranges);
  enable.context = device.context();
  check(api().cuptiRangeProfilerEnable(&enable), "cuptiRangeProfilerEnable");
  ranges_ = enable.ranges;
  try {
    auto size = block(&RangeDataSize::bytes);
    size.ranges = ranges_;
    size.names = set.names();
    size.count = set.metrics().size();
    size.most_ranges = 1;
    size.tree_nodes = 1;
    check(api().cuptiRangeProfilerGetCounterDataSize(&size), "cuptiRangeProfilerGetCounterDataSize");
    data_.resize(size.bytes);
    auto data = block(&RangeDataInitialize::data);
    data.ranges = ranges_;
    data.bytes = data_.size();
    data.data = data_.data();
    check(api().cuptiRangeProfilerCounterDataImageInitialize(&data), "cuptiRangeProfilerCounterDataImageInitialize");
    auto config = block(&RangeConfig::target_nesting_level);
    config.ranges = ranges_;
    config.config = set.image().data();
    config.config_bytes = set.image().size();
    config.data = data_.data();
    config.data_bytes = data_.size();
    config.range_mode = one_launch_ ? kAutoRange : kUserRange;
    config.replay_mode = kUserReplay;
    check(api().cuptiRangeProfilerSetConfig(&config), "cuptiRangeProfilerSetConfig");
  } catch (...) {
    disable();
    throw;
  }
}

CountedIterations::~CountedIterations() { disable(); }

void CountedIterations::disable() noexcept {
  if (!ranges_) return;
  auto only = block(&RangeOnly::ranges);
  only.ranges = ranges_;
  if (started_) {
    auto stop = block(&RangeStop::all_passes_submitted);
    stop.ranges = ranges_;
    api().cuptiRangeProfilerStop(&stop);
  }
  api().cuptiRangeProfilerDisable(&only);
  ranges_ = nullptr;
}

void CountedIterations::begin_pass() {
  auto only = block(&RangeOnly::ranges);
  only.ranges = ranges_;
  check(api().cuptiRangeProfilerStart(&only), "cuptiRangeProfilerStart");
  started_ = true;
  if (one_launch_) return;
  auto push = block(&RangePush::name);
  push.ranges = ranges_;
  push.name = kRange;
  check(api().cuptiRangeProfilerPushRange(&push), "cuptiRangeProfilerPushRange");
}

void CountedIterations::end_pass() {
  auto only = block(&RangeOnly::ranges);
  only.ranges = ranges_;
  if (!one_launch_) check(api().cuptiRangeProfilerPopRange(&only), "cuptiRangeProfilerPopRange");
  auto stop = block(&RangeStop::all_passes_submitted);
  stop.ranges = ranges_;
  started_ = false;
  check(api().cuptiRangeProfilerStop(&stop), "cuptiRangeProfilerStop");
  complete_ = stop.all_passes_submitted != 0;
}

std::vector<double> CountedIterations::values() {
  if (!complete_) throw Error("the device needs more passes than computed for its metrics");
  auto decode = block(&RangeDecode::dropped);
  decode.ranges = ranges_;
  check(api().cuptiRangeProfilerDecodeData(&decode), "cuptiRangeProfilerDecodeData");
  if (decode.dropped != 0) throw Error(fmt::format("the device dropped the counters of {} ranges", decode.dropped));
  auto info = block(&RangeDataInfo::ranges);
  info.data = data_.data();
  info.bytes = data_.size();
  check(api().cuptiRangeProfilerGetCounterDataInfo(&info), "cuptiRangeProfilerGetCounterDataInfo");
  if (info.ranges != 1) throw Error(fmt::format("counters of {} ranges came, not of one", info.ranges));
  std::vector<double> values = set_.evaluate(data_, 0);
  disable();
  return values;
}

}  // namespace ergotune::cupti
