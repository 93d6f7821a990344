// A libcupti.so without a GPU, for the logic around counting: it keeps the rules of the real one (sizes told, a
// context, enable before config before start, a range around the work, so many passes, nothing after a metric that does
// not exist) and counts, of the kernels that the fake libcuda ran, those between start and stop.
//   passes: one for every 12 metrics       chips: "GH100", and "GB202", which has no dram__ metrics
//   values: smsp__inst_executed.sum is 1000 per launch in a range; any other metric is as long as its name
// FAKE_CUPTI_FAIL="function=code" makes a function refuse, "function=crash" ends the process;
// FAKE_CUPTI_DROPPED=n loses n ranges; FAKE_CUPTI_UNSUPPORTED=n is a GPU that cannot be profiled, for the n-th
// reason; FAKE_CUPTI_MORE_PASSES=n wants n more than it said.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// As the headers of CUDA 12.9 have them, written anew and not shared with what is under test.
struct Base {
  std::size_t size;
  void* reserved;
};
struct Host {
  std::string chip;
  bool poisoned = false;
  std::vector<std::string> metrics;
};
struct Ranges {
  bool configured = false, started = false, pushed = false;
  int mode = 0;
  std::size_t passes = 0, done = 0, pushes = 0;
  std::uint8_t* data = nullptr;
  long launches_at_start = 0, launches_in_pass = 0;
};

std::map<std::string, long> counts;
Ranges* enabled = nullptr;
bool initialised = false;
long launches_while_enabled = 0, launches_at_enable = 0;

long number(const char* variable) {
  const char* text = std::getenv(variable);
  return text ? std::atol(text) : 0;
}

long launches() {
  static long (*count)(const char*) = nullptr;
  if (!count) {
    void* driver = dlopen(std::getenv("ERGOTUNE_CUDA"), RTLD_NOW | RTLD_NOLOAD);
    if (driver) count = reinterpret_cast<long (*)(const char*)>(dlsym(driver, "fake_cuda_count"));
  }
  return count ? count("kernel") : 0;
}

/// The code that a function ends with before it does anything; -1: it goes on.
int enter(const char* name, const void* block, std::size_t least) {
  ++counts[name];
  if (const char* fail = std::getenv("FAKE_CUPTI_FAIL")) {
    const std::string wanted = std::string(name) + "=";
    if (fail == wanted + "crash") std::abort();
    if (std::strncmp(fail, wanted.c_str(), wanted.size()) == 0) return std::atoi(fail + wanted.size());
  }
  const auto* base = static_cast<const Base*>(block);
  return base->size < least || base->reserved ? 1 : -1;
}
#define ENTER(least) \
  if (const int code = enter(__func__, block, least); code != -1) return code

bool has(const std::string& chip, const std::string& metric) {
  const std::size_t unit = metric.find("__"), dot = metric.find('.');
  if (unit == metric.npos || dot == metric.npos || metric.find("nonsense") != metric.npos) return false;
  return chip != "GB202" || !metric.starts_with("dram__");
}

}  // namespace

EXPORT long fake_cupti_count(const char* name) { return counts[name]; }
EXPORT long fake_cupti_launches_while_enabled() { return launches_while_enabled; }
EXPORT bool fake_cupti_enabled() { return enabled != nullptr; }
EXPORT void fake_cupti_reset() {
  counts.clear();
  delete enabled;
  enabled = nullptr;
  initialised = false;
  launches_while_enabled = 0;
}

