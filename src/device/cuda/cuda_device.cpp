// Runs kernels through CUDA's driver API or the HIP runtime: the primary context (shared with libraries in the
// process), a main stream and additional ones.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "device/backend.hpp"
#include "device/cuda/cuda_kernel.hpp"
#include "device/cuda/cuda_platform.hpp"

namespace ergotune::cuda {
namespace {

CUdeviceptr address_of(const Buffer& buffer) { return static_cast<const CudaBuffer&>(buffer).address(); }

class CudaMarker : public Marker, DriverObject {
 public:
  explicit CudaMarker(const Api& api) : DriverObject(api) {
    check(api.cuEventCreate(&event_, kEventDefault), DeviceFault::runtime, "cuEventCreate");
  }
  ~CudaMarker() override { api().cuEventDestroy(event_); }
  CUevent get() const { return event_; }

 private:
  CUevent event_ = nullptr;
};

class CudaGraph : public LaunchGraph, DriverObject {
 public:
  CudaGraph(const Api& api, CUgraphExec graph) : DriverObject(api), graph_(graph) {}
  ~CudaGraph() override { api().cuGraphExecDestroy(graph_); }
  CUgraphExec get() const { return graph_; }

 private:
  CUgraphExec graph_;
};

CUevent event_of(const Marker& marker) { return static_cast<const CudaMarker&>(marker).get(); }

/// The primary context, retained and current in this thread; released with the object, which also restores the context
/// that was current before.
class PrimaryContext : DriverObject {
 public:
  PrimaryContext(const Api& api, CUdevice device) : DriverObject(api), device_(device) {
    api.cuCtxGetCurrent(&before_);
    check(api.cuDevicePrimaryCtxRetain(&context_, device), DeviceFault::runtime, "cuDevicePrimaryCtxRetain");
    if (const CUresult code = api.cuCtxSetCurrent(context_); code != CUDA_SUCCESS) {
      api.cuDevicePrimaryCtxRelease(device);
      check(code, DeviceFault::runtime, "cuCtxSetCurrent");
    }
  }
  ~PrimaryContext() {
    if (before_ && before_ != context_) api().cuCtxSetCurrent(before_);
    api().cuDevicePrimaryCtxRelease(device_);
  }

 private:
  CUdevice device_;
  CUcontext context_ = nullptr, before_ = nullptr;
};

/// Returns the driver's value of a priority; nullopt for the normal one, and if the driver has no priorities.
std::optional<int> native_priority(const Api& api, QueueOptions::Priority priority) {
  using Priority = QueueOptions::Priority;
  int least = 0, greatest = 0;
  if (priority == Priority::normal || !api.cuStreamCreateWithPriority || !api.cuCtxGetStreamPriorityRange ||
      api.cuCtxGetStreamPriorityRange(&least, &greatest) != CUDA_SUCCESS)
    return std::nullopt;
  return priority == Priority::high ? greatest : least;
}

CUstream make_stream(const Api& api, const QueueOptions& options, const GreenContext* part = nullptr) {
  const std::optional<int> priority = native_priority(api, options.priority);
  if (part) return part->make_stream(priority.value_or(0));
  CUstream stream = nullptr;
  if (priority) {
    api.check(api.cuStreamCreateWithPriority(&stream, kStreamNonBlocking, *priority), DeviceFault::runtime,
              "cuStreamCreateWithPriority");
  } else {
    api.check(api.cuStreamCreate(&stream, kStreamNonBlocking), DeviceFault::runtime, "cuStreamCreate");
  }
  return stream;
}

class CudaQueue : public Queue, DriverObject {
 public:
  /// `all`: the device's list of existing queues; `part`: the partition to which the stream's kernels are restricted,
  /// or null.
  CudaQueue(const Api& api, CUstream stream, bool owned, std::vector<CudaQueue*>& all,
            std::shared_ptr<const GreenContext> part = nullptr, bool masked = false)
      : DriverObject(api), part_(std::move(part)), stream_(stream), owned_(owned), masked_(masked), all_(all) {
    all_.push_back(this);
  }
  ~CudaQueue() override {
    std::erase(all_, this);
    if (owned_) api().cuStreamDestroy(stream_);
  }
  void* native_handle() const override { return stream_; }
  CUstream get() const { return stream_; }
  bool is_part() const { return part_ || masked_; }

 private:
  std::shared_ptr<const GreenContext> part_;  ///< outlives the stream
  CUstream stream_;
  bool owned_, masked_;
  std::vector<CudaQueue*>& all_;
};

class CudaPinnedMemory : public PinnedMemory, DriverObject {
 public:
  CudaPinnedMemory(const Api& api, void* memory) : DriverObject(api), memory_(memory) {}
  ~CudaPinnedMemory() override { api().cuMemHostUnregister(memory_); }

