// Runs kernels through OpenCL: in-order queues with profiling.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "device/backend.hpp"
#include "device/opencl/opencl_program.hpp"
#include "device/opencl/opencl_queue.hpp"

namespace ergotune::opencl {
namespace {

class OpenclBuffer : public Buffer {
 public:
  /// An `owned` memory object is released with the buffer.
  OpenclBuffer(cl_mem memory, std::size_t bytes, bool owned) : bytes_(bytes), memory_(memory), owned_(owned) {}
  OpenclBuffer(const OpenclBuffer&) = delete;
  OpenclBuffer& operator=(const OpenclBuffer&) = delete;
  ~OpenclBuffer() override {
    if (owned_) api().clReleaseMemObject(memory_);
  }
  std::size_t bytes() const override { return bytes_; }
  void* native_handle() const override { return memory_; }
  cl_mem get() const { return memory_; }

 private:
  std::size_t bytes_;
  cl_mem memory_;
  bool owned_;
};

cl_mem memory_of(const Buffer& buffer) { return static_cast<const OpenclBuffer&>(buffer).get(); }
OpenclMarker& marker_of(Marker& marker) { return static_cast<OpenclMarker&>(marker); }
const OpenclMarker& marker_of(const Marker& marker) { return static_cast<const OpenclMarker&>(marker); }

cl_command_queue make_native_queue(const Context& context, cl_device_id device, const QueueOptions& options) {
  using Priority = QueueOptions::Priority;
  cl_int code = CL_SUCCESS;
  if (options.priority != Priority::normal && api().clCreateCommandQueueWithProperties) {
    const cl_properties priority =
        options.priority == Priority::high ? CL_QUEUE_PRIORITY_HIGH_KHR : CL_QUEUE_PRIORITY_LOW_KHR;
    const cl_properties wanted[] = {CL_QUEUE_PROPERTIES, static_cast<cl_properties>(CL_QUEUE_PROFILING_ENABLE),
                                    CL_QUEUE_PRIORITY_KHR, priority, 0};
    const cl_command_queue queue = api().clCreateCommandQueueWithProperties(context.get(), device, wanted, &code);
    if (code == CL_SUCCESS) return queue;  // otherwise the driver does not support priorities
  }
  const cl_command_queue queue = api().clCreateCommandQueue(context.get(), device, CL_QUEUE_PROFILING_ENABLE, &code);
  check(code, DeviceFault::runtime, "clCreateCommandQueue");
  return queue;
}

class OpenclKernel : public LoadedKernel {
 public:
  OpenclKernel(std::shared_ptr<const Program> program, std::string entry, cl_device_id device)
      : program_(std::move(program)), entry_(std::move(entry)), device_(device) {
    cl_int code = CL_SUCCESS;
    kernel_ = api().clCreateKernel(program_->get(), entry_.c_str(), &code);
    check(code, DeviceFault::compile, "clCreateKernel");
  }
  OpenclKernel(const OpenclKernel&) = delete;
  OpenclKernel& operator=(const OpenclKernel&) = delete;
  ~OpenclKernel() override { api().clReleaseKernel(kernel_); }

  std::unique_ptr<LoadedKernel> another() override { return std::make_unique<OpenclKernel>(program_, entry_, device_); }
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
    cl_uint taken = 0;
    if (api().clGetKernelInfo(kernel_, CL_KERNEL_NUM_ARGS, sizeof taken, &taken, nullptr) == CL_SUCCESS &&
        taken != arguments.size())
      throw DeviceError(DeviceFault::launch, fmt::format("the kernel takes {} arguments, and the problem gives {}",
                                                         taken, arguments.size()));
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto& argument = arguments[i];
      const auto index = static_cast<cl_uint>(i);
      cl_int code = CL_SUCCESS;
      if (argument.buffer) {
        const cl_mem memory = memory_of(*argument.buffer);
        code = api().clSetKernelArg(kernel_, index, sizeof memory, &memory);
      } else if (!argument.scalar.empty()) {
        code = api().clSetKernelArg(kernel_, index, argument.scalar.size(), argument.scalar.data());
      } else {  // OpenCL does not allow local memory of size 0
        code = api().clSetKernelArg(kernel_, index, std::max<std::size_t>(argument.local_bytes, 1), nullptr);
      }
      if (code != CL_SUCCESS)
        throw DeviceError(DeviceFault::launch,
                          fmt::format("argument {} does not fit the kernel's: {}", i + 1, error_name(code)), code);
    }
    dimensions = 1;
    for (int d = 0; d < 3; ++d) {
      local[d] = geometry.block[d];
      global[d] = std::size_t{geometry.grid[d]} * geometry.block[d];
      if (global[d] > 1) dimensions = static_cast<cl_uint>(d + 1);
    }
  }

