// The C interface of the fake libnvidia-ml.so.1 over the mapped state. Signatures and layouts are our own
// declarations of the documented interface; nothing of the vendor's header is copied.
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>

#include "presets.hpp"

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {
using namespace fake_nvml;

enum Return {
  ok = 0,
  uninitialised = 1,
  invalid_argument = 2,
  not_supported = 3,
  no_permission = 4,
  not_found = 6,
  insufficient_size = 7,
  driver_not_loaded = 9,
  function_not_found = 13,
  deprecated = 26,
  unknown = 999
};
constexpr int kPretend = -1, kAbort = -2;

State* state = nullptr;
std::string state_path;
int users = 0;
std::mutex attach_mutex;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// One call: latency, faults, the state's lock, and the GPU brought up to now.
class Call {
 public:
  Call(const char* function, void* device = nullptr, bool needs_device = false) {
    if (!state || users == 0) {
      result = uninitialised;
      return;
    }
    double delay = state->latency;
    {
      Lock lock(*state);
      ++state->calls;
      if (!state->driver_loaded) result = driver_not_loaded;
      const int code = fault(function, delay);
      if (code != ok) result = code;
    }
    if (result == kAbort) std::abort();
    if (delay > 0) {
      timespec t{static_cast<time_t>(delay), static_cast<long>((delay - std::floor(delay)) * 1e9)};
      if (!state->is_virtual) nanosleep(&t, nullptr);
    }
    if (result != ok && result != kPretend) return;
    if (!needs_device) return;
    const auto index = reinterpret_cast<std::uintptr_t>(device);
    if (index < 1 || index > static_cast<std::uintptr_t>(state->device_count)) {
      result = invalid_argument;
      return;
    }
    gpu = &state->gpus[index - 1];
    lock_.emplace(*state);
    advance(*state, *gpu, model_now(*state));
  }
  bool failed() const { return result != ok; }
  /// The fault of a name such as "field:186".
  int fault_of(const char* name) {
    double delay = 0;
    return fault(name, delay);
  }
  int result = ok;
  Gpu* gpu = nullptr;

 private:
  static int fault(const char* function, double& delay) {
    for (int i = 0; i < state->fault_count; ++i) {
      Fault& f = state->faults[i];
      if (std::strcmp(f.function, function) != 0 && std::strcmp(f.function, "*") != 0) continue;
      const std::uint64_t call = f.calls++;
      if (call < f.after_calls) continue;
      if (f.for_calls && call >= f.after_calls + f.for_calls) continue;
      delay += f.delay;
      if (f.code != ok) return f.code;
    }
    return ok;
  }
  struct Holder {
    explicit Holder(State& s) : lock(s) {}
    Lock lock;
  };
  std::optional<Holder> lock_;
};

/// A setter: privilege, faults, log. `change` validates and applies; returns its code.
template <class Change>
int set(const char* function, void* device, std::uint32_t a, std::uint32_t b, Change change) {
  Call call(function, device, true);
  int result = call.result;
  if (result == kPretend) {
    result = ok;
  } else if (result == ok) {
    result = state->permitted ? change(*call.gpu) : no_permission;
  }
  if (call.gpu) {
    SetterCall& entry = state->setter_log[state->setter_calls++ % kSetterLog];
    set_text(entry.function, sizeof entry.function, function);
    entry.a = a;
    entry.b = b;
    entry.pid = getpid();
    entry.result = result;
    entry.time = model_now(*state);
  }
  return result;
}

int copy_text(const char* from, char* to, unsigned size) {
  if (!to) return invalid_argument;
  if (std::strlen(from) + 1 > size) return insufficient_size;
  std::memcpy(to, from, std::strlen(from) + 1);
  return ok;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// True when `mhz` is a listed graphics clock that goes with the memory clock in force.
bool clock_listed(const Gpu& b, std::uint32_t mhz) {
  return std::find(b.graphics_clocks, b.graphics_clocks + b.graphics_clock_count, mhz) !=
         b.graphics_clocks + b.graphics_clock_count;
}

template <class T>
int give(T* to, T value) {
  if (!to) return invalid_argument;
  *to = value;
  return ok;
}

std::uint32_t milliwatts(double watts) { return static_cast<std::uint32_t>(std::llround(watts * 1000)); }
double tick_now(const Gpu& b, const PowerSensorModel& s) { return last_tick(s.phase, s.period, b.time); }

/// A reading as it was, or as a corruption of its function makes it.
TypedValue reading(const char* function, std::uint64_t value, unsigned width, unsigned type) {
  for (int i = 0; i < state->corruption_count; ++i)
    if (std::strcmp(state->corruptions[i].function, function) == 0)
      return corrupt(state->corruptions[i], value, width, type);
  return {value, type};
}
Corruption corruption_of(const char* function) {
  for (int i = 0; i < state->corruption_count; ++i)
    if (std::strcmp(state->corruptions[i].function, function) == 0) return state->corruptions[i].kind;
  return Corruption::none;
}

struct PciInfo {
  char bus_id_legacy[16];
  std::uint32_t domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct FieldValue {
  std::uint32_t field, scope;
  long long timestamp, latency;
  std::uint32_t type;
  int result;
  union {
    double d;
    unsigned ui;
    unsigned long ul;
    unsigned long long ull;
    long long sll;
    int si;
    unsigned short us;
  } value;
};
static_assert(sizeof(FieldValue) == 40);
struct Sample {
  unsigned long long time;
  union {
    double d;
    unsigned ui;
    unsigned long long ull;
  } value;
};
struct ProcessInfo {
  std::uint32_t pid;
  std::uint64_t memory;
  std::uint32_t instance, compute_instance;
};
struct Temperature {
  std::uint32_t version;
  int sensor, temperature;
};
}  // namespace

// ---- life

FAKE int nvmlInit_v2() {
  std::lock_guard guard(attach_mutex);
  // A client that starts anew may have been pointed at another state file.
  const std::string path = environment("ERGOTUNE_FAKE_NVML_STATE");
  if (!state || (users == 0 && path != state_path)) {
    state = map_state(path, environment("ERGOTUNE_FAKE_NVML_CONFIG"));
    state_path = path;
  }
  if (!state) return unknown;
  ++users;
  const Call call("nvmlInit_v2");
  if (call.failed()) --users;
  return call.result;
}
/// What Python's bindings call, and Kernel Tuner's observer through them.
FAKE int nvmlInitWithFlags(unsigned) { return nvmlInit_v2(); }
FAKE int nvmlDeviceGetAutoBoostedClocksEnabled(void*, unsigned*, unsigned*) { return not_supported; }
FAKE int nvmlDeviceSetAutoBoostedClocksEnabled(void*, unsigned) { return not_supported; }
FAKE int nvmlDeviceGetPowerState(void*, unsigned* state_of_gpu) {
  *state_of_gpu = 0;
  return ok;
}

FAKE int nvmlShutdown() {
  std::lock_guard guard(attach_mutex);
  if (users == 0) return uninitialised;
  --users;
  return ok;
}
FAKE const char* nvmlErrorString(int code) {
  switch (code) {
    case 0:
      return "Success";
    case 1:
      return "Uninitialized";
    case 2:
      return "Invalid Argument";
    case 3:
      return "Not Supported";
    case 4:
      return "Insufficient Permissions";
    case 6:
      return "Not Found";
    case 7:
      return "Insufficient Size";
    case 9:
      return "Driver Not Loaded";
    case 10:
      return "Timeout";
    case 13:
      return "Function Not Found";
    case 15:
      return "GPU is lost";
    case 16:
      return "GPU requires reset";
    case 21:
      return "No data";
    case 24:
      return "Requested frequency is not supported";
    case 26:
      return "Deprecated";
    default:
      return "Unknown Error";
  }
}
FAKE int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  const Call call("nvmlSystemGetDriverVersion");
  return call.failed() ? call.result : copy_text(state->driver_version, text, size);
}

// ---- devices

FAKE int nvmlDeviceGetCount_v2(unsigned* count) {
  const Call call("nvmlDeviceGetCount_v2");
  return call.failed() ? call.result : give(count, static_cast<unsigned>(state->device_count));
}
FAKE int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  const Call call("nvmlDeviceGetHandleByIndex_v2");
  if (call.failed()) return call.result;
  if (index >= static_cast<unsigned>(state->device_count)) return invalid_argument;
  return give(device, reinterpret_cast<void*>(static_cast<std::uintptr_t>(index) + 1));
}
FAKE int nvmlDeviceGetHandleByPciBusId_v2(const char* pci, void** device) {
  const Call call("nvmlDeviceGetHandleByPciBusId_v2");
  if (call.failed()) return call.result;
  for (int i = 0; i < state->device_count; ++i) {
    const std::string own = lower(state->gpus[i].pci), requested = lower(pci ? pci : "");
    if (own == requested || own.substr(4) == requested || own.substr(9) == requested)
      return give(device, reinterpret_cast<void*>(static_cast<std::uintptr_t>(i) + 1));
  }
  return not_found;
}
FAKE int nvmlDeviceGetIndex(void* device, unsigned* index) {
  const Call call("nvmlDeviceGetIndex", device, true);
  return call.failed() ? call.result : give(index, static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device) - 1));
}
FAKE int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  const Call call("nvmlDeviceGetName", device, true);
  return call.failed() ? call.result : copy_text(call.gpu->name, text, size);
}
FAKE int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  const Call call("nvmlDeviceGetUUID", device, true);
  return call.failed() ? call.result : copy_text(call.gpu->uuid, text, size);
}
FAKE int nvmlDeviceGetPciInfo_v3(void* device, PciInfo* info) {
  const Call call("nvmlDeviceGetPciInfo_v3", device, true);
  if (call.failed()) return call.result;
  if (!info) return invalid_argument;
  std::memset(info, 0, sizeof *info);
  unsigned domain = 0, bus = 0, slot = 0;
  std::sscanf(call.gpu->pci, "%x:%x:%x", &domain, &bus, &slot);
  info->domain = domain;
  info->bus = bus;
  info->device = slot;
  set_text(info->bus_id, sizeof info->bus_id, call.gpu->pci);
  set_text(info->bus_id_legacy, sizeof info->bus_id_legacy, call.gpu->pci + 4);
  return ok;
}
FAKE int nvmlDeviceGetArchitecture(void* device, unsigned* architecture) {
  const Call call("nvmlDeviceGetArchitecture", device, true);
  return call.failed() ? call.result : give(architecture, static_cast<unsigned>(call.gpu->architecture));
}
FAKE int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  const Call call("nvmlDeviceGetCudaComputeCapability", device, true);
  if (call.failed()) return call.result;
  give(major, call.gpu->compute_capability / 10);
  return give(minor, call.gpu->compute_capability % 10);
}

