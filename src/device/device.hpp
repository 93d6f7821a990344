// Where kernels compile and run. One interface over cuda (driver API and NVRTC), hip (HIP's run time and
// hiprtc), opencl and host (C, C++ and Fortran in shared objects). Drivers are opened at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"

namespace ergotune {

struct DeviceInfo {
  /// "cuda:0", "hip:0", "opencl:0:0", "host".
  std::string id;
  std::string name;
  std::string backend;
  /// "GPU-xxxxxxxx-...." where the driver gives one: how a device meets its sensors.
  std::string uuid;
  /// "00000000:1b:00.0" in lower case where known: the other way they meet.
  std::string pci_address;
  std::string driver_version;
  /// True when kernels run on the CPU: then compiling and measuring never overlap.
  bool is_cpu = false;
  /// device.max_threads_per_block, device.shared_memory_per_block, device.multiprocessors, device.warp_size,
  /// device.registers_per_block, device.registers_per_multiprocessor, device.shared_memory_per_multiprocessor,
  /// device.max_threads_per_multiprocessor, device.max_blocks_per_multiprocessor, device.l2_bytes,
  /// device.global_memory_bytes, device.compute_capability (major*10+minor), device.name, device.multiprocessor_unit
  /// (in multiples of which kernels can have multiprocessors for themselves; 0: not at all).
  Constants properties;
};

/// What the caller of a function must know of one of its arguments.
struct ArgumentSignature {
  Argument::Kind kind = Argument::Kind::buffer;
  ElementType type = ElementType::float32;
  /// For messages only; empty where it has none.
  std::string name;
  /// A structure by value: its type's name in the source, and its size.
  std::string type_name = {};
  std::size_t bytes = 0;
};
/// The signature of a kernel's arguments, in their order.
std::vector<ArgumentSignature> signature_of(const std::vector<Argument>& arguments);

/// What is to be compiled: one configuration's source with its macros and options already worked out.
struct CompileJob {
  Language language = Language::opencl;
  std::string source;
  std::string source_name;
  std::vector<std::string> include_folders;
  /// Parameters and constants as macros, in a fixed order.
  std::vector<std::pair<std::string, std::string>> defines;
  std::vector<std::string> options;
  /// Function, or CUDA name expression. Fortran: "name" or "module::name".
  std::string function;
  /// Host languages need it: the call itself is compiled along with the function. Others leave it unused.
  std::vector<ArgumentSignature> arguments;
  /// Instructions are to be counted in the machine code, by a disassembler that is started for it; else in what the
  /// compiler gives anyway.
  bool disassemble = false;
};

/// A configuration's failure while compiling or running, kept apart from the tool's own errors: it becomes a status.
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

/// Compiled code, free of any device state: it travels from a compile worker to the runner and into the disk cache.
struct Binary {
  std::string bytes;
  /// Function to look up in it (the lowered name for CUDA C++ templates).
  std::string entry;
  std::string log;
};

/// Compiles for one device without running anything on it; for CUDA no GPU is needed (NVRTC).
class Compiler {
 public:
  virtual ~Compiler() = default;
  /// Throws DeviceError(compile) with the compiler's words.
  virtual Binary compile(const CompileJob& job) = 0;
  /// What compiled code depends on besides its job: compiler version, target architecture.
  virtual std::string identity() const = 0;
};

/// Device memory; freed with the object unless it is external (Device::wrap_buffer,
/// Device::view).
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual std::size_t bytes() const = 0;
  /// The driver's own handle (CUdeviceptr, cl_mem, a plain pointer on the host), for libraries that launch
  /// kernels themselves; nullptr where there is none.
  virtual void* native_handle() const { return nullptr; }
};

/// Host memory that a device's copies go to directly (Device::pin).
class PinnedMemory {
 public:
  virtual ~PinnedMemory() = default;
};

