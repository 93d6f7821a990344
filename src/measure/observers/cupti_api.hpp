// The part of CUPTI's Profiler Host and Range Profiler APIs that ergotune uses, as declarations and a table of entry
// points. Names, fields and numbers are those of cupti_profiler_host.h, cupti_range_profiler.h and
// cupti_profiler_target.h of CUDA 12.6 Update 2 to 13. Each struct contains its size, so that later libraries with
// longer structs accept these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/driver_table.hpp"

namespace ergotune::cupti {

using Result = int;
enum Code : Result {
  kSuccess = 0,
  kInvalidParameter = 1,
  kNotCompatible = 14,
  kNotInitialised = 15,
  kInvalidMetricName = 17,
  kHardwareBusy = 26,
  kNotSupported = 27,
  kVirtualisedNotSupported = 33,
  kInsufficientPrivileges = 35,
  kOldProfilerInitialised = 36,
  kLegacyNotSupported = 38,
  kMultipleSubscribers = 39,
  kVirtualisedPrivileges = 40,
  kConfidentialComputing = 41,
  kMiningDevice = 42,
  kMigDevice = 43,
  kSliDevice = 44,
  kWsl = 45,
  kInvalidChipName = 46,
  kUnknown = 999,
};

struct HostObject;
struct RangeObject;

/// The beginning of all parameter blocks. `size` is the offset of the last member known to the caller plus its length.
struct Header {
  std::size_t size = 0;
  void* reserved = nullptr;
};

struct Initialize : Header {};
struct ChipName : Header {
  std::size_t device = 0;
  const char* name = nullptr;
};
struct DeviceSupported : Header {
  int device = 0;
  int supported = 0, architecture = 0, sli = 0, virtual_gpu = 0, confidential = 0, mining = 0, wsl = 0;
  int api = 0;  ///< 0: range profiling
};
constexpr int kSupported = 3;
struct CounterAvailability : Header {
  void* context = nullptr;
  std::size_t bytes = 0;
  std::uint8_t* image = nullptr;
};

struct HostInitialize : Header {
  int type = 0;  ///< 0: ranges
  const char* chip = nullptr;
  const std::uint8_t* availability = nullptr;
  HostObject* host = nullptr;
};
struct HostDeinitialize : Header {
  HostObject* host = nullptr;
};
struct HostBaseMetrics : Header {
  HostObject* host = nullptr;
  int type = 0;  ///< 0 counter, 1 ratio, 2 throughput
  const char** names = nullptr;
  std::size_t count = 0;
};
struct HostProperties : Header {
  HostObject* host = nullptr;
  const char* name = nullptr;
  const char *description = nullptr, *hardware_unit = nullptr, *dimension = nullptr;
  int type = 0;
};
struct HostAddMetrics : Header {
  HostObject* host = nullptr;
  const char** names = nullptr;
  std::size_t count = 0;
};
struct HostImageSize : Header {
  HostObject* host = nullptr;
  std::size_t bytes = 0;
};
struct HostImage : Header {
  HostObject* host = nullptr;
  std::size_t bytes = 0;
  std::uint8_t* image = nullptr;
};
struct HostPasses : Header {
  std::size_t bytes = 0;
  std::uint8_t* image = nullptr;
  std::size_t passes = 0;
};
struct HostEvaluate : Header {
  HostObject* host = nullptr;
  const std::uint8_t* data = nullptr;
  std::size_t bytes = 0, range = 0;
  const char** names = nullptr;
  std::size_t count = 0;
  double* values = nullptr;
};

struct RangeEnable : Header {
  void* context = nullptr;
  RangeObject* ranges = nullptr;
};
/// Parameters of Disable, Start and PopRange.
struct RangeOnly : Header {
  RangeObject* ranges = nullptr;
};
struct RangeDataSize : Header {
  RangeObject* ranges = nullptr;
  const char** names = nullptr;
  std::size_t count = 0, most_ranges = 0;
  std::uint32_t tree_nodes = 0;
  std::size_t bytes = 0;
};
struct RangeDataInitialize : Header {
  RangeObject* ranges = nullptr;
  std::size_t bytes = 0;
  std::uint8_t* data = nullptr;
};
struct RangeConfig : Header {
  RangeObject* ranges = nullptr;
  std::size_t config_bytes = 0;
  const std::uint8_t* config = nullptr;
  std::size_t data_bytes = 0;
  std::uint8_t* data = nullptr;
  int range_mode = 0, replay_mode = 0;
  std::size_t ranges_per_pass = 1;
  std::uint16_t nesting_levels = 1, least_nesting_level = 1;
  std::size_t pass = 0;
  std::uint16_t target_nesting_level = 1;
};
constexpr int kAutoRange = 1, kUserRange = 2, kUserReplay = 3;
struct RangeStop : Header {
  RangeObject* ranges = nullptr;
  std::size_t pass = 0, target_nesting_level = 0;
  std::uint8_t all_passes_submitted = 0;
};
struct RangePush : Header {
  RangeObject* ranges = nullptr;
  const char* name = nullptr;
};
struct RangeDecode : Header {
  RangeObject* ranges = nullptr;
  std::size_t dropped = 0;
};
struct RangeDataInfo : Header {
  const std::uint8_t* data = nullptr;
  std::size_t bytes = 0, ranges = 0;
};

/// Returns a parameter block whose size ends with the member `last`. What follows is padding, or unknown to this
/// version.
template <class T, class Member>
T block(Member T::*last) {
  T made{};
  const auto* begin = reinterpret_cast<const char*>(&made);
  made.size = static_cast<std::size_t>(reinterpret_cast<const char*>(&(made.*last)) - begin) + sizeof(Member);
  return made;
}

struct Api : DriverTable {
  Api();

