// Running kernels through OpenCL: one in-order queue with profiling.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "device/backend.hpp"
#include "device/opencl_program.hpp"

namespace ergotune::opencl {
namespace {

/// Reference-counted handle of a queued command.
class Event {
 public:
  Event() = default;
  /// Takes over the reference.
  explicit Event(cl_event event) : event_(event) {}
  Event(const Event& other) : event_(other.event_) {
    if (event_) api().clRetainEvent(event_);
  }
  Event& operator=(Event other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_) api().clReleaseEvent(event_);
  }
  cl_event get() const { return event_; }
  explicit operator bool() const { return event_ != nullptr; }

  bool complete() const {
    cl_int status = CL_COMPLETE;
    check(api().clGetEventInfo(event_, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
          DeviceFault::runtime, "clGetEventInfo");
    if (status < 0)
      throw DeviceError(DeviceFault::runtime, "the kernel ended with " + error_name(status), status);
    return status == CL_COMPLETE;
  }
  double profile(cl_uint name) const {
    cl_ulong nanoseconds = 0;
    check(api().clGetEventProfilingInfo(event_, name, sizeof nanoseconds, &nanoseconds, nullptr),
          DeviceFault::runtime, "clGetEventProfilingInfo");
    return static_cast<double>(nanoseconds);
  }

 private:
  cl_event event_ = nullptr;
};

class OpenclBuffer : public Buffer {
 public:
  OpenclBuffer(const Context& context, std::size_t bytes) : bytes_(bytes) {
    cl_int code = CL_SUCCESS;
    memory_ = api().clCreateBuffer(context.get(), CL_MEM_READ_WRITE, std::max<std::size_t>(bytes, 1), nullptr,
                                   &code);
    check(code, DeviceFault::out_of_memory, fmt::format("a buffer of {} bytes", bytes).c_str());
  }
  OpenclBuffer(const OpenclBuffer&) = delete;
  OpenclBuffer& operator=(const OpenclBuffer&) = delete;
  ~OpenclBuffer() override { api().clReleaseMemObject(memory_); }
  std::size_t bytes() const override { return bytes_; }
  cl_mem get() const { return memory_; }

 private:
  std::size_t bytes_;
  cl_mem memory_ = nullptr;
};

cl_mem memory_of(const Buffer& buffer) { return static_cast<const OpenclBuffer&>(buffer).get(); }

/// A marker is not a command of its own, which would cost time and has no profile with some drivers: it lies
/// between the last command before it and the first one after it.
struct OpenclMarker : Marker {
  Event before;
  std::shared_ptr<Event> after;  ///< filled when that command is queued
  std::uint64_t sequence = 0;    ///< commands queued before it
};

class OpenclKernel : public LoadedKernel {
 public:
  OpenclKernel(Program program, const std::string& entry, cl_device_id device)
      : program_(std::move(program)), device_(device) {
    cl_int code = CL_SUCCESS;
    kernel_ = api().clCreateKernel(program_.get(), entry.c_str(), &code);
    check(code, DeviceFault::compile, "clCreateKernel");
  }
  OpenclKernel(const OpenclKernel&) = delete;
  OpenclKernel& operator=(const OpenclKernel&) = delete;
  ~OpenclKernel() override { api().clReleaseKernel(kernel_); }

  Resources resources() const override {
    Resources found;
    cl_ulong bytes = 0;
    if (info(CL_KERNEL_LOCAL_MEM_SIZE, bytes)) found.shared_bytes = static_cast<int>(bytes);
    if (info(CL_KERNEL_PRIVATE_MEM_SIZE, bytes)) found.local_bytes = static_cast<int>(bytes);
    std::size_t threads = 0;
    if (info(CL_KERNEL_WORK_GROUP_SIZE, threads)) found.max_threads_per_block = static_cast<int>(threads);
    return found;
  }

  void bind(const LaunchGeometry& geometry, const std::vector<KernelArgument>& arguments) override {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto& argument = arguments[i];
      const auto index = static_cast<cl_uint>(i);
      cl_int code = CL_SUCCESS;
      if (argument.buffer) {
        const cl_mem memory = memory_of(*argument.buffer);
        code = api().clSetKernelArg(kernel_, index, sizeof memory, &memory);
      } else if (argument.local_bytes > 0) {
        code = api().clSetKernelArg(kernel_, index, argument.local_bytes, nullptr);
      } else {
        code = api().clSetKernelArg(kernel_, index, argument.scalar.size(), argument.scalar.data());
      }
      if (code != CL_SUCCESS)
        throw DeviceError(DeviceFault::launch,
                          fmt::format("argument {} does not fit the kernel's: {}", i + 1, error_name(code)),
                          code);
    }
    dimensions = 1;
    for (int d = 0; d < 3; ++d) {
      local[d] = geometry.block[d];
      global[d] = std::size_t{geometry.grid[d]} * geometry.block[d];
      if (global[d] > 1) dimensions = static_cast<cl_uint>(d + 1);
    }
  }

  cl_kernel get() const { return kernel_; }
  std::size_t global[3] = {1, 1, 1}, local[3] = {1, 1, 1};
  cl_uint dimensions = 1;