struct QueueOptions {
  /// A hint: devices without priorities take no notice.
  enum class Priority { low, normal, high } priority = Priority::normal;
  /// Kernels run on so many multiprocessors, from the given one on, and on no others; 0: wherever there is room.
  /// Devices give whole multiples of device.multiprocessor_unit, from a multiple on; a part that ends with the last one
  /// may be any.
  std::uint32_t multiprocessors = 0, first_multiprocessor = 0;
  friend bool operator==(const QueueOptions&, const QueueOptions&) = default;
};

/// Where launches, copies and markers run in order. Several queues run side by side where the device can; on
/// the host everything runs where it is queued. Ends before its device.
class Queue {
 public:
  virtual ~Queue() = default;
  /// The driver's own queue (CUstream, cl_command_queue), for libraries that launch kernels themselves;
  /// nullptr where there is none.
  virtual void* native_handle() const { return nullptr; }
};

struct LaunchGeometry {
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
  std::uint32_t shared_memory_bytes = 0;
};

/// One kernel argument: a buffer, raw scalar bytes, or local memory of a size (OpenCL).
struct KernelArgument {
  const Buffer* buffer = nullptr;
  std::vector<std::byte> scalar;
  std::size_t local_bytes = 0;
};

/// A kernel loaded on the device, with its arguments and geometry bound.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  /// Registers per thread, shared memory (static) and local memory in bytes, threads of the largest block, and
  /// registers that did not fit, where the device tells; else -1.
  struct Resources {
    int registers = -1, shared_bytes = -1, local_bytes = -1, max_threads_per_block = -1;
    int spilled_registers = -1;
  };
  virtual Resources resources() const = 0;
  virtual void bind(const LaunchGeometry& geometry, const std::vector<KernelArgument>& arguments) = 0;
  /// The same code once more, to be bound to other arguments, without loading it again; nullptr where that cannot be.
  virtual std::unique_ptr<LoadedKernel> another() { return nullptr; }
  /// Blocks as bound that one multiprocessor holds at a time, by the driver's own number; nullopt where it does not
  /// tell.
  virtual std::optional<int> resident_blocks() const { return std::nullopt; }
};

/// Launches of a loaded kernel, back to back.
struct LaunchRun {
  LoadedKernel* kernel = nullptr;
  std::size_t count = 1;
};

/// Launches on several queues that a device has taken down as one.
class LaunchGraph {
 public:
  virtual ~LaunchGraph() = default;
};

/// A place on a queue's time line. Recorded into a queue; its time is known once the device has passed it.
class Marker {
 public:
  virtual ~Marker() = default;
};

