// libnvidia-ml.so.1, loaded at run time: declarations of the documented interface, as one table. Sensors use only the
// getters; the setters are for controls. Also the facts about a GPU that only NVML reports.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/driver_table.hpp"

namespace ergotune::nvml {

/// Corresponds to nvmlDevice_t.
using Handle = void*;

/// The return codes that ergotune distinguishes; all others are failures described by nvmlErrorString.
enum Return : int {
  kOk = 0,
  kUninitialised = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kInUse = 19,
  kNoData = 21,
  kFrequencyNotSupported = 24,
  kDeprecated = 26,
};

/// True if the device or the driver is gone, so that calls fail until a reset.
constexpr bool lost(int code) {
  return code == kGpuIsLost || code == kResetRequired || code == kUninitialised || code == kDriverNotLoaded;
}
/// End of the message of such a failure.
inline constexpr const char* kLostSuffix = " (the device is lost)";

enum Architecture : unsigned { kKepler = 2, kMaxwell, kPascal, kVolta, kTuring, kAmpere, kAda, kHopper };
enum ClockType : int { kGraphicsClock = 0, kSmClock = 1, kMemoryClock = 2 };

inline constexpr std::uint32_t kFieldTotalEnergy = 83;
inline constexpr std::uint32_t kFieldPowerAverage = 185;
inline constexpr std::uint32_t kFieldPowerInstant = 186;

union Value {
  double d;
  unsigned ui;
  unsigned long ul;
  unsigned long long ull;
  long long sll;
  int si;
  unsigned short us;
};
/// Returns the number in a Value according to its NVML value type (0 double, 1 uint, 2 ulong, 3 ull, 4 sll, 5 sint, 6
/// ushort).
double number(const Value& value, unsigned type);

struct FieldValue {
  std::uint32_t field, scope;
  long long timestamp, latency;
  std::uint32_t type;
  int result;
  Value value;
};
static_assert(sizeof(FieldValue) == 40);

struct Sample {
  unsigned long long time;  ///< us since the Unix epoch
  Value value;
};
static_assert(sizeof(Sample) == 16);

struct PciInfo {
  char bus_id_legacy[16];
  std::uint32_t domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct Temperature {
  std::uint32_t version;
  int sensor, temperature;
};
inline constexpr std::uint32_t kTemperatureVersion1 = 0x0100000C;

struct ProcessInfo {
  std::uint32_t pid;
  std::uint64_t memory;
  std::uint32_t instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);

/// NVML's entry points. Optional ones may be missing in the installed library.
struct Functions : DriverTable {
  explicit Functions(const std::string& file) : DriverTable({file}) {}

  EntryPoint<int()> init{this, "nvmlInit_v2"};
  EntryPoint<int()> shutdown{this, "nvmlShutdown"};
  EntryPoint<const char*(int)> error_string{this, "nvmlErrorString"};
  EntryPoint<int(unsigned*)> device_count{this, "nvmlDeviceGetCount_v2"};
  EntryPoint<int(unsigned, Handle*)> handle_by_index{this, "nvmlDeviceGetHandleByIndex_v2"};
  EntryPoint<int(Handle, char*, unsigned)> name{this, "nvmlDeviceGetName"};
  EntryPoint<int(Handle, char*, unsigned)> uuid{this, "nvmlDeviceGetUUID"};

  EntryPoint<int(char*, unsigned)> driver_version{this, "nvmlSystemGetDriverVersion", Need::optional};
  EntryPoint<int(Handle, PciInfo*)> pci_info{this, "nvmlDeviceGetPciInfo_v3", Need::optional};
  EntryPoint<int(Handle, unsigned*)> architecture{this, "nvmlDeviceGetArchitecture", Need::optional};
  EntryPoint<int(Handle, unsigned*)> power_usage{this, "nvmlDeviceGetPowerUsage", Need::optional};
  EntryPoint<int(Handle, unsigned long long*)> total_energy{this, "nvmlDeviceGetTotalEnergyConsumption",
                                                            Need::optional};
  EntryPoint<int(Handle, int, FieldValue*)> field_values{this, "nvmlDeviceGetFieldValues", Need::optional};
  EntryPoint<int(Handle, int, unsigned long long, int*, unsigned*, Sample*)> samples{this, "nvmlDeviceGetSamples",
                                                                                     Need::optional};
  EntryPoint<int(Handle, int, unsigned*)> temperature{this, "nvmlDeviceGetTemperature", Need::optional};
  EntryPoint<int(Handle, Temperature*)> temperature_v{this, "nvmlDeviceGetTemperatureV", Need::optional};
  EntryPoint<int(Handle, int, unsigned*)> clock_info{this, "nvmlDeviceGetClockInfo", Need::optional};
  EntryPoint<int(Handle, unsigned*, unsigned*)> supported_memory_clocks{this, "nvmlDeviceGetSupportedMemoryClocks",
                                                                        Need::optional};
  EntryPoint<int(Handle, unsigned, unsigned*, unsigned*)> supported_graphics_clocks{
      this, "nvmlDeviceGetSupportedGraphicsClocks", Need::optional};
  // renamed in CUDA 12
  EntryPoint<int(Handle, unsigned long long*)> event_reasons{this, "nvmlDeviceGetCurrentClocksEventReasons",
                                                             "nvmlDeviceGetCurrentClocksThrottleReasons"};
  EntryPoint<int(Handle, unsigned*, ProcessInfo*)> compute_processes{this, "nvmlDeviceGetComputeRunningProcesses_v3",
                                                                     Need::optional};
  EntryPoint<int(Handle, unsigned*)> power_limit{this, "nvmlDeviceGetPowerManagementLimit", Need::optional};
  EntryPoint<int(Handle, unsigned*)> default_power_limit{this, "nvmlDeviceGetPowerManagementDefaultLimit",
                                                         Need::optional};
  EntryPoint<int(Handle, unsigned*)> enforced_power_limit{this, "nvmlDeviceGetEnforcedPowerLimit", Need::optional};
  EntryPoint<int(Handle, unsigned*, unsigned*)> power_limit_range{this, "nvmlDeviceGetPowerManagementLimitConstraints",
                                                                  Need::optional};
  EntryPoint<int(Handle, unsigned*, unsigned*)> mig_mode{this, "nvmlDeviceGetMigMode", Need::optional};
  EntryPoint<int(Handle, int*)> compute_mode{this, "nvmlDeviceGetComputeMode", Need::optional};
  EntryPoint<int(Handle, int*)> persistence_mode{this, "nvmlDeviceGetPersistenceMode", Need::optional};
  EntryPoint<int(Handle, int, unsigned*)> application_clock{this, "nvmlDeviceGetApplicationsClock", Need::optional};
  EntryPoint<int(Handle, int, unsigned*)> default_application_clock{this, "nvmlDeviceGetDefaultApplicationsClock",
                                                                    Need::optional};