EXPORT int cuptiGetVersion(std::uint32_t* version) {
  *version = 130001;
  return 0;
}
EXPORT int cuptiGetResultString(int code, const char** text) {
  *text = code == 35 ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES" : "CUPTI_ERROR_OTHER";
  return 0;
}
EXPORT int cuptiProfilerInitialize(void* block) {
  ENTER(16);
  initialised = true;
  return 0;
}
EXPORT int cuptiProfilerDeviceSupported(void* block) {
  ENTER(52);
  auto* levels = reinterpret_cast<int*>(static_cast<char*>(block) + 20);
  for (int i = 0; i < 7; ++i) levels[i] = 3;
  if (const long why = number("FAKE_CUPTI_UNSUPPORTED")) levels[0] = levels[why] = 1;
  return initialised ? 0 : 15;
}
EXPORT int cuptiDeviceGetChipName(void* block) {
  ENTER(32);
  struct Block : Base {
    std::size_t device;
    const char* name;
  };
  auto* requested = static_cast<Block*>(block);
  requested->name = requested->device == 0 ? "GH100" : "GB202";
  return 0;
}
EXPORT int cuptiProfilerGetCounterAvailability(void* block) {
  ENTER(40);
  struct Block : Base {
    void* context;
    std::size_t bytes;
    std::uint8_t* image;
  };
  auto* requested = static_cast<Block*>(block);
  if (!requested->context) return 3;
  if (requested->image) std::memset(requested->image, 7, 24);
  requested->bytes = 24;
  return 0;
}

EXPORT int cuptiProfilerHostInitialize(void* block) {
  ENTER(48);
  struct Block : Base {
    int type;
    const char* chip;
    const std::uint8_t* availability;
    Host* host;
  };
  auto* requested = static_cast<Block*>(block);
  const std::string chip = requested->chip;
  if (chip != "GH100" && chip != "GB202") return 46;
  requested->host = new Host{chip, false, {}};
  return 0;
}
struct OfHost : Base {
  Host* host;
};
EXPORT int cuptiProfilerHostDeinitialize(void* block) {
  ENTER(24);
  delete static_cast<OfHost*>(block)->host;
  return 0;
}
EXPORT int cuptiProfilerHostGetBaseMetrics(void* block) {
  ENTER(48);
  static const char* names[] = {"smsp__inst_executed", "dram__bytes_read"};
  struct Block : OfHost {
    int type;
    const char** names;
    std::size_t count;
  };
  auto* requested = static_cast<Block*>(block);
  requested->names = names;
  requested->count = requested->type == 0 ? 2 : 0;
  return 0;
}
EXPORT int cuptiProfilerHostGetMetricProperties(void* block) {
  ENTER(60);
  struct Block : OfHost {
    const char *name, *description, *unit, *dimension;
    int type;
  };
  static_cast<Block*>(block)->description = "what it counts";
  return 0;
}
EXPORT int cuptiProfilerHostConfigAddMetrics(void* block) {
  ENTER(40);
  struct Block : OfHost {
    const char** names;
    std::size_t count;
  };
  auto* requested = static_cast<Block*>(block);
  if (requested->host->poisoned) return 999;
  for (std::size_t i = 0; i < requested->count; ++i) {
    if (!has(requested->host->chip, requested->names[i])) {
      requested->host->poisoned = true;
      return 1;
    }
    requested->host->metrics.emplace_back(requested->names[i]);
  }
  return 0;
}
EXPORT int cuptiProfilerHostGetConfigImageSize(void* block) {
  ENTER(32);
  struct Block : OfHost {
    std::size_t bytes;
  };
  static_cast<Block*>(block)->bytes = 8;
  return 0;
}
EXPORT int cuptiProfilerHostGetConfigImage(void* block) {
  ENTER(40);
  struct Block : OfHost {
    std::size_t bytes;
    std::uint8_t* image;
  };
  auto* requested = static_cast<Block*>(block);
  const std::uint64_t metrics = requested->host->metrics.size();
  std::memcpy(requested->image, &metrics, sizeof metrics);
  return 0;
}
namespace {
std::size_t passes_of(const std::uint8_t* image) {
  std::uint64_t metrics = 0;
  std::memcpy(&metrics, image, sizeof metrics);
  return (metrics + 11) / 12;
}
}  // namespace
EXPORT int cuptiProfilerHostGetNumOfPasses(void* block) {
  ENTER(40);
  struct Block : Base {
    std::size_t bytes;
    std::uint8_t* image;
    std::size_t passes;
  };
  auto* requested = static_cast<Block*>(block);
  requested->passes = passes_of(requested->image);
  return 0;
}
EXPORT int cuptiProfilerHostEvaluateToGpuValues(void* block) {
  ENTER(72);
  struct Block : OfHost {
    const std::uint8_t* data;
    std::size_t bytes, range;
    const char** names;
    std::size_t count;
    double* values;
  };
  auto* requested = static_cast<Block*>(block);
  for (std::size_t i = 0; i < requested->count; ++i) {
    const std::string name = requested->names[i];
    requested->values[i] =
        name == "smsp__inst_executed.sum" ? 1000.0 * requested->data[1] : static_cast<double>(name.size());
  }
  return 0;
}

