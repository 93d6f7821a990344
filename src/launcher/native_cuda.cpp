// CUDA and HIP: modules are loaded into the application's current context, and launched on its stream.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "device/cuda/cuda_kernel.hpp"
#include "device/hip/hip_api.hpp"
#include "ergotune/error.hpp"
#include "launcher/native.hpp"

namespace ergotune::launcher {
namespace {

using namespace cuda;

constexpr std::size_t kPlainShared = 48 * 1024;
constexpr std::size_t kMostArguments = 128;

class CudaCode : public Code, DriverObject {
 public:
  CudaCode(const Api& api, CUcontext context, const Binary& binary)
      : DriverObject(api),
        context_(context),
        module_(std::make_unique<CudaModule>(api, binary)),
        function_(module_->function()) {}
  ~CudaCode() override {
    // A module must be unloaded in its own context, which need not be current in the thread that closes the kernel.
    CUcontext before = nullptr;
    api().cuCtxGetCurrent(&before);
    if (before == context_) return;
    if (api().cuCtxSetCurrent(context_) != CUDA_SUCCESS) {
      (void)module_.release();  // the context was destroyed with its modules
      return;
    }
    module_.reset();
    api().cuCtxSetCurrent(before);
  }

  void allow(const LaunchPlan& plan) override {
    if (plan.passed.size() > kMostArguments)
      throw DeviceError(DeviceFault::launch, "a kernel of so many arguments is not launched");
    const std::size_t shared = shared_of(plan);
    const std::lock_guard lock(mutex_);
    if (shared <= std::max(kPlainShared, allowed_)) return;
    check(api().cuFuncSetAttribute(function_, FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared)),
          DeviceFault::launch, "shared memory beyond 48 KiB");
    allowed_ = shared;
  }

  int launch(const LaunchPlan& plan, void* queue, const ergotune_argument* arguments) override {
    std::array<void*, kMostArguments> pointers;
    std::size_t count = 0;
    for (const PassedArgument& passed : plan.passed)
      if (!passed.local) pointers[count++] = const_cast<void*>(arguments[passed.position].address);
    const LaunchGeometry& g = plan.geometry;
    return api().cuLaunchKernel(function_, g.grid[0], g.grid[1], g.grid[2], g.block[0], g.block[1], g.block[2],
                                static_cast<unsigned>(shared_of(plan)), static_cast<CUstream>(queue), pointers.data(),
                                nullptr);
  }

 private:
  static std::size_t shared_of(const LaunchPlan& plan) {
    std::size_t bytes = plan.geometry.shared_memory_bytes;
    for (const PassedArgument& passed : plan.passed) bytes += passed.local_bytes;
    return bytes;
  }
  CUcontext context_;
  std::unique_ptr<CudaModule> module_;
  CUfunction function_;
  std::mutex mutex_;
  std::size_t allowed_ = 0;
};

class CudaStopwatch : public Stopwatch, DriverObject {
 public:
  CudaStopwatch(const Api& api, const Native& native, void* queue)
      : DriverObject(api), native_(native), queue_(queue) {}
  ~CudaStopwatch() override {
    for (const CUevent event : events_) api().cuEventDestroy(event);
  }
  void mark() override {
    CUevent event = nullptr;
    if (api().cuEventCreate(&event, 0) != CUDA_SUCCESS) return;
    events_.push_back(event);
    api().cuEventRecord(event, static_cast<CUstream>(queue_));
  }
  void finish(std::function<void()> done) override { native_.when_reached(queue_, std::move(done)); }
  std::optional<double> seconds(std::size_t from, std::size_t to) const override {
    float milliseconds = 0;
    if (std::max(from, to) >= events_.size() ||
        api().cuEventElapsedTime(&milliseconds, events_[from], events_[to]) != CUDA_SUCCESS)
      return std::nullopt;
    return milliseconds / 1e3;
  }

 private:
  const Native& native_;
  void* queue_;
  std::vector<CUevent> events_;
};

class CudaCopy : public BufferCopy, DriverObject {
 public:
  CudaCopy(const Api& api, std::size_t bytes) : DriverObject(api), memory_(api, bytes), address_(memory_.address()) {}
  const void* handle() const override { return &address_; }
  bool copy_from(void* queue, const void* buffer) override {
    const CUdeviceptr from = *static_cast<const CUdeviceptr*>(buffer);
    CUdeviceptr base = 0;
    std::size_t size = 0;
    if (from == 0 || !api().cuMemGetAddressRange || api().cuMemGetAddressRange(&base, &size, from) != CUDA_SUCCESS ||
        size - (from - base) < memory_.bytes())
      return false;
    return api().cuMemcpyDtoDAsync(address_, from, memory_.bytes(), static_cast<CUstream>(queue)) == CUDA_SUCCESS;
  }
  std::vector<std::byte> read() const override {
    constexpr unsigned kNonBlocking = 1;
    std::vector<std::byte> bytes(memory_.bytes());
    CUstream stream = nullptr;
    check(api().cuStreamCreate(&stream, kNonBlocking), DeviceFault::runtime, "cuStreamCreate");
    const CUresult copied = api().cuMemcpyDtoHAsync(bytes.data(), address_, bytes.size(), stream);
    const CUresult waited = api().cuStreamSynchronize(stream);
    api().cuStreamDestroy(stream);
    check(copied, DeviceFault::runtime, "copy from the device");
    check(waited, DeviceFault::runtime, "waiting for the stream");
    return bytes;
  }