  EntryPoint<int(Handle, unsigned, unsigned)> set_gpu_locked_clocks{this, "nvmlDeviceSetGpuLockedClocks",
                                                                    Need::optional};
  EntryPoint<int(Handle)> reset_gpu_locked_clocks{this, "nvmlDeviceResetGpuLockedClocks", Need::optional};
  EntryPoint<int(Handle, unsigned, unsigned)> set_memory_locked_clocks{this, "nvmlDeviceSetMemoryLockedClocks",
                                                                       Need::optional};
  EntryPoint<int(Handle)> reset_memory_locked_clocks{this, "nvmlDeviceResetMemoryLockedClocks", Need::optional};
  EntryPoint<int(Handle, unsigned, unsigned)> set_application_clocks{this, "nvmlDeviceSetApplicationsClocks",
                                                                     Need::optional};
  EntryPoint<int(Handle)> reset_application_clocks{this, "nvmlDeviceResetApplicationsClocks", Need::optional};
  EntryPoint<int(Handle, unsigned)> set_power_limit{this, "nvmlDeviceSetPowerManagementLimit", Need::optional};
  EntryPoint<int(Handle, int)> set_persistence_mode{this, "nvmlDeviceSetPersistenceMode", Need::optional};
};

/// Calls a function that may be missing; then returns kFunctionNotFound, as an older driver would.
template <class... P, class... A>
int call(const EntryPoint<int(P...)>& function, A... arguments) {
  return function ? function(arguments...) : static_cast<int>(kFunctionNotFound);
}

/// A GPU as enumerated by NVML. Its NVML index differs from its CUDA index: match devices by UUID or PCI address.
struct NvmlDevice {
  unsigned index = 0;
  Handle handle = nullptr;
  std::string name, uuid;
  std::string pci_address;  ///< normalised
  unsigned architecture = 0;
};

/// The initialised library; shut down when its last owner is destroyed.
class Library {
 public:
  /// Opens the library named by ERGOTUNE_NVML, else libnvidia-ml.so.1. Returns nullptr and sets `reason` if it does not
  /// exist or cannot be initialised. Owners share one instance per library file.
  static std::shared_ptr<const Library> open(std::string* reason = nullptr);
  /// Opens this file or name ("": libnvidia-ml.so.1) independently of the environment; for the root helper.
  static std::shared_ptr<const Library> open_file(const std::string& file, std::string* reason = nullptr);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Functions& functions() const { return functions_; }
  const Functions* operator->() const { return &functions_; }
  std::string error(int code) const;
  const std::string& driver_version() const { return driver_version_; }
  /// All GPUs that respond, in NVML's order.
  const std::vector<NvmlDevice>& gpus() const { return gpus_; }
  /// Finds a GPU by index ("0"), UUID ("GPU-...", or a unique prefix) or PCI address; returns nullptr if there is none.
  const NvmlDevice* find(const std::string& name) const;
  /// Finds a GPU by UUID, else by PCI address (any notation); returns nullptr if neither is known.
  const NvmlDevice* match(const std::string& uuid, const std::string& pci_address) const;

 private:
  explicit Library(const std::string& file) : functions_(file) {}
  bool start(std::string* reason);
  Functions functions_;
  std::string driver_version_;
  std::vector<NvmlDevice> gpus_;
  bool started_ = false;
};

}  // namespace ergotune::nvml

namespace ergotune {

struct DeviceFacts {
  std::string name;  ///< "NVIDIA A100-PCIE-40GB"
  /// Default application clock in MHz: the base clock of data-centre GPUs, often the boost clock of others.
  std::optional<double> default_core_clock_mhz;
};
/// Returns nullopt if no NVML GPU has this UUID.
std::optional<DeviceFacts> nvml_gpu_facts(const std::string& uuid);

/// Describes what restricts or disturbs measurements because an NVIDIA GPU is shared: MIG, an exclusive or prohibited
/// compute mode, an MPS server. Empty for a GPU without restrictions and for one that NVML does not know.
std::vector<std::string> nvml_sharing_notes(const std::string& uuid, const std::string& pci_address);

}  // namespace ergotune