 private:
  template <class T>
  bool info(cl_uint name, T& value) const {
    return api().clGetKernelWorkGroupInfo(kernel_, device_, name, sizeof value, &value, nullptr) ==
           CL_SUCCESS;
  }
  Program program_;
  cl_device_id device_;
  cl_kernel kernel_ = nullptr;
};

class OpenclDevice : public Device {
 public:
  explicit OpenclDevice(DeviceEntry entry) : entry_(std::move(entry)), context_(entry_) {
    cl_int code = CL_SUCCESS;
    queue_ = api().clCreateCommandQueue(context_.get(), entry_.device, CL_QUEUE_PROFILING_ENABLE, &code);
    check(code, DeviceFault::runtime, "clCreateCommandQueue");
  }
  OpenclDevice(const OpenclDevice&) = delete;
  OpenclDevice& operator=(const OpenclDevice&) = delete;
  ~OpenclDevice() override {
    api().clFinish(queue_);
    api().clReleaseCommandQueue(queue_);
  }

  const DeviceInfo& info() const override { return entry_.info; }
  std::unique_ptr<Compiler> make_compiler() override { return device::make_opencl_compiler(entry_.info.id); }

  std::unique_ptr<Buffer> allocate(std::size_t bytes) override {
    return std::make_unique<OpenclBuffer>(context_, bytes);
  }
  void write(Buffer& buffer, std::span<const std::byte> data) override {
    if (data.empty()) return;
    check(api().clEnqueueWriteBuffer(queue_, memory_of(buffer), 1, 0, data.size(), data.data(), 0, nullptr,
                                     nullptr),
          DeviceFault::runtime, "clEnqueueWriteBuffer");
  }
  void read(const Buffer& buffer, std::span<std::byte> data) override {
    if (data.empty()) return;
    check(api().clEnqueueReadBuffer(queue_, memory_of(buffer), 1, 0, data.size(), data.data(), 0, nullptr,
                                    nullptr),
          DeviceFault::runtime, "clEnqueueReadBuffer");
  }
  void copy(Buffer& to, const Buffer& from) override {
    const std::size_t bytes = std::min(to.bytes(), from.bytes());
    if (bytes == 0) return;
    cl_event event = nullptr;
    check(api().clEnqueueCopyBuffer(queue_, memory_of(from), memory_of(to), 0, 0, bytes, 0, nullptr, &event),
          DeviceFault::runtime, "clEnqueueCopyBuffer");
    queued(Event(event));
  }
  void fill(Buffer& buffer, unsigned char byte) override {
    if (buffer.bytes() == 0) return;
    cl_event event = nullptr;
    // a wide pattern where the size allows: PoCL and others fill element by element
    unsigned char pattern[64];
    std::fill(std::begin(pattern), std::end(pattern), byte);
    std::size_t width = 64;
    while (buffer.bytes() % width != 0) width /= 2;
    check(api().clEnqueueFillBuffer(queue_, memory_of(buffer), pattern, width, 0, buffer.bytes(), 0, nullptr,
                                    &event),
          DeviceFault::runtime, "clEnqueueFillBuffer");
    queued(Event(event));
  }

  std::unique_ptr<LoadedKernel> load(const Binary& binary) override {
    const auto portable = PortableProgram::unpack(binary.bytes);
    return std::make_unique<OpenclKernel>(Program::from_portable(context_, entry_.device, portable),
                                          binary.entry, entry_.device);
  }

  void launch(LoadedKernel& loaded, std::size_t count) override {
    const auto& kernel = static_cast<OpenclKernel&>(loaded);
    for (std::size_t i = 0; i < count; ++i) {
      // an event costs time: only the first command after a marker and the last of a run can be asked about
      const bool wanted = i + 1 == count || (i == 0 && pending_);
      cl_event event = nullptr;
      check(api().clEnqueueNDRangeKernel(queue_, kernel.get(), kernel.dimensions, nullptr, kernel.global,
                                         kernel.local, 0, nullptr, wanted ? &event : nullptr),
            DeviceFault::launch, "clEnqueueNDRangeKernel");
      if (wanted)
        queued(Event(event));
      else
        ++sequence_;
    }
    check(api().clFlush(queue_), DeviceFault::runtime, "clFlush");
  }

  std::unique_ptr<Marker> make_marker() override { return std::make_unique<OpenclMarker>(); }
  void record(Marker& marker) override {
    auto& m = static_cast<OpenclMarker&>(marker);
    if (!pending_) pending_ = std::make_shared<Event>();
    m.before = last_;
    m.after = pending_;
    m.sequence = sequence_;
  }
  bool passed(const Marker& marker) override {
    const auto& before = static_cast<const OpenclMarker&>(marker).before;
    return !before || before.complete();
  }
  double seconds_between(const Marker& start, const Marker& stop) override {
    const auto& from = static_cast<const OpenclMarker&>(start);
    const auto& to = static_cast<const OpenclMarker&>(stop);
    if (to.sequence <= from.sequence) return 0;
    return (to.before.profile(CL_PROFILING_COMMAND_END) - from.after->profile(CL_PROFILING_COMMAND_START)) *
           1e-9;
  }
  void synchronise() override {
    // many drivers report a kernel's fault only here, as CL_OUT_OF_RESOURCES
    check(api().clFinish(queue_), DeviceFault::runtime, "the kernel failed while it ran: clFinish");
    if (last_) last_.complete();
  }

 private:
  void queued(Event event) {
    ++sequence_;
    if (pending_) *std::exchange(pending_, nullptr) = event;
    last_ = std::move(event);
  }

  DeviceEntry entry_;
  Context context_;
  cl_command_queue queue_ = nullptr;
  Event last_;                      ///< of the last command queued
  std::shared_ptr<Event> pending_;  ///< markers that wait for their first command after share this
  std::uint64_t sequence_ = 0;      ///< commands queued so far
};

}  // namespace
}  // namespace ergotune::opencl

namespace ergotune::device {

std::unique_ptr<Device> open_opencl(const std::string& id) {
  return std::make_unique<opencl::OpenclDevice>(opencl::find_device(id));
}

}  // namespace ergotune::device