// ---- power and energy

FAKE int nvmlDeviceGetPowerUsage(void* device, unsigned* mw) {
  const Call call("nvmlDeviceGetPowerUsage", device, true);
  if (call.failed()) return call.result;
  const Gpu& b = *call.gpu;
  if (!b.usage.supported) return not_supported;
  const std::uint32_t power = milliwatts(power_reading(b, b.usage, tick_now(b, b.usage)));
  return give(mw, static_cast<unsigned>(reading("nvmlDeviceGetPowerUsage", power, 32, 1).bits));
}
FAKE int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* mj) {
  const Call call("nvmlDeviceGetTotalEnergyConsumption", device, true);
  if (call.failed()) return call.result;
  if (!call.gpu->counter.supported) return not_supported;
  const auto energy = static_cast<std::uint64_t>(std::llround(call.gpu->counter_energy * 1000));
  return give(mj, static_cast<unsigned long long>(reading("nvmlDeviceGetTotalEnergyConsumption", energy, 64, 3).bits));
}
FAKE int nvmlDeviceGetFieldValues(void* device, int count, FieldValue* values) {
  Call call("nvmlDeviceGetFieldValues", device, true);
  if (call.failed()) return call.result;
  if (!values || count < 1) return invalid_argument;
  const Gpu& b = *call.gpu;
  for (int i = 0; i < count; ++i) {
    FieldValue& v = values[i];
    v.timestamp = static_cast<long long>(wall_microseconds(*state, b.time));
    v.latency = 0;
    v.type = 1;
    v.value.ull = 0;
    v.result = ok;
    auto power = [&](const PowerSensorModel& s) {
      if (!s.supported)
        v.result = not_supported;
      else
        v.value.ui = milliwatts(power_reading(b, s, tick_now(b, s)));
    };
    switch (v.field) {
      case 82:
        v.value.ui = static_cast<unsigned>(b.temperature + 6);
        break;
      case 83:
        v.type = 3;
        if (b.counter.supported)
          v.value.ull = static_cast<unsigned long long>(std::llround(b.counter_energy * 1000));
        else
          v.result = not_supported;
        break;
      case 185:
        power(b.average);
        break;
      case 186:
        power(b.instant);
        break;
      case 187:
        v.value.ui = b.min_power_limit_mw;
        break;
      case 188:
        v.value.ui = b.max_power_limit_mw;
        break;
      case 189:
        v.value.ui = b.default_power_limit_mw;
        break;
      case 190:
      case 192:
        v.value.ui = b.power_limit_mw;
        break;
      default:
        v.result = not_supported;
    }
    if (v.scope != 0) v.result = not_supported;
    const std::string field = "field:" + std::to_string(v.field);
    const TypedValue said = reading(field.c_str(), v.value.ull, 32, v.type);
    v.value.ull = said.bits;
    v.type = said.type;
    const int code = call.fault_of(field.c_str());
    if (code > 0) {
      v.result = code;
      v.value.ull = 0;
    }
  }
  return ok;
}
FAKE int nvmlDeviceGetSamples(void* device, int type, unsigned long long last_seen, int* value_type, unsigned* count,
                              Sample* samples) {
  const Call call("nvmlDeviceGetSamples", device, true);
  if (call.failed()) return call.result;
  if (!count || !value_type) return invalid_argument;
  const Gpu& b = *call.gpu;
  if (type != 0 || !b.samples.supported) return not_supported;
  *value_type = 1;
  if (!samples) return give(count, static_cast<unsigned>(b.sample_capacity));
  const double newest = std::round((tick_now(b, b.samples) - b.samples.phase) / b.samples.period);
  const Corruption wrong = corruption_of("nvmlDeviceGetSamples");
  unsigned n = 0;
  for (int i = b.sample_capacity - 1; i >= 0 && n < *count; --i) {
    // from the sample's number, so that its time is the same to the last bit whenever it is requested
    const double tick = b.samples.phase + (newest - i) * b.samples.period;
    const unsigned long long stamp = wall_microseconds(*state, tick);
    if (stamp <= last_seen) continue;
    const TypedValue said = reading("nvmlDeviceGetSamples", milliwatts(power_reading(b, b.samples, tick)), 32, 1);
    samples[n].time = wrong == Corruption::stamps_zero   ? 0
                      : wrong == Corruption::stamps_ones ? ~0ull
                      : wrong == Corruption::stamps_old  ? stamp - 3'600'000'000ull
                                                         : stamp;
    samples[n].value.ull = said.bits;
    *value_type = static_cast<int>(said.type);
    ++n;
  }
  *count = n;
  return n == 0 ? not_found : ok;
}

