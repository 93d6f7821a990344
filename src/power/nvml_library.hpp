// libnvidia-ml.so.1, opened at run time: our own declarations of the documented interface, as one table of
// functions. Sensors use the getters only; the setters are for power/ controls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/dynamic_library.hpp"

namespace ergotune::nvml {

/// An nvmlDevice_t.
using Handle = void*;

/// The codes ergotune tells apart; anything else is a failure described by the library's own words.
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
/// The number in a Value by its NVML value type (0 double, 1 uint, 2 ulong, 3 ull, 4 sll, 5 sint, 6 ushort).
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
  unsigned long long time;  ///< us since the epoch
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

/// Members are null where the installed library lacks the function; the first block is always there.
struct Functions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*device_count)(unsigned*) = nullptr;
  int (*handle_by_index)(unsigned, Handle*) = nullptr;
  int (*name)(Handle, char*, unsigned) = nullptr;
  int (*uuid)(Handle, char*, unsigned) = nullptr;

  int (*driver_version)(char*, unsigned) = nullptr;
  int (*handle_by_uuid)(const char*, Handle*) = nullptr;
  int (*pci_info)(Handle, PciInfo*) = nullptr;
  int (*architecture)(Handle, unsigned*) = nullptr;
  int (*power_usage)(Handle, unsigned*) = nullptr;
  int (*total_energy)(Handle, unsigned long long*) = nullptr;
  int (*field_values)(Handle, int, FieldValue*) = nullptr;
  int (*samples)(Handle, int, unsigned long long, int*, unsigned*, Sample*) = nullptr;
  int (*temperature)(Handle, int, unsigned*) = nullptr;
  int (*temperature_v)(Handle, Temperature*) = nullptr;
  int (*clock_info)(Handle, int, unsigned*) = nullptr;
  int (*max_clock_info)(Handle, int, unsigned*) = nullptr;
  int (*supported_memory_clocks)(Handle, unsigned*, unsigned*) = nullptr;
  int (*supported_graphics_clocks)(Handle, unsigned, unsigned*, unsigned*) = nullptr;
  int (*event_reasons)(Handle, unsigned long long*) = nullptr;
  int (*compute_processes)(Handle, unsigned*, ProcessInfo*) = nullptr;
  int (*power_limit)(Handle, unsigned*) = nullptr;
  int (*default_power_limit)(Handle, unsigned*) = nullptr;
  int (*enforced_power_limit)(Handle, unsigned*) = nullptr;
  int (*power_limit_range)(Handle, unsigned*, unsigned*) = nullptr;
  int (*persistence_mode)(Handle, int*) = nullptr;
  int (*application_clock)(Handle, int, unsigned*) = nullptr;
  int (*default_application_clock)(Handle, int, unsigned*) = nullptr;

  int (*set_gpu_locked_clocks)(Handle, unsigned, unsigned) = nullptr;
  int (*reset_gpu_locked_clocks)(Handle) = nullptr;
  int (*set_memory_locked_clocks)(Handle, unsigned, unsigned) = nullptr;
  int (*reset_memory_locked_clocks)(Handle) = nullptr;
  int (*set_application_clocks)(Handle, unsigned, unsigned) = nullptr;
  int (*reset_application_clocks)(Handle) = nullptr;
  int (*set_power_limit)(Handle, unsigned) = nullptr;
  int (*set_persistence_mode)(Handle, int) = nullptr;
};

/// A board as NVML names it. The NVML index is not the CUDA index: meet by UUID or PCI address.
struct Board {
  unsigned index = 0;
  Handle handle = nullptr;
  std::string name, uuid;
  std::string pci_address;  ///< normalised
  unsigned architecture = 0;
};

/// The library, initialised; shut down when the last owner lets go.
class Library {
 public:
  /// From ERGOTUNE_NVML, else libnvidia-ml.so.1; nullptr with the reason when it is not there or does not
  /// start. Owners share one instance per library file.
  static std::shared_ptr<const Library> open(std::string* reason = nullptr);
  /// From this file or name ("" for libnvidia-ml.so.1), whatever the environment says: for the root helper.
  static std::shared_ptr<const Library> open_file(const std::string& file, std::string* reason = nullptr);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Functions& functions() const { return functions_; }
  const Functions* operator->() const { return &functions_; }
  std::string error(int code) const;
  const std::string& driver_version() const { return driver_version_; }
  /// Every board that answers, in NVML's order.
  const std::vector<Board>& boards() const { return boards_; }
  /// By index ("0"), UUID ("GPU-...", a unique beginning is enough) or PCI address; nullptr when there is
  /// none.
  const Board* find(const std::string& name) const;
  /// By UUID, else by PCI address (any spelling); nullptr when neither is known here.
  const Board* match(const std::string& uuid, const std::string& pci_address) const;

 private:
  explicit Library(DynamicLibrary library);
  bool start(std::string* reason);
  DynamicLibrary library_;
  Functions functions_;
  std::string driver_version_;
  std::vector<Board> boards_;
  bool started_ = false;
};

}  // namespace ergotune::nvml
