// Running kernels through CUDA's driver API: the primary context (shared with libraries in the process), one
// stream.
#include <algorithm>
#include <utility>

#include "device/backend.hpp"
#include "device/cuda_kernel.hpp"

namespace ergotune::cuda {
namespace {

CUdeviceptr address_of(const Buffer& buffer) { return static_cast<const CudaBuffer&>(buffer).address(); }

class CudaMarker : public Marker {
 public:
  CudaMarker() { check(api().cuEventCreate(&event_, kEventDefault), DeviceFault::runtime, "cuEventCreate"); }
  CudaMarker(const CudaMarker&) = delete;
  CudaMarker& operator=(const CudaMarker&) = delete;
  ~CudaMarker() override { api().cuEventDestroy(event_); }
  CUevent get() const { return event_; }

 private:
  CUevent event_ = nullptr;
};

CUevent event_of(const Marker& marker) { return static_cast<const CudaMarker&>(marker).get(); }

/// The primary context, retained and current in this thread; released with the object.
class PrimaryContext {
 public:
  explicit PrimaryContext(CUdevice device) : device_(device) {
    CUcontext context = nullptr;
    check(api().cuDevicePrimaryCtxRetain(&context, device), DeviceFault::runtime, "cuDevicePrimaryCtxRetain");
    if (const CUresult code = api().cuCtxSetCurrent(context); code != CUDA_SUCCESS) {
      api().cuDevicePrimaryCtxRelease(device);
      check(code, DeviceFault::runtime, "cuCtxSetCurrent");
    }
  }
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;
  ~PrimaryContext() { api().cuDevicePrimaryCtxRelease(device_); }

 private:
  CUdevice device_;
};

class CudaDevice : public Device {
 public:
  explicit CudaDevice(DeviceEntry entry) : entry_(std::move(entry)), context_(entry_.device) {
    check(api().cuStreamCreate(&stream_, kStreamNonBlocking), DeviceFault::runtime, "cuStreamCreate");
  }
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;
  ~CudaDevice() override { api().cuStreamDestroy(stream_); }

  const DeviceInfo& info() const override { return entry_.info; }
  std::unique_ptr<Compiler> make_compiler() override {
    return device::make_cuda_compiler_for(entry_.info.id);
  }

  std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return std::make_unique<CudaBuffer>(bytes); }
  void write(Buffer& buffer, std::span<const std::byte> data) override {
    if (data.empty()) return;
    check(api().cuMemcpyHtoDAsync(address_of(buffer), data.data(), data.size(), stream_),
          DeviceFault::runtime, "copy to the device");
    synchronise();  // the caller's memory may go away now
  }
  void read(const Buffer& buffer, std::span<std::byte> data) override {
    if (data.empty()) return;
    check(api().cuMemcpyDtoHAsync(data.data(), address_of(buffer), data.size(), stream_),
          DeviceFault::runtime, "copy from the device");
    synchronise();
  }
  void copy(Buffer& to, const Buffer& from) override {
    const std::size_t bytes = std::min(to.bytes(), from.bytes());
    if (bytes > 0)
      check(api().cuMemcpyDtoDAsync(address_of(to), address_of(from), bytes, stream_), DeviceFault::runtime,
            "copy on the device");
  }
  void fill(Buffer& buffer, unsigned char byte) override {
    if (buffer.bytes() > 0)
      check(api().cuMemsetD8Async(address_of(buffer), byte, buffer.bytes(), stream_), DeviceFault::runtime,
            "fill");
  }

  std::unique_ptr<LoadedKernel> load(const Binary& binary) override {
    return std::make_unique<CudaKernel>(entry_, binary);
  }
  void launch(LoadedKernel& kernel, std::size_t count) override {
    static_cast<CudaKernel&>(kernel).launch(stream_, count);
  }

  std::unique_ptr<Marker> make_marker() override { return std::make_unique<CudaMarker>(); }
  void record(Marker& marker) override {
    check(api().cuEventRecord(event_of(marker), stream_), DeviceFault::runtime, "cuEventRecord");
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
  void* native_queue() override { return stream_; }
  void synchronise() override {
    check(api().cuStreamSynchronize(stream_), DeviceFault::runtime, "the kernel failed while it ran");
  }

 private:
  DeviceEntry entry_;
  PrimaryContext context_;
  CUstream stream_ = nullptr;
};

}  // namespace
}  // namespace ergotune::cuda

namespace ergotune::device {

std::unique_ptr<Device> open_cuda(const std::string& id) {
  return std::make_unique<cuda::CudaDevice>(cuda::find_device(id));
}

}  // namespace ergotune::device