/// A device that can run kernels. Not thread-safe; one thread drives it. Where a queue is an argument,
/// nullptr means the device's main one.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  virtual std::unique_ptr<Compiler> make_compiler() = 0;

  virtual std::unique_ptr<Buffer> allocate(std::size_t bytes) = 0;
  /// A part of a buffer (not of a view), which must live longer: kernels see it as a buffer of its own. An
  /// offset that is a multiple of 4096 will do on every device.
  virtual std::unique_ptr<Buffer> view(Buffer& whole, std::size_t offset, std::size_t bytes);
  /// Memory that is freed by its owner (CUdeviceptr of this device's primary context; cl_mem
  /// of this device's context; a pointer on the host). Throws UserError where it cannot be used here.
  virtual std::unique_ptr<Buffer> wrap_buffer(void* native, std::size_t bytes);
  /// Waits for everything that this process has queued on the device: before external memory is used.
  virtual void settle() { synchronise(); }
  /// Both use the main queue and wait for it, but for no other.
  virtual void write(Buffer& buffer, std::span<const std::byte> data, std::size_t offset = 0) = 0;
  virtual void read(const Buffer& buffer, std::span<std::byte> data, std::size_t offset = 0) = 0;
  /// While what it returns lives, copies to and from `memory` may be faster (page-locked, for CUDA); nullptr where
  /// that makes no difference or is not to be had. The memory must live longer.
  virtual std::unique_ptr<PinnedMemory> pin(std::span<std::byte> memory);
  /// Copies on the device, queued with the launches: restores inputs without touching the bus.
  virtual void copy(Buffer& to, const Buffer& from, Queue* queue = nullptr) = 0;
  /// Fills with a byte, queued with the launches: also how L2 is flushed.
  virtual void fill(Buffer& buffer, unsigned char byte, Queue* queue = nullptr) = 0;

  virtual std::unique_ptr<LoadedKernel> load(const Binary& binary) = 0;
  /// Queues `count` launches back to back; returns without waiting. CUDA batches long runs of short kernels in graphs.
  virtual void launch(LoadedKernel& kernel, std::size_t count = 1, Queue* queue = nullptr) = 0;

  /// The same for many kernels in their order, at little more than what the driver itself takes for a launch.
  virtual void launch_runs(std::span<const LaunchRun> runs, Queue* queue = nullptr);
  /// What `work` queues on the main queue, and on queues that wait for it and that it waits for in the end, to be
  /// queued again as one. Nothing of it runs yet. nullptr where the device takes nothing down.
  virtual std::unique_ptr<LaunchGraph> record_graph(const std::function<void()>& work);
  virtual void launch_graph(LaunchGraph& graph);
  /// From hold() to release() nothing starts that is queued on the main queue, or waits for it: so that kernels on
  /// several queues start together. Devices that cannot do so start at once.
  virtual void hold() {}
  virtual void release() {}

  virtual Queue& main_queue();
  /// Throws DeviceError(launch) for multiprocessors that cannot be had so, DeviceError(unsupported) where none can.
  virtual std::unique_ptr<Queue> make_queue(const QueueOptions& options = {});
  /// A queue that is ended by its owner after this object (CUstream of this device's primary
  /// context; cl_command_queue of this device's context, with profiling where markers are to tell time; the
  /// host has none and takes any pointer). Throws UserError where it cannot be used here.
  virtual std::unique_ptr<Queue> wrap_queue(void* native);
  /// What is queued on `queue` from now on starts after the device has passed `marker`, which another queue
  /// may hold. A marker that was never recorded is passed.
  virtual void wait(Queue& queue, const Marker& marker);

  virtual std::unique_ptr<Marker> make_marker() = 0;
  virtual void record(Marker& marker, Queue* queue = nullptr) = 0;
  /// True once the device has passed the marker; does not block.
  virtual bool passed(const Marker& marker) = 0;
  /// Seconds of device time between two passed markers. Where queues wait for each other, the work between
  /// two markers of the main queue counts wherever it ran.
  virtual double seconds_between(const Marker& start, const Marker& stop) = 0;
  /// Waits until every queue is empty that was made or wrapped here and still lives. Throws
  /// DeviceError(runtime) when a kernel faulted.
  virtual void synchronise() = 0;
};

/// Every device that can be opened here, best first (cuda, hip, then opencl GPUs, opencl CPUs, host). Never throws: a
/// driver that does not load is simply absent; `notes`, when given, receives one line per backend that is missing.
std::vector<DeviceInfo> list_devices(std::vector<std::string>* notes = nullptr);
/// The device of this process's drivers that an address is on ("cuda:1"); empty where none knows it.
std::string device_of_memory(const void* address);
/// Opens by id ("cuda:0", "cuda:GPU-<uuid>", "opencl", "opencl:P:D", "host", "" for the best); throws UserError
/// naming what there is. `for_problem` makes the choice of "" respect the languages a problem has sources for.
std::unique_ptr<Device> open_device(const std::string& id, const Problem* for_problem = nullptr);
/// The devices that a text names: one as above, or several with commas, each a device or all of a backend
/// ("cuda:0,cuda:1", "cuda:all"). Throws UserError for one that there is not and for one that is named twice.
std::vector<DeviceInfo> devices_named(const std::string& text, const Problem* for_problem = nullptr);
/// Whether a text names several devices, or may.
bool names_several_devices(const std::string& text);
/// Those of one kind together (model, limits, driver): results from them may be compared. In the order given.
std::vector<std::vector<DeviceInfo>> by_kind(const std::vector<DeviceInfo>& devices);
/// A compiler for a device id that needs no driver where that is possible: "cuda:sm_90" and "hip:gfx90a" compile
/// without a GPU.
std::unique_ptr<Compiler> open_compiler(const std::string& id);

}  // namespace ergotune