 private:
  CudaBuffer memory_;
  CUdeviceptr address_;
};

class CudaNative : public Native {
 public:
  using FindDevice = DeviceEntry (*)(const std::string&);
  CudaNative(const Api& api, std::string backend, FindDevice find)
      : api_(api), backend_(std::move(backend)), find_(find) {
    api.cuInit(0);
  }

  Place place_of(void*) const override {
    CUcontext context = nullptr;
    if (api_.cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context) context = primary();
    return {context, nullptr};
  }
  DeviceInfo device_at(const Place&) const override {
    CUdevice device = 0;
    if (!api_.cuCtxGetDevice)
      throw UserError(
          fmt::format("{} does not report the device of the context (cuCtxGetDevice)", api_.library_name()));
    api_.check(api_.cuCtxGetDevice(&device), DeviceFault::runtime, "cuCtxGetDevice");
    return find_(fmt::format("{}:{}", backend_, device)).info;
  }
  std::shared_ptr<Code> load(const Place& place, const Binary& binary) const override {
    return std::make_shared<CudaCode>(api_, static_cast<CUcontext>(place.context), binary);
  }
  void enter(const Place& place) const override {
    api_.check(api_.cuCtxSetCurrent(static_cast<CUcontext>(place.context)), DeviceFault::runtime, "cuCtxSetCurrent");
  }
  std::string error_text(int code) const override { return api_.error_text(code); }
  bool is_launch_error(int code) const override {
    constexpr int kInvalidConfiguration = 9;
    return code == CUDA_ERROR_INVALID_VALUE || code == kInvalidConfiguration ||
           code == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  }
  bool records(void* queue) const override {
    int status = 0;
    return api_.cuStreamIsCapturing &&
           api_.cuStreamIsCapturing(static_cast<CUstream>(queue), &status) == CUDA_SUCCESS && status != 0;
  }
  void when_reached(void* queue, std::function<void()> call) const override {
    auto kept = std::make_unique<std::function<void()>>(std::move(call));
    const auto run = [](void* given) {
      const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(given));
      (*own)();
    };
    if (api_.cuLaunchHostFunc && api_.cuLaunchHostFunc(static_cast<CUstream>(queue), run, kept.get()) == CUDA_SUCCESS)
      (void)kept.release();
    else
      (*kept)();
  }
  std::vector<std::byte> contents(void* queue, const void* handle) const override {
    const CUdeviceptr address = *static_cast<const CUdeviceptr*>(handle);
    if (address == 0) return {};
    CUdeviceptr base = 0;
    std::size_t size = 0;
    if (!api_.cuMemGetAddressRange)
      throw UserError("this driver does not report the sizes of buffers (cuMemGetAddressRange)");
    api_.check(api_.cuMemGetAddressRange(&base, &size, address), DeviceFault::runtime, "cuMemGetAddressRange");
    std::vector<std::byte> bytes(size - (address - base));
    const auto stream = static_cast<CUstream>(queue);
    api_.check(api_.cuMemcpyDtoHAsync(bytes.data(), address, bytes.size(), stream), DeviceFault::runtime,
               "copy from the device");
    api_.check(api_.cuStreamSynchronize(stream), DeviceFault::runtime, "waiting for the stream");
    return bytes;
  }
  std::unique_ptr<Stopwatch> stopwatch(void* queue) const override {
    return std::make_unique<CudaStopwatch>(api_, *this, queue);
  }
  std::unique_ptr<BufferCopy> buffer_copy(const Place&, std::size_t bytes) const override {
    return std::make_unique<CudaCopy>(api_, bytes);
  }

 private:
  /// Returns the first device's primary context, as CUDA's runtime does in a thread without a context.
  CUcontext primary() const {
    CUcontext context = nullptr;
    if (api_.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || api_.cuCtxSetCurrent(context) != CUDA_SUCCESS)
      throw UserError("no context is current in this thread, and the first device gives none");
    return context;
  }
  const Api& api_;
  std::string backend_;
  FindDevice find_;
};

}  // namespace

const Native& native_cuda() {
  if (!api().usable()) throw UserError("CUDA cannot be used here: " + api().problem());
  static const CudaNative native(api(), "cuda", cuda::find_device);
  return native;
}

const Native& native_hip() {
  if (!hip::api().usable()) throw UserError("HIP cannot be used here: " + hip::api().problem());
  static const CudaNative native(hip::api(), "hip",
                                 [](const std::string& id) -> DeviceEntry { return hip::find_device(id); });
  return native;
}

const Native& driver_access_for(const std::string& backend) {
  if (backend == "cuda") return native_cuda();
  if (backend == "hip") return native_hip();
  if (backend == "opencl") return native_opencl();
  throw UserError(fmt::format("applications launch kernels on cuda, hip and opencl, not on \"{}\"", backend));
}

}  // namespace ergotune::launcher
