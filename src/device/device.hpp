// Devices, which compile and run kernels. One interface for cuda (driver API and NVRTC), hip (HIP runtime and hiprtc),
// opencl and host (C, C++ and Fortran in shared objects). Drivers are loaded at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ergotune/argument.hpp"

namespace ergotune {

struct Problem;

struct DeviceInfo {
  /// "cuda:0", "hip:0", "opencl:0:0", "host".
  std::string id;
  std::string name;
  std::string backend;
  /// "GPU-xxxxxxxx-...."; empty if the driver reports none. Identifies the sensors of the device.
  std::string uuid;
  /// "00000000:1b:00.0" in lower case; empty if unknown. Identifies the sensors as well.
  std::string pci_address;
  std::string driver_version;
  /// True if kernels run on the CPU; then compiling and measuring never overlap.
  bool is_cpu = false;
  /// device.max_threads_per_block, device.shared_memory_per_block, device.multiprocessors, device.warp_size,
  /// device.registers_per_block, device.registers_per_multiprocessor, device.shared_memory_per_multiprocessor,
  /// device.max_threads_per_multiprocessor, device.max_blocks_per_multiprocessor, device.l2_bytes,
  /// device.global_memory_bytes, device.compute_capability (major*10+minor), device.name, device.multiprocessor_unit
  /// (number of SMs of which multiples can be reserved for kernels; 0: none can).
  Constants properties;
};

/// Declaration of an argument, as the caller of a function needs it.
struct ArgumentSignature {
  Argument::Kind kind = Argument::Kind::buffer;
  ElementType type = ElementType::float32;
  /// For messages only; may be empty.
  std::string name;
  /// Structure passed by value: name of its type in the source, and its size.
  std::string type_name = {};
  std::size_t bytes = 0;
  Access access = Access::read_write;
};
/// Returns the signature of a kernel's arguments, in order.
std::vector<ArgumentSignature> signature_of(const std::vector<Argument>& arguments);

/// A compilation: the source of one configuration with evaluated macros and options.
struct CompileJob {
  Language language = Language::opencl;
  std::string source;
  std::string source_name;
  std::vector<std::string> include_folders;
  /// Parameters and constants as macros, in a defined order.
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<std::string> options;
  /// Name of the function, or CUDA name expression. Fortran: "name" or "module::name".
  std::string function;
  /// Needed by host languages only, where a wrapper that calls the function is compiled with it.
  std::vector<ArgumentSignature> arguments;
  /// True: count instructions in the machine code, with a disassembler process; false: in the code that the compiler
  /// returns anyway.
  bool disassemble = false;
};

/// Kinds of failures of a configuration during compilation or run. They become a status, unlike ergotune's own errors.
enum class DeviceFault { compile, launch, runtime, timeout, unsupported, out_of_memory };
class DeviceError : public Error {
 public:
  DeviceError(DeviceFault fault, const std::string& message, int native_code = 0)
      : Error(message), fault_(fault), native_code_(native_code) {}
  DeviceFault fault() const { return fault_; }
  int native_code() const { return native_code_; }

 private:
  DeviceFault fault_;
  int native_code_;
};

/// Compiled code without device state, which can be passed from a compile worker to the runner and stored in the cache.
struct Binary {
  std::string bytes;
  /// Name of the function in the code (the lowered name for CUDA C++ templates).
  std::string entry;
  std::string log;
};

/// Compiles for one device without running anything on it; CUDA needs no GPU for that (NVRTC).
class Compiler {
 public:
  virtual ~Compiler() = default;
  /// Throws DeviceError(compile) with the compiler's message.
  virtual Binary compile(const CompileJob& job) = 0;
  /// Identifies everything other than the job that compiled code depends on: compiler version, target architecture.
  virtual std::string identity() const = 0;
};

/// Device memory. Freed with the object unless it belongs to another owner (Device::wrap_buffer, Device::view).
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::size_t bytes() const = 0;
  /// The driver's handle (CUdeviceptr, cl_mem, a plain pointer on the host), for libraries that launch kernels
  /// themselves; nullptr if there is none.
  virtual void* native_handle() const { return nullptr; }
};

/// Host memory that the device accesses directly when it copies (Device::pin).
class PinnedMemory {
 public:
  virtual ~PinnedMemory() = default;
};