  cl_kernel get() const { return kernel_; }
  /// Returns the error for a block that the driver rejected.
  DeviceError refused_block(cl_int code) const {
    const std::size_t items = local[0] * local[1] * local[2];
    const int most = resources().max_threads_per_block;
    const std::string limit =
        most > 0 && items > static_cast<std::size_t>(most)
            ? fmt::format("{} work items, and this kernel takes {} at most on this device", items, most)
            : std::string("not what a dimension of this device, or the kernel's reqd_work_group_size, allows");
    return DeviceError(
        DeviceFault::launch,
        fmt::format("a block of {} x {} x {} is {}: {}", local[0], local[1], local[2], limit, error_name(code)), code);
  }
  std::size_t global[3] = {1, 1, 1}, local[3] = {1, 1, 1};
  cl_uint dimensions = 1;

 private:
  template <class T>
  bool info(cl_uint name, T& value) const {
    return api().clGetKernelWorkGroupInfo(kernel_, device_, name, sizeof value, &value, nullptr) == CL_SUCCESS;
  }
  std::shared_ptr<const Program> program_;
  std::string entry_;
  cl_device_id device_;
  cl_kernel kernel_ = nullptr;
};

class OpenclDevice : public Device {
 public:
  explicit OpenclDevice(DeviceEntry entry)
      : entry_(std::move(entry)),
        context_(entry_),
        main_(make_native_queue(context_, entry_.device, {}), true, queues_) {}

  const DeviceInfo& info() const override { return entry_.info; }
  std::unique_ptr<Compiler> make_compiler() override { return make_compiler_beside(entry_, context_, built_); }