struct OfRanges : Base {
  Ranges* ranges;
};
EXPORT int cuptiRangeProfilerEnable(void* block) {
  ENTER(32);
  struct Block : Base {
    void* context;
    Ranges* ranges;
  };
  auto* requested = static_cast<Block*>(block);
  if (!initialised) return 15;
  if (!requested->context) return 3;
  if (enabled) return 26;
  requested->ranges = enabled = new Ranges;
  launches_at_enable = launches();
  return 0;
}
EXPORT int cuptiRangeProfilerDisable(void* block) {
  ENTER(24);
  if (!enabled || static_cast<OfRanges*>(block)->ranges != enabled) return 1;
  launches_while_enabled += launches() - launches_at_enable;
  delete enabled;
  enabled = nullptr;
  return 0;
}
EXPORT int cuptiRangeProfilerGetCounterDataSize(void* block) {
  ENTER(64);
  struct Block : OfRanges {
    const char** names;
    std::size_t count, most;
    std::uint32_t nodes;
    std::size_t bytes;
  };
  auto* requested = static_cast<Block*>(block);
  if (requested->nodes < requested->most || requested->count == 0) return 1;
  requested->bytes = 16;
  return 0;
}
EXPORT int cuptiRangeProfilerCounterDataImageInitialize(void* block) {
  ENTER(40);
  struct Block : OfRanges {
    std::size_t bytes;
    std::uint8_t* data;
  };
  std::memset(static_cast<Block*>(block)->data, 0, 16);
  return 0;
}
EXPORT int cuptiRangeProfilerSetConfig(void* block) {
  ENTER(90);
  struct Block : OfRanges {
    std::size_t config_bytes;
    const std::uint8_t* config;
    std::size_t data_bytes;
    std::uint8_t* data;
    int range, replay;
    std::size_t most;
    std::uint16_t levels, least;
    std::size_t pass;
    std::uint16_t target;
  };
  auto* requested = static_cast<Block*>(block);
  if (requested->replay != 3 || requested->levels != 1 || requested->least != 1 || requested->target != 1 ||
      requested->pass != 0)
    return 7;
  Ranges& ranges = *requested->ranges;
  ranges.configured = true;
  ranges.mode = requested->range;
  ranges.passes = passes_of(requested->config) + static_cast<std::size_t>(number("FAKE_CUPTI_MORE_PASSES"));
  ranges.data = requested->data;
  return 0;
}
EXPORT int cuptiRangeProfilerStart(void* block) {
  ENTER(24);
  Ranges& ranges = *static_cast<OfRanges*>(block)->ranges;
  if (!ranges.configured || ranges.started || ranges.done >= ranges.passes) return 7;
  ranges.started = true;
  ranges.launches_at_start = launches();
  ranges.pushes = 0;
  return 0;
}
EXPORT int cuptiRangeProfilerPushRange(void* block) {
  ENTER(32);
  Ranges& ranges = *static_cast<OfRanges*>(block)->ranges;
  if (ranges.mode != 2 || !ranges.started || ranges.pushed) return 7;
  ranges.pushed = true;
  return 0;
}
EXPORT int cuptiRangeProfilerPopRange(void* block) {
  ENTER(24);
  Ranges& ranges = *static_cast<OfRanges*>(block)->ranges;
  if (!ranges.pushed) return 7;
  ranges.pushed = false;
  ++ranges.pushes;
  return 0;
}
EXPORT int cuptiRangeProfilerStop(void* block) {
  ENTER(41);
  struct Block : OfRanges {
    std::size_t pass, level;
    std::uint8_t all;
  };
  auto* requested = static_cast<Block*>(block);
  Ranges& ranges = *requested->ranges;
  if (!ranges.started || ranges.pushed) return 7;
  ranges.started = false;
  const long in_pass = launches() - ranges.launches_at_start;
  if (ranges.done > 0 && in_pass != ranges.launches_in_pass) return 7;  // every pass repeats the same work
  ranges.launches_in_pass = in_pass;
  requested->pass = ++ranges.done;
  requested->all = ranges.done >= ranges.passes;
  const long found = ranges.mode == 1 ? in_pass : static_cast<long>(ranges.pushes);
  ranges.data[0] = static_cast<std::uint8_t>(found);
  ranges.data[1] = static_cast<std::uint8_t>(ranges.mode == 1 && found > 0 ? in_pass / found : in_pass);
  return 0;
}
EXPORT int cuptiRangeProfilerDecodeData(void* block) {
  ENTER(32);
  struct Block : OfRanges {
    std::size_t dropped;
  };
  static_cast<Block*>(block)->dropped = static_cast<std::size_t>(number("FAKE_CUPTI_DROPPED"));
  return 0;
}
EXPORT int cuptiRangeProfilerGetCounterDataInfo(void* block) {
  ENTER(40);
  struct Block : Base {
    const std::uint8_t* data;
    std::size_t bytes, ranges;
  };
  auto* requested = static_cast<Block*>(block);
  requested->ranges = requested->data[0];
  return 0;
}