struct QueueOptions {
  /// A hint; ignored by devices without priorities.
  enum class Priority { low, normal, high } priority = Priority::normal;
  /// Number of SMs on which kernels run, and the first of them; 0: any SM. Devices support multiples of
  /// device.multiprocessor_unit that start at a multiple of it; a part that ends with the last SM may have any size.
  std::uint32_t multiprocessors = 0, first_multiprocessor = 0;
  friend bool operator==(const QueueOptions&, const QueueOptions&) = default;
};

/// A queue in which launches, copies and markers run in order. Several queues run concurrently if the device supports
/// that; on the host, all work runs when it is queued. Must be destroyed before its device.
class Queue {
 public:
  virtual ~Queue() = default;
  /// The driver's queue (CUstream, cl_command_queue), for libraries that launch kernels themselves; nullptr if there is
  /// none.
  virtual void* native_handle() const { return nullptr; }
};

struct LaunchGeometry {
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared_memory_bytes = 0;
};

/// A kernel argument: a buffer, the bytes of a scalar, or the size of local memory (OpenCL).
struct KernelArgument {
  const Buffer* buffer = nullptr;
  std::vector<std::byte> scalar;
  std::size_t local_bytes = 0;
};

/// A kernel loaded on the device, with its arguments and geometry bound.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  /// Registers per thread, static shared memory and local memory in bytes, maximum threads per block, and spilled
  /// registers; -1: unknown.
  struct Resources {
    int registers = -1, shared_bytes = -1, local_bytes = -1, max_threads_per_block = -1;
    int spilled_registers = -1;
  };
  virtual Resources resources() const = 0;
  virtual void bind(const LaunchGeometry& geometry, const std::vector<KernelArgument>& arguments) = 0;
  /// Returns the same code to be bound to other arguments, without loading it again; nullptr if that is not supported.
  virtual std::unique_ptr<LoadedKernel> another() { return nullptr; }
  /// Whether a launch changes what it reads and the caller does not know of, as an application's function may.
  virtual bool changes_own_inputs() const { return false; }
  /// Whether a launch without reset_own_inputs() before it resets them itself, in the time that is measured.
  virtual bool needs_reset() const { return false; }
  /// Gives that its first contents back; ordered with the launches.
  virtual void reset_own_inputs() {}
  /// What readers of its results should know; empty: nothing.
  virtual std::string remark() const { return {}; }
  /// Number of blocks, as bound, that are resident on one SM, as computed by the driver; nullopt if unknown.
  virtual std::optional<int> resident_blocks() const { return std::nullopt; }
};

/// Consecutive launches of a loaded kernel.
struct LaunchRun {
  LoadedKernel* kernel = nullptr;
  std::size_t count = 1;
};

/// Launches on several queues, recorded by the device to be queued together.
class LaunchGraph {
 public:
  virtual ~LaunchGraph() = default;
};

/// A point in a queue. It is recorded into the queue; its time is known once the device has passed it.
class Marker {
 public:
  virtual ~Marker() = default;
};