 private:
  void* memory_;
};

class CudaDevice : public Device, DriverObject {
 public:
  CudaDevice(const Api& api, DeviceEntry entry)
      : DriverObject(api),
        entry_(std::move(entry)),
        context_(api, entry_.device),
        main_(api, make_stream(api, {}), true, queues_) {}

  const DeviceInfo& info() const override { return entry_.info; }
  std::unique_ptr<Compiler> make_compiler() override {
    return device::backend_named(entry_.info.backend).open_compiler(entry_.info.id);
  }

  std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return std::make_unique<CudaBuffer>(api(), bytes); }
  std::unique_ptr<Buffer> view(Buffer& whole, std::size_t offset, std::size_t bytes) override {
    return std::make_unique<CudaBuffer>(api(), address_of(whole) + offset, bytes);
  }
  std::unique_ptr<Buffer> wrap_buffer(void* native, std::size_t bytes) override {
    const auto address = reinterpret_cast<CUdeviceptr>(native);
    int ordinal = -1;
    if (api().cuPointerGetAttribute(&ordinal, POINTER_DEVICE_ORDINAL, address) != CUDA_SUCCESS)
      throw UserError(fmt::format("there is no memory of {} at {:#x}", entry_.info.id, address));
    if (ordinal != entry_.device)
      throw UserError(
          fmt::format("its memory is on {}:{}, and this is {}", entry_.info.backend, ordinal, entry_.info.id));
    return std::make_unique<CudaBuffer>(api(), address, bytes);
  }
  void settle() override { check(api().cuCtxSynchronize(), DeviceFault::runtime, "waiting for the device"); }
  void write(Buffer& buffer, std::span<const std::byte> data, std::size_t offset) override {
    if (data.empty()) return;
    check(api().cuMemcpyHtoDAsync(address_of(buffer) + offset, data.data(), data.size(), main_.get()),
          DeviceFault::runtime, "copy to the device");
    wait_for(main_);  // the caller may free its memory after the call
  }
  void read(const Buffer& buffer, std::span<std::byte> data, std::size_t offset) override {
    if (data.empty()) return;
    check(api().cuMemcpyDtoHAsync(data.data(), address_of(buffer) + offset, data.size(), main_.get()),
          DeviceFault::runtime, "copy from the device");
    wait_for(main_);
  }
  std::unique_ptr<PinnedMemory> pin(std::span<std::byte> memory) override {
    // Failure is not an error: locked memory is limited, and copies are then slower.
    if (memory.empty() || !api().cuMemHostRegister || !api().cuMemHostUnregister ||
        api().cuMemHostRegister(memory.data(), memory.size(), 0) != CUDA_SUCCESS)
      return nullptr;
    return std::make_unique<CudaPinnedMemory>(api(), memory.data());
  }
  void copy(Buffer& to, const Buffer& from, Queue* queue) override {
    const std::size_t bytes = std::min(to.bytes(), from.bytes());
    if (bytes > 0)
      check(api().cuMemcpyDtoDAsync(address_of(to), address_of(from), bytes, stream_of(queue)), DeviceFault::runtime,
            "copy on the device");
  }
  void fill(Buffer& buffer, unsigned char byte, Queue* queue) override {
    if (buffer.bytes() > 0)
      check(api().cuMemsetD8Async(address_of(buffer), byte, buffer.bytes(), stream_of(queue)), DeviceFault::runtime,
            "fill");
  }

  std::unique_ptr<LoadedKernel> load(const Binary& binary) override {
    return std::make_unique<CudaKernel>(entry_, std::make_shared<const CudaModule>(api(), binary));
  }
  void launch(LoadedKernel& kernel, std::size_t count, Queue* queue) override {
    // Kernels recorded on the main stream would run on the complete device.
    const bool one_by_one = recording_ || (queue && static_cast<const CudaQueue*>(queue)->is_part());
    static_cast<CudaKernel&>(kernel).launch(stream_of(queue), count, one_by_one ? nullptr : main_.get());
  }
  std::unique_ptr<LaunchGraph> record_graph(const std::function<void()>& work) override {
    recording_ = true;
    const CUgraphExec graph = capture_graph(api(), main_.get(), work);
    recording_ = false;
    return graph ? std::make_unique<CudaGraph>(api(), graph) : nullptr;
  }
  void launch_graph(LaunchGraph& graph) override {
    check(api().cuGraphLaunch(static_cast<CudaGraph&>(graph).get(), main_.get()), DeviceFault::launch, "cuGraphLaunch");
  }