// The callback interface: one subscriber, who is told of launches and code objects that it requested.
namespace {

struct Watcher {
  void (*launch)(int site, const char* symbol, const void* parameters, int* result);
  void (*code)(const void* bytes, std::size_t size);
};
void (*subscriber)(void*, int, std::uint32_t, const void*) = nullptr;
std::set<std::pair<int, std::uint32_t>> wanted;

void tell_launch(int site, const char* symbol, const void* parameters, int* result) {
  const struct {
    int site;
    const char* function;
    const void* parameters;
    void* result;
    const char* symbol;
    void* context;
    std::uint32_t context_number;
    std::uint64_t* data;
    std::uint32_t correlation;
  } call{site, "cuLaunchKernel", parameters, result, symbol, nullptr, 1, nullptr, 1};
  if (wanted.contains({1, 307})) subscriber(nullptr, 1, 307, &call);
}
void tell_code(const void* bytes, std::size_t size) {
  const struct {
    std::uint32_t number;
    std::size_t size;
    const void* code;
  } module{1, size, bytes};
  const struct {
    void *context, *stream;
    const void* descriptor;
  } resource{nullptr, nullptr, &module};
  if (wanted.contains({3, 6})) subscriber(nullptr, 3, 6, &resource);
}

}  // namespace

EXPORT int cuptiSubscribe(void** handle, void (*callback)(void*, int, std::uint32_t, const void*), void*) {
  if (subscriber || std::getenv("FAKE_CUPTI_SUBSCRIBED")) return 39;
  void* driver = dlopen(std::getenv("ERGOTUNE_CUDA"), RTLD_NOW | RTLD_NOLOAD);
  auto* watch = driver ? reinterpret_cast<void (*)(const Watcher*)>(dlsym(driver, "fake_cuda_watch")) : nullptr;
  if (!watch) return 15;
  static const Watcher watcher{tell_launch, tell_code};
  subscriber = callback;
  *handle = &subscriber;
  watch(&watcher);
  return 0;
}
EXPORT int cuptiEnableCallback(std::uint32_t enable, void* handle, int domain, std::uint32_t callback) {
  if (handle != &subscriber) return 1;
  if (enable) wanted.emplace(domain, callback);
  return 0;
}