  std::unique_ptr<Buffer> allocate(std::size_t bytes) override {
    cl_int code = CL_SUCCESS;
    const cl_mem memory =
        api().clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, std::max<std::size_t>(bytes, 1), nullptr, &code);
    check(code, DeviceFault::out_of_memory, fmt::format("a buffer of {} bytes", bytes).c_str());
    return std::make_unique<OpenclBuffer>(memory, bytes, true);
  }
  std::unique_ptr<Buffer> view(Buffer& whole, std::size_t offset, std::size_t bytes) override {
    cl_int code = CL_SUCCESS;
    const cl_buffer_region region{offset, bytes};
    const cl_mem memory =
        api().clCreateSubBuffer(memory_of(whole), CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    check(code, DeviceFault::unsupported, "clCreateSubBuffer");
    return std::make_unique<OpenclBuffer>(memory, bytes, true);
  }
  std::unique_ptr<Buffer> wrap_buffer(void* native, std::size_t bytes) override {
    const auto memory = static_cast<cl_mem>(native);
    cl_context context = nullptr;
    std::size_t size = 0;
    if (api().clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof context, &context, nullptr) != CL_SUCCESS ||
        api().clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof size, &size, nullptr) != CL_SUCCESS ||
        context != context_.get())
      throw UserError("a buffer can be wrapped only when it belongs to the OpenCL context of the device");
    if (bytes > size) throw UserError(fmt::format("the wrapped buffer has {} bytes, not {}", size, bytes));
    return std::make_unique<OpenclBuffer>(memory, bytes, false);
  }
  void write(Buffer& buffer, std::span<const std::byte> data, std::size_t offset) override {
    if (data.empty()) return;
    check(api().clEnqueueWriteBuffer(main_.get(), memory_of(buffer), 1, offset, data.size(), data.data(), 0, nullptr,
                                     nullptr),
          DeviceFault::runtime, "clEnqueueWriteBuffer");
  }
  void read(const Buffer& buffer, std::span<std::byte> data, std::size_t offset) override {
    if (data.empty()) return;
    check(api().clEnqueueReadBuffer(main_.get(), memory_of(buffer), 1, offset, data.size(), data.data(), 0, nullptr,
                                    nullptr),
          DeviceFault::runtime, "clEnqueueReadBuffer");
  }
  void copy(Buffer& to, const Buffer& from, Queue* queue) override {
    const std::size_t bytes = std::min(to.bytes(), from.bytes());
    if (bytes == 0) return;
    cl_event event = nullptr;
    check(api().clEnqueueCopyBuffer(queue_of(queue).get(), memory_of(from), memory_of(to), 0, 0, bytes, 0, nullptr,
                                    &event),
          DeviceFault::runtime, "clEnqueueCopyBuffer");
    queue_of(queue).queued(Event(event));
  }
  void fill(Buffer& buffer, unsigned char byte, Queue* queue) override {
    if (buffer.bytes() == 0) return;
    cl_event event = nullptr;
    // a wide pattern if the size allows it, since PoCL and others fill element by element
    unsigned char pattern[64];
    std::fill(std::begin(pattern), std::end(pattern), byte);
    std::size_t width = 64;
    while (buffer.bytes() % width != 0) width /= 2;
    check(api().clEnqueueFillBuffer(queue_of(queue).get(), memory_of(buffer), pattern, width, 0, buffer.bytes(), 0,
                                    nullptr, &event),
          DeviceFault::runtime, "clEnqueueFillBuffer");
    queue_of(queue).queued(Event(event));
  }

  std::unique_ptr<LoadedKernel> load(const Binary& binary) override {
    std::shared_ptr<const Program> program = built_->take(binary.bytes);
    if (!program)
      program = std::make_shared<const Program>(
          Program::from_portable(context_, entry_.device, PortableProgram::unpack(binary.bytes)));
    return std::make_unique<OpenclKernel>(std::move(program), binary.entry, entry_.device);
  }

  void launch(LoadedKernel& kernel, std::size_t count, Queue* on) override {
    const LaunchRun run{&kernel, count};
    launch_runs({&run, 1}, on);
  }
  void launch_runs(std::span<const LaunchRun> runs, Queue* on) override {
    OpenclQueue& queue = queue_of(on);
    for (const LaunchRun& run : runs)
      enqueue(static_cast<OpenclKernel&>(*run.kernel), run.count, &run == &runs.back(), queue);
    check(api().clFlush(queue.get()), DeviceFault::runtime, "clFlush");
  }
  void hold() override {
    cl_int code = CL_SUCCESS;
    const cl_event gate = api().clCreateUserEvent(context_.get(), &code);
    check(code, DeviceFault::runtime, "clCreateUserEvent");
    gate_.emplace(gate, true);
    main_.wait_for_gate(*gate_);
  }
  void release() override {
    if (!gate_) return;
    const cl_int code = api().clSetUserEventStatus(gate_->get(), CL_COMPLETE);
    gate_.reset();
    check(code, DeviceFault::runtime, "clSetUserEventStatus");
  }

  Queue& main_queue() override { return main_; }
  std::unique_ptr<Queue> make_queue(const QueueOptions& options) override {
    const cl_device_id device =
        options.multiprocessors > 0 ? part(options.first_multiprocessor, options.multiprocessors) : entry_.device;
    return std::make_unique<OpenclQueue>(make_native_queue(context_, device, options), true, queues_);
  }
  std::unique_ptr<Queue> wrap_queue(void* native) override {
    const auto queue = static_cast<cl_command_queue>(native);
    cl_context context = nullptr;
    if (api().clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, nullptr) != CL_SUCCESS ||
        context != context_.get())
      throw UserError("a queue can be wrapped only when it belongs to the OpenCL context of the device");
    return std::make_unique<OpenclQueue>(queue, false, queues_);
  }
  void wait(Queue& queue, const Marker& marker) override { queue_of(&queue).wait(marker_of(marker)); }

  std::unique_ptr<Marker> make_marker() override { return std::make_unique<OpenclMarker>(); }
  void record(Marker& marker, Queue* queue) override { queue_of(queue).record(marker_of(marker)); }
  bool passed(const Marker& marker) override { return marker_of(marker).passed(); }
  double seconds_between(const Marker& start, const Marker& stop) override {
    return opencl::seconds_between(marker_of(start), marker_of(stop));
  }
  void synchronise() override {
    for (OpenclQueue* queue : queues_) queue->finish();
  }

 private:
  /// `ends`: the last run of a call.
  static void enqueue(const OpenclKernel& kernel, std::size_t count, bool ends, OpenclQueue& queue) {
    for (std::size_t i = 0; i < count; ++i) {
      // events cost time: only the first command after a marker and the last of a call are needed
      const bool wanted = (ends && i + 1 == count) || queue.awaited();
      cl_event event = nullptr;
      const cl_int code =
          api().clEnqueueNDRangeKernel(queue.get(), kernel.get(), kernel.dimensions, nullptr, kernel.global,
                                       kernel.local, 0, nullptr, wanted ? &event : nullptr);
      if (code == CL_INVALID_WORK_GROUP_SIZE || code == CL_INVALID_WORK_ITEM_SIZE) throw kernel.refused_block(code);
      check(code, DeviceFault::launch, "clEnqueueNDRangeKernel");
      if (wanted)
        queue.queued(Event(event));
      else
        queue.queued_without_event();
    }
  }
  /// Sub-devices are kept, since a driver may still use one after its queue was released (PoCL 3.1 crashed).
  cl_device_id part(cl_uint first, cl_uint count) {
    std::unique_ptr<SubDevice>& known = parts_[{first, count}];
    if (!known) known = std::make_unique<SubDevice>(entry_, first, count);
    return known->get();
  }
  OpenclQueue& queue_of(Queue* queue) { return queue ? static_cast<OpenclQueue&>(*queue) : main_; }

  DeviceEntry entry_;
  std::map<std::pair<cl_uint, cl_uint>, std::unique_ptr<SubDevice>> parts_;
  Context context_;
  std::shared_ptr<BuiltPrograms> built_ = std::make_shared<BuiltPrograms>();
  std::vector<OpenclQueue*> queues_;
  OpenclQueue main_;
  std::optional<Event> gate_;
};

}  // namespace
}  // namespace ergotune::opencl

namespace ergotune::device {

std::unique_ptr<Device> open_opencl(const std::string& id) {
  return std::make_unique<opencl::OpenclDevice>(opencl::find_device(id));
}

}  // namespace ergotune::device