  Queue& main_queue() override { return main_; }
  std::unique_ptr<Queue> make_queue(const QueueOptions& options) override {
    if (options.multiprocessors > 0 && entry_.info.backend == "hip")
      return std::make_unique<CudaQueue>(api(), masked_stream(options), true, queues_, nullptr, true);
    std::shared_ptr<const GreenContext> part;
    if (options.multiprocessors > 0) part = parts_.part(options.first_multiprocessor, options.multiprocessors);
    const CUstream stream = make_stream(api(), options, part.get());
    return std::make_unique<CudaQueue>(api(), stream, true, queues_, std::move(part));
  }
  std::unique_ptr<Queue> wrap_queue(void* native) override {
    return std::make_unique<CudaQueue>(api(), static_cast<CUstream>(native), false, queues_);
  }
  void wait(Queue& queue, const Marker& marker) override {
    check(api().cuStreamWaitEvent(stream_of(&queue), event_of(marker), 0), DeviceFault::runtime, "cuStreamWaitEvent");
  }

  std::unique_ptr<Marker> make_marker() override { return std::make_unique<CudaMarker>(api()); }
  void record(Marker& marker, Queue* queue) override {
    check(api().cuEventRecord(event_of(marker), stream_of(queue)), DeviceFault::runtime, "cuEventRecord");
  }
  bool passed(const Marker& marker) override {
    const CUresult code = api().cuEventQuery(event_of(marker));
    if (code == CUDA_ERROR_NOT_READY) return false;
    check(code, DeviceFault::runtime, "the kernel failed while it ran");
    return true;
  }
  double seconds_between(const Marker& start, const Marker& stop) override {
    float milliseconds = 0;
    check(api().cuEventElapsedTime(&milliseconds, event_of(start), event_of(stop)), DeviceFault::runtime,
          "cuEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3;
  }
  void synchronise() override {
    for (const CudaQueue* queue : queues_) wait_for(*queue);
  }

 private:
  CUstream stream_of(const Queue* queue) const {
    return queue ? static_cast<const CudaQueue*>(queue)->get() : main_.get();
  }
  /// HIP: creates a stream with one mask bit per CU on which kernels may run. It has no priority.
  CUstream masked_stream(const QueueOptions& options) const {
    const auto whole = static_cast<std::uint64_t>(entry_.info.properties.at("device.multiprocessors").as_integer());
    const std::uint64_t end = std::uint64_t{options.first_multiprocessor} + options.multiprocessors;
    if (entry_.info.properties.at("device.multiprocessor_unit").as_integer() != 1)
      throw DeviceError(DeviceFault::unsupported, "SM partitioning is not available here");
    if (end > whole)
      throw DeviceError(DeviceFault::launch, fmt::format("no kernel can have SMs {} to {}: there are {}",
                                                         options.first_multiprocessor + 1, end, whole));
    std::vector<unsigned> mask((whole + 31) / 32);
    for (std::uint64_t i = options.first_multiprocessor; i < end; ++i) mask[i / 32] |= 1u << i % 32;
    CUstream stream = nullptr;
    check(api().hipExtStreamCreateWithCUMask(&stream, static_cast<unsigned>(mask.size()), mask.data()),
          DeviceFault::unsupported, "hipExtStreamCreateWithCUMask");
    return stream;
  }
  void wait_for(const CudaQueue& queue) const {
    check(api().cuStreamSynchronize(queue.get()), DeviceFault::runtime, "the kernel failed while it ran");
  }

  DeviceEntry entry_;
  PrimaryContext context_;
  SmPartitions parts_{entry_.device};
  std::vector<CudaQueue*> queues_;
  CudaQueue main_;
  bool recording_ = false;
};

}  // namespace

std::unique_ptr<Device> open_device(const Api& api, DeviceEntry entry) {
  return std::make_unique<CudaDevice>(api, std::move(entry));
}

}  // namespace ergotune::cuda

namespace ergotune {

std::string device_of_memory(const void* address) {
  if (!cuda::api().usable() || cuda::api().cuInit(0) != cuda::CUDA_SUCCESS) return {};
  cuda::CUcontext current = nullptr;
  cuda::api().cuCtxGetCurrent(&current);
  std::optional<cuda::PrimaryContext> any;  // the query needs a context, which may be that of any device
  if (!current) any.emplace(cuda::api(), 0);
  int ordinal = -1;
  const auto pointer = reinterpret_cast<cuda::CUdeviceptr>(address);
  if (cuda::api().cuPointerGetAttribute(&ordinal, cuda::POINTER_DEVICE_ORDINAL, pointer) != cuda::CUDA_SUCCESS)
    return {};
  return fmt::format("cuda:{}", ordinal);
}

}  // namespace ergotune

namespace ergotune::device {

std::unique_ptr<Device> open_cuda(const std::string& id) {
  return cuda::open_device(cuda::api(), cuda::find_device(id));
}

}  // namespace ergotune::device