// ---- temperature, clocks, reasons, processes

FAKE int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  const Call call("nvmlDeviceGetTemperature", device, true);
  if (call.failed()) return call.result;
  return sensor == 0 ? give(celsius, static_cast<unsigned>(call.gpu->temperature)) : invalid_argument;
}
FAKE int nvmlDeviceGetTemperatureV(void* device, Temperature* temperature) {
  const Call call("nvmlDeviceGetTemperatureV", device, true);
  if (call.failed()) return call.result;
  if (!temperature || temperature->version != 0x0100000C) return invalid_argument;
  temperature->temperature = static_cast<int>(call.gpu->temperature);
  return ok;
}
FAKE int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) {
  const Call call("nvmlDeviceGetClockInfo", device, true);
  if (call.failed()) return call.result;
  return give(mhz, static_cast<unsigned>(type == 2 ? memory_clock(*call.gpu) : call.gpu->clock_mhz));
}
FAKE int nvmlDeviceGetSupportedMemoryClocks(void* device, unsigned* count, unsigned* mhz) {
  const Call call("nvmlDeviceGetSupportedMemoryClocks", device, true);
  if (call.failed()) return call.result;
  const Gpu& b = *call.gpu;
  const auto n = static_cast<unsigned>(b.memory_clock_count);
  if (!count) return invalid_argument;
  if (!mhz || *count < n) {
    *count = n;
    return insufficient_size;
  }
  std::copy_n(b.memory_clocks, n, mhz);
  *count = n;
  return ok;
}
FAKE int nvmlDeviceGetSupportedGraphicsClocks(void* device, unsigned memory_mhz, unsigned* count, unsigned* mhz) {
  const Call call("nvmlDeviceGetSupportedGraphicsClocks", device, true);
  if (call.failed()) return call.result;
  const Gpu& b = *call.gpu;
  if (!count) return invalid_argument;
  if (std::find(b.memory_clocks, b.memory_clocks + b.memory_clock_count, memory_mhz) ==
      b.memory_clocks + b.memory_clock_count)
    return not_found;
  const std::uint32_t bound =
      b.low_memory_max_graphics && memory_mhz < b.memory_clocks[0] ? b.low_memory_max_graphics : ~0u;
  unsigned n = 0;
  for (int i = 0; i < b.graphics_clock_count; ++i) n += b.graphics_clocks[i] <= bound;
  if (!mhz || *count < n) {
    *count = n;
    return insufficient_size;
  }
  n = 0;
  for (int i = 0; i < b.graphics_clock_count; ++i)
    if (b.graphics_clocks[i] <= bound) mhz[n++] = b.graphics_clocks[i];
  *count = n;
  return ok;
}
FAKE int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  const Call call("nvmlDeviceGetCurrentClocksEventReasons", device, true);
  if (call.failed()) return call.result;
  const Gpu& b = *call.gpu;
  unsigned long long bits = 0;
  if (b.time - b.last_active > 1.0)
    bits |= 0x1;
  else if (b.capped)
    bits |= 0x4;
  if (b.thermal_slowdown) bits |= 0x20;
  if ((b.application_clocks_set || b.locked) && !(bits & 0x5)) bits |= 0x2;
  return give(reasons, bits);
}
FAKE int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}
FAKE int nvmlDeviceGetUtilizationRates(void* device, unsigned* gpu_and_memory) {
  const Call call("nvmlDeviceGetUtilizationRates", device, true);
  if (call.failed()) return call.result;
  if (!gpu_and_memory) return invalid_argument;
  const bool busy = call.gpu->time - call.gpu->last_active < 0.2;
  gpu_and_memory[0] = busy ? 100 : 0;
  gpu_and_memory[1] = busy ? 30 : 0;
  return ok;
}
FAKE int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, ProcessInfo* info) {
  const Call call("nvmlDeviceGetComputeRunningProcesses_v3", device, true);
  if (call.failed()) return call.result;
  const Gpu& b = *call.gpu;
  if (!count) return invalid_argument;
  const auto n = static_cast<unsigned>(b.process_count);
  const unsigned room = *count;
  *count = n;
  if (n == 0) return ok;
  if (!info || room < n) return insufficient_size;
  for (unsigned i = 0; i < n; ++i) info[i] = {b.processes[i], 1u << 30, ~0u, ~0u};
  return ok;
}