/// A device that runs kernels. Not thread-safe; used by one thread. For queue arguments, nullptr means the main queue.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual std::unique_ptr<Compiler> make_compiler() = 0;

  virtual std::unique_ptr<Buffer> allocate(std::size_t bytes) = 0;
  /// Returns a part of a buffer that kernels use as a buffer; the buffer must outlive it and must not be a view.
  /// Offsets that are multiples of 4096 are supported by all devices.
  virtual std::unique_ptr<Buffer> view(Buffer& whole, std::size_t offset, std::size_t bytes);
  /// Returns memory that its owner frees (CUdeviceptr of this device's primary context; cl_mem of this device's
  /// context; a pointer on the host). Throws UserError if this device cannot use it.
  virtual std::unique_ptr<Buffer> wrap_buffer(void* native, std::size_t bytes);
  /// Waits for all work that this process has queued on the device; needed before external memory is used.
  virtual void settle() { synchronise(); }
  /// Both use the main queue and wait for it, but not for other queues.
  virtual void write(Buffer& buffer, std::span<const std::byte> data, std::size_t offset = 0) = 0;
  virtual void read(const Buffer& buffer, std::span<std::byte> data, std::size_t offset = 0) = 0;
  /// While the result exists, copies to and from `memory` may be faster (page-locked memory on CUDA). Returns nullptr
  /// if pinning is unavailable or has no effect. The memory must outlive the result.
  virtual std::unique_ptr<PinnedMemory> pin(std::span<std::byte> memory);
  /// Copies on the device, queued with the launches; restores inputs without transfers from the host.
  virtual void copy(Buffer& to, const Buffer& from, Queue* queue = nullptr) = 0;
  /// Fills a buffer with a byte, queued with the launches; also used to flush the L2 cache.
  virtual void fill(Buffer& buffer, unsigned char byte, Queue* queue = nullptr) = 0;

  virtual std::unique_ptr<LoadedKernel> load(const Binary& binary) = 0;
  /// Queues `count` launches back to back, and returns without waiting. CUDA runs many launches of short kernels as
  /// graphs.
  virtual void launch(LoadedKernel& kernel, std::size_t count = 1, Queue* queue = nullptr) = 0;

  /// Queues launches of several kernels in order, with little overhead beyond that of the driver.
  virtual void launch_runs(std::span<const LaunchRun> runs, Queue* queue = nullptr);
  /// Records the work that `work` queues on the main queue, and on queues that fork from it and join it again, so that
  /// it can be queued again as one graph. Nothing runs yet. Returns nullptr if the device cannot record.
  virtual std::unique_ptr<LaunchGraph> record_graph(const std::function<void()>& work);
  virtual void launch_graph(LaunchGraph& graph);
  /// Work that is queued between hold() and release() on the main queue, or that waits for it, starts only after
  /// release(), so that kernels on several queues start together. Devices without this feature start it at once.
  virtual void hold() {}
  virtual void release() {}

  virtual Queue& main_queue();
  /// Throws DeviceError(launch) if the SMs cannot be reserved as requested, DeviceError(unsupported) if the device
  /// cannot reserve SMs.
  virtual std::unique_ptr<Queue> make_queue(const QueueOptions& options = {});
  /// Wraps a queue that its owner destroys after this object (CUstream of this device's primary context;
  /// cl_command_queue of this device's context, with profiling enabled if markers need times; the host has none and
  /// accepts any pointer). Throws UserError if this device cannot use it.
  virtual std::unique_ptr<Queue> wrap_queue(void* native);
  /// Work queued on `queue` from now on starts after the device has passed `marker`, which may be in another queue. A
  /// marker that was never recorded counts as passed.
  virtual void wait(Queue& queue, const Marker& marker);

  virtual std::unique_ptr<Marker> make_marker() = 0;
  virtual void record(Marker& marker, Queue* queue = nullptr) = 0;
  /// True once the device has passed the marker; does not block.
  virtual bool passed(const Marker& marker) = 0;
  /// Returns the device time in s between two passed markers. If queues wait for each other, work between two markers
  /// of the main queue counts on whichever queue it ran.
  virtual double seconds_between(const Marker& start, const Marker& stop) = 0;
  /// Waits until all existing queues that were created or wrapped by this device are empty. Throws DeviceError(runtime)
  /// if a kernel faulted.
  virtual void synchronise() = 0;
};

/// Returns the devices that can be opened, best first (cuda, hip, then opencl GPUs, opencl CPUs, host). Does not throw:
/// a driver that cannot be loaded has no devices. `notes`, if given, receives one line per unavailable backend.
std::vector<DeviceInfo> list_devices(std::vector<std::string>* notes = nullptr);
/// Returns the id of the device ("cuda:1") that owns a memory address; empty if it is unknown to all drivers.
std::string device_of_memory(const void* address);
/// Opens a device by id ("cuda:0", "cuda:GPU-<uuid>", "opencl", "opencl:P:D", "host", "": the best). Throws UserError
/// that lists the available devices. `for_problem` restricts "" to devices that compile one of the problem's languages.
std::unique_ptr<Device> open_device(const std::string& id, const Problem* for_problem = nullptr);
/// Returns the devices that a text names: an id as above, or several separated by commas, each a device or all devices
/// of a backend ("cuda:0,cuda:1", "cuda:all"). Throws UserError for a device that does not exist or is named twice.
std::vector<DeviceInfo> devices_named(const std::string& text, const Problem* for_problem = nullptr);
/// True if a text may name several devices.
bool names_several_devices(const std::string& text);
/// Groups devices of one kind (model, limits, driver), whose results may be compared, in the given order.
std::vector<std::vector<DeviceInfo>> by_kind(const std::vector<DeviceInfo>& devices);
/// Opens a compiler for a device id. "cuda:sm_90" and "hip:gfx90a" compile without a GPU.
std::unique_ptr<Compiler> open_compiler(const std::string& id);

}  // namespace ergotune