  EntryPoint<Result(std::uint32_t*)> cuptiGetVersion{this, "cuptiGetVersion"};
  EntryPoint<Result(Result, const char**)> cuptiGetResultString{this, "cuptiGetResultString"};
  EntryPoint<Result(Initialize*)> cuptiProfilerInitialize{this, "cuptiProfilerInitialize"};
  EntryPoint<Result(DeviceSupported*)> cuptiProfilerDeviceSupported{this, "cuptiProfilerDeviceSupported"};
  EntryPoint<Result(CounterAvailability*)> cuptiProfilerGetCounterAvailability{this,
                                                                               "cuptiProfilerGetCounterAvailability"};
  EntryPoint<Result(ChipName*)> cuptiDeviceGetChipName{this, "cuptiDeviceGetChipName"};

  EntryPoint<Result(HostInitialize*)> cuptiProfilerHostInitialize{this, "cuptiProfilerHostInitialize"};
  EntryPoint<Result(HostDeinitialize*)> cuptiProfilerHostDeinitialize{this, "cuptiProfilerHostDeinitialize"};
  EntryPoint<Result(HostBaseMetrics*)> cuptiProfilerHostGetBaseMetrics{this, "cuptiProfilerHostGetBaseMetrics"};
  EntryPoint<Result(HostProperties*)> cuptiProfilerHostGetMetricProperties{this,
                                                                           "cuptiProfilerHostGetMetricProperties"};
  EntryPoint<Result(HostAddMetrics*)> cuptiProfilerHostConfigAddMetrics{this, "cuptiProfilerHostConfigAddMetrics"};
  EntryPoint<Result(HostImageSize*)> cuptiProfilerHostGetConfigImageSize{this, "cuptiProfilerHostGetConfigImageSize"};
  EntryPoint<Result(HostImage*)> cuptiProfilerHostGetConfigImage{this, "cuptiProfilerHostGetConfigImage"};
  EntryPoint<Result(HostPasses*)> cuptiProfilerHostGetNumOfPasses{this, "cuptiProfilerHostGetNumOfPasses"};
  EntryPoint<Result(HostEvaluate*)> cuptiProfilerHostEvaluateToGpuValues{this, "cuptiProfilerHostEvaluateToGpuValues"};

  EntryPoint<Result(RangeEnable*)> cuptiRangeProfilerEnable{this, "cuptiRangeProfilerEnable"};
  EntryPoint<Result(RangeOnly*)> cuptiRangeProfilerDisable{this, "cuptiRangeProfilerDisable"};
  EntryPoint<Result(RangeDataSize*)> cuptiRangeProfilerGetCounterDataSize{this, "cuptiRangeProfilerGetCounterDataSize"};
  EntryPoint<Result(RangeDataInitialize*)> cuptiRangeProfilerCounterDataImageInitialize{
      this, "cuptiRangeProfilerCounterDataImageInitialize"};
  EntryPoint<Result(RangeConfig*)> cuptiRangeProfilerSetConfig{this, "cuptiRangeProfilerSetConfig"};
  EntryPoint<Result(RangeOnly*)> cuptiRangeProfilerStart{this, "cuptiRangeProfilerStart"};
  EntryPoint<Result(RangeStop*)> cuptiRangeProfilerStop{this, "cuptiRangeProfilerStop"};
  EntryPoint<Result(RangePush*)> cuptiRangeProfilerPushRange{this, "cuptiRangeProfilerPushRange"};
  EntryPoint<Result(RangeOnly*)> cuptiRangeProfilerPopRange{this, "cuptiRangeProfilerPopRange"};
  EntryPoint<Result(RangeDecode*)> cuptiRangeProfilerDecodeData{this, "cuptiRangeProfilerDecodeData"};
  EntryPoint<Result(RangeDataInfo*)> cuptiRangeProfilerGetCounterDataInfo{this, "cuptiRangeProfilerGetCounterDataInfo"};

 private:
  /// CUPTI loads this library by its bare name, so it must be loaded beforehand.
  std::optional<DynamicLibrary> perfworks_;
};

/// Returns the table, which is loaded at first use: from the library named by ERGOTUNE_CUPTI, else from Python's NVIDIA
/// packages, CUDA toolkits (extras/CUPTI/lib64), or the loader's search path. Its major version matches that of the
/// driver if there is one. Callers must check usable().
const Api& api();
/// Returns the CUDA version that belongs to a CUPTI version: "12.9", "13.0.1"; "API version N" if unknown.
std::string version_text(std::uint32_t version);

/// Returns "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)", with a remedy if the user can do something.
std::string error_text(Result code);
/// Throws an error with the message "WHAT: error_text()" unless `code` is success: UserError if the user can correct it
/// (permission, another profiler, a device without counters), else Error.
void check(Result code, const char* what);
/// Explains why there are no counters, and what to do, if the table is not usable().
std::string how_to_get_it();

}  // namespace ergotune::cupti