// ---- limits and settings

FAKE int nvmlDeviceGetPowerManagementLimit(void* device, unsigned* mw) {
  const Call call("nvmlDeviceGetPowerManagementLimit", device, true);
  return call.failed() ? call.result : give(mw, call.gpu->power_limit_mw);
}
FAKE int nvmlDeviceGetPowerManagementDefaultLimit(void* device, unsigned* mw) {
  const Call call("nvmlDeviceGetPowerManagementDefaultLimit", device, true);
  return call.failed() ? call.result : give(mw, call.gpu->default_power_limit_mw);
}
FAKE int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* mw) {
  const Call call("nvmlDeviceGetEnforcedPowerLimit", device, true);
  return call.failed() ? call.result : give(mw, enforced_limit_mw(*call.gpu));
}
FAKE int nvmlDeviceGetPowerManagementLimitConstraints(void* device, unsigned* low, unsigned* high) {
  const Call call("nvmlDeviceGetPowerManagementLimitConstraints", device, true);
  if (call.failed()) return call.result;
  give(low, call.gpu->min_power_limit_mw);
  return give(high, call.gpu->max_power_limit_mw);
}
FAKE int nvmlDeviceSetPowerManagementLimit(void* device, unsigned mw) {
  return set("nvmlDeviceSetPowerManagementLimit", device, mw, 0, [&](Gpu& b) {
    if (mw < b.min_power_limit_mw || mw > b.max_power_limit_mw) return invalid_argument;
    b.power_limit_mw = mw;
    return ok;
  });
}
FAKE int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  const Call call("nvmlDeviceGetMigMode", device, true);
  if (call.failed()) return call.result;
  if (call.gpu->architecture < 7) return not_supported;
  give(current, static_cast<unsigned>(call.gpu->mig_mode));
  return give(pending, static_cast<unsigned>(call.gpu->mig_mode));
}
FAKE int nvmlDeviceGetComputeMode(void* device, int* mode) {
  const Call call("nvmlDeviceGetComputeMode", device, true);
  return call.failed() ? call.result : give(mode, call.gpu->compute_mode);
}
FAKE int nvmlDeviceGetPersistenceMode(void* device, int* mode) {
  const Call call("nvmlDeviceGetPersistenceMode", device, true);
  return call.failed() ? call.result : give(mode, call.gpu->persistence);
}
FAKE int nvmlDeviceSetPersistenceMode(void* device, int mode) {
  return set("nvmlDeviceSetPersistenceMode", device, static_cast<std::uint32_t>(mode), 0, [&](Gpu& b) {
    b.persistence = mode != 0;
    return ok;
  });
}
FAKE int nvmlDeviceSetGpuLockedClocks(void* device, unsigned low, unsigned high) {
  return set("nvmlDeviceSetGpuLockedClocks", device, low, high, [&](Gpu& b) {
    if (!b.supports_locked_clocks) return not_supported;
    if (low > high || high > b.graphics_clocks[0] || low < bottom_clock(b)) return invalid_argument;
    // As the driver does, clocks between the listed ones are taken and rounded down.
    auto listed = [&](unsigned mhz) {
      while (!clock_listed(b, mhz)) --mhz;
      return mhz;
    };
    b.locked = 1;
    b.locked_at = b.time;
    b.locked_min = listed(low);
    b.locked_max = listed(high);
    return ok;
  });
}
FAKE int nvmlDeviceResetGpuLockedClocks(void* device) {
  return set("nvmlDeviceResetGpuLockedClocks", device, 0, 0, [&](Gpu& b) {
    if (!b.supports_locked_clocks) return not_supported;
    b.locked = 0;
    b.locked_min = b.locked_max = 0;
    return ok;
  });
}
FAKE int nvmlDeviceSetMemoryLockedClocks(void* device, unsigned low, unsigned high) {
  return set("nvmlDeviceSetMemoryLockedClocks", device, low, high, [&](Gpu& b) {
    if (!b.supports_memory_locked_clocks) return not_supported;
    bool listed = false;
    for (int i = 0; i < b.memory_clock_count; ++i) listed |= b.memory_clocks[i] == high;
    if (low > high || !listed) return invalid_argument;
    b.memory_locked = 1;
    b.memory_locked_min = low;
    b.memory_locked_max = high;
    return ok;
  });
}
FAKE int nvmlDeviceResetMemoryLockedClocks(void* device) {
  return set("nvmlDeviceResetMemoryLockedClocks", device, 0, 0, [&](Gpu& b) {
    if (!b.supports_memory_locked_clocks) return not_supported;
    b.memory_locked = 0;
    b.memory_locked_min = b.memory_locked_max = 0;
    return ok;
  });
}
FAKE int nvmlDeviceSetApplicationsClocks(void* device, unsigned memory_mhz, unsigned graphics_mhz) {
  return set("nvmlDeviceSetApplicationsClocks", device, memory_mhz, graphics_mhz, [&](Gpu& b) -> int {
    if (!b.supports_application_clocks) return b.architecture >= 9 ? deprecated : not_supported;
    bool listed = false;
    for (int i = 0; i < b.memory_clock_count; ++i) listed |= b.memory_clocks[i] == memory_mhz;
    if (!listed || !clock_listed(b, graphics_mhz)) return invalid_argument;
    b.application_clocks_set = 1;
    b.application_memory = memory_mhz;
    b.application_graphics = graphics_mhz;
    return ok;
  });
}
FAKE int nvmlDeviceResetApplicationsClocks(void* device) {
  return set("nvmlDeviceResetApplicationsClocks", device, 0, 0, [&](Gpu& b) -> int {
    if (!b.supports_application_clocks) return b.architecture >= 9 ? deprecated : not_supported;
    b.application_clocks_set = 0;
    b.application_memory = b.default_application_memory;
    b.application_graphics = b.default_application_graphics;
    return ok;
  });
}
FAKE int nvmlDeviceGetApplicationsClock(void* device, int type, unsigned* mhz) {
  const Call call("nvmlDeviceGetApplicationsClock", device, true);
  if (call.failed()) return call.result;
  const Gpu& b = *call.gpu;
  if (!b.supports_application_clocks) return b.architecture >= 9 ? deprecated : not_supported;
  return give(mhz, type == 2 ? b.application_memory : b.application_graphics);
}
FAKE int nvmlDeviceGetDefaultApplicationsClock(void* device, int type, unsigned* mhz) {
  const Call call("nvmlDeviceGetDefaultApplicationsClock", device, true);
  if (call.failed()) return call.result;
  const Gpu& b = *call.gpu;
  if (!b.supports_application_clocks) return b.architecture >= 9 ? deprecated : not_supported;
  return give(mhz, type == 2 ? b.default_application_memory : b.default_application_graphics);
}
