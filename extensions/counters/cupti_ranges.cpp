#include "counters/cupti_ranges.hpp"

#include <fmt/format.h>

#include "device/cuda/cuda_api.hpp"
#include "ergotune/error.hpp"
#include "measure/observers/cupti_api.hpp"

namespace ergotune::cupti {
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
