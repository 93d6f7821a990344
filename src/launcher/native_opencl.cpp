// OpenCL: programs are built in the application's context, and launched on its command queue.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "device/opencl/opencl_program.hpp"
#include "ergotune/error.hpp"
#include "launcher/native.hpp"

namespace ergotune::launcher {
namespace {

using namespace opencl;

/// Kernel objects of one program. Setting arguments is not thread-safe, so that each thread uses a separate kernel
/// object.
class OpenclCode : public Code {
 public:
  OpenclCode(opencl::Program program, std::string entry) : program_(std::move(program)), entry_(std::move(entry)) {
    slots_[0].kernel = make();
  }
  ~OpenclCode() override {
    for (Slot& slot : slots_)
      if (slot.kernel) api().clReleaseKernel(slot.kernel);
  }

  void allow(const LaunchPlan& plan) override {
    cl_uint taken = 0;
    if (api().clGetKernelInfo(slots_[0].kernel, CL_KERNEL_NUM_ARGS, sizeof taken, &taken, nullptr) == CL_SUCCESS &&
        taken != plan.passed.size())
      throw DeviceError(DeviceFault::launch, fmt::format("the kernel takes {} arguments, and the problem has {}", taken,
                                                         plan.passed.size()));
  }

  int launch(const LaunchPlan& plan, void* queue, const ergotune_argument* arguments) override {
    Slot& slot = take();
    cl_int code = CL_SUCCESS;
    if (!slot.kernel) slot.kernel = make(&code);
    cl_uint index = 0;
    for (const PassedArgument& passed : plan.passed) {
      if (code != CL_SUCCESS) break;
      // OpenCL does not allow local memory of size 0
      code = passed.local
                 ? api().clSetKernelArg(slot.kernel, index, std::max<std::size_t>(passed.local_bytes, 1), nullptr)
                 : api().clSetKernelArg(slot.kernel, index, arguments[passed.position].size,
                                        arguments[passed.position].address);
      ++index;
    }
    if (code == CL_SUCCESS)
      code = api().clEnqueueNDRangeKernel(static_cast<cl_command_queue>(queue), slot.kernel, plan.dimensions, nullptr,
                                          plan.global, plan.local, 0, nullptr, nullptr);
    slot.busy.clear(std::memory_order_release);
    return code;
  }

 private:
  struct alignas(64) Slot {  // one cache line each
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
    cl_kernel kernel = nullptr;
  };
  cl_kernel make(cl_int* failed = nullptr) const {
    cl_int code = CL_SUCCESS;
    const cl_kernel kernel = api().clCreateKernel(program_.get(), entry_.c_str(), &code);
    if (failed)
      *failed = code;
    else
      check(code, DeviceFault::compile, "clCreateKernel");
    return kernel;
  }
  Slot& take() {
    static std::atomic<unsigned> threads{0};
    thread_local const unsigned own = threads.fetch_add(1);
    for (unsigned turn = 0;; ++turn) {
      Slot& slot = slots_[(own + turn) % slots_.size()];
      if (!slot.busy.test_and_set(std::memory_order_acquire)) return slot;
      if (turn % slots_.size() == slots_.size() - 1) std::this_thread::yield();
    }
  }
  opencl::Program program_;
  std::string entry_;
  std::array<Slot, 16> slots_;
};

/// Points are markers, whose times are those of the device where the queue has profiling enabled, otherwise those at
/// which the host is called.
class OpenclStopwatch : public Stopwatch {
 public:
  explicit OpenclStopwatch(void* queue) : queue_(queue) {}
  void mark() override {
    struct Call {
      std::shared_ptr<Points> points;
      std::size_t number = 0;
    };
    const auto called = [](cl_event event, cl_int, void* given) {
      const std::unique_ptr<Call> call(static_cast<Call*>(given));
      cl_ulong ns = 0;
      const bool profiled =
          api().clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof ns, &ns, nullptr) == CL_SUCCESS;
      call->points->pass(call->number, profiled ? static_cast<double>(ns) * 1e-9 : host_seconds());
      api().clReleaseEvent(event);
    };
    const std::size_t number = points_->add();
    cl_event reached = nullptr;
    if (!api().clEnqueueMarkerWithWaitList || !api().clSetEventCallback ||
        api().clEnqueueMarkerWithWaitList(static_cast<cl_command_queue>(queue_), 0, nullptr, &reached) != CL_SUCCESS)
      return points_->pass(number, std::nullopt);
    std::unique_ptr<Call> call(new Call{points_, number});
    if (api().clSetEventCallback(reached, CL_COMPLETE, called, call.get()) == CL_SUCCESS) return (void)call.release();
    points_->pass(number, std::nullopt);
    api().clReleaseEvent(reached);
  }
  void finish(std::function<void()> done) override {
    {
      const std::lock_guard lock(points_->mutex);
      points_->done = std::move(done);
    }
    points_->pass(0, std::nullopt);
    api().clFlush(static_cast<cl_command_queue>(queue_));
  }
  std::optional<double> seconds(std::size_t from, std::size_t to) const override {
    const std::lock_guard lock(points_->mutex);
    const auto begin = points_->times.at(from + 1), end = points_->times.at(to + 1);
    return begin && end ? std::optional(*end - *begin) : std::nullopt;
  }

 private:
  /// The driver may call the last of them after the first call of a later one. Entry 0 stands for finish().
  struct Points {
    std::mutex mutex;
    std::vector<std::optional<double>> times{std::nullopt};
    std::size_t passed = 0;
    std::function<void()> done;
    std::size_t add() {
      const std::lock_guard lock(mutex);
      times.emplace_back();
      return times.size() - 1;
    }
    void pass(std::size_t number, std::optional<double> time) {
      {
        const std::lock_guard lock(mutex);
        times[number] = time;
        if (++passed < times.size() || !done) return;
      }
      done();
    }
  };
  void* queue_;
  std::shared_ptr<Points> points_ = std::make_shared<Points>();
};

class OpenclCopy : public BufferCopy {
 public:
  OpenclCopy(const Place& place, std::size_t bytes) : place_(place), bytes_(bytes) {
    cl_int code = CL_SUCCESS;
    memory_ = api().clCreateBuffer(static_cast<cl_context>(place.context), CL_MEM_READ_WRITE, bytes, nullptr, &code);
    check(code, DeviceFault::launch, "clCreateBuffer");
  }
  ~OpenclCopy() override { api().clReleaseMemObject(memory_); }
  const void* handle() const override { return &memory_; }
  bool copy_from(void* queue, const void* buffer) override {
    const auto from = *static_cast<const cl_mem*>(buffer);
    return from && api().clEnqueueCopyBuffer(static_cast<cl_command_queue>(queue), from, memory_, 0, 0, bytes_, 0,
                                             nullptr, nullptr) == CL_SUCCESS;
  }
  std::vector<std::byte> read() const override {
    std::vector<std::byte> bytes(bytes_);
    cl_int code = CL_SUCCESS;
    const cl_command_queue queue = api().clCreateCommandQueue(static_cast<cl_context>(place_.context),
                                                              static_cast<cl_device_id>(place_.device), 0, &code);
    check(code, DeviceFault::runtime, "clCreateCommandQueue");
    code = api().clEnqueueReadBuffer(queue, memory_, 1, 0, bytes_, bytes.data(), 0, nullptr, nullptr);
    api().clReleaseCommandQueue(queue);
    check(code, DeviceFault::runtime, "clEnqueueReadBuffer");
    return bytes;
  }

 private:
  Place place_;
  std::size_t bytes_;
  cl_mem memory_ = nullptr;
};

class OpenclNative : public Native {
 public:
  Place place_of(void* queue) const override {
    Place place;
    const auto native = static_cast<cl_command_queue>(queue);
    if (!queue ||
        api().clGetCommandQueueInfo(native, CL_QUEUE_CONTEXT, sizeof place.context, &place.context, nullptr) !=
            CL_SUCCESS ||
        api().clGetCommandQueueInfo(native, kQueueDevice, sizeof place.device, &place.device, nullptr) != CL_SUCCESS)
      throw UserError("this is not an OpenCL command queue");
    return place;
  }
  DeviceInfo device_at(const Place& place) const override {
    std::string note;
    for (const DeviceEntry& entry : find_devices(&note))
      if (entry.device == place.device) return entry.info;
    throw UserError("the queue's device is none that OpenCL lists (a sub-device?): " +
                    (note.empty() ? "kernels are compiled for whole devices" : note));
  }
  std::shared_ptr<Code> load(const Place& place, const Binary& binary) const override {
    const Context context(static_cast<cl_context>(place.context));
    return std::make_shared<OpenclCode>(opencl::Program::from_portable(context, static_cast<cl_device_id>(place.device),
                                                                       PortableProgram::unpack(binary.bytes)),
                                        binary.entry);
  }
  void enter(const Place&) const override {}
  std::string error_text(int code) const override { return error_name(code); }
  bool is_launch_error(int code) const override {
    constexpr cl_int kInvalidGlobalOffset = -56, kOutOfResources = CL_OUT_OF_RESOURCES;
    return (code <= CL_INVALID_WORK_DIMENSION && code >= kInvalidGlobalOffset) || code == CL_INVALID_GLOBAL_WORK_SIZE ||
           code == kOutOfResources || code == CL_INVALID_KERNEL_ARGS || code == CL_OUT_OF_HOST_MEMORY;
  }
  bool records(void*) const override { return false; }
  void when_reached(void* queue, std::function<void()> call) const override {
    auto kept = std::make_unique<std::function<void()>>(std::move(call));
    const auto run = [](cl_event event, cl_int, void* given) {
      const std::unique_ptr<std::function<void()>> own(static_cast<std::function<void()>*>(given));
      (*own)();
      api().clReleaseEvent(event);
    };
    cl_event reached = nullptr;
    if (!api().clEnqueueMarkerWithWaitList || !api().clSetEventCallback ||
        api().clEnqueueMarkerWithWaitList(static_cast<cl_command_queue>(queue), 0, nullptr, &reached) != CL_SUCCESS)
      return (*kept)();
    if (api().clSetEventCallback(reached, CL_COMPLETE, run, kept.get()) == CL_SUCCESS) return (void)kept.release();
    (*kept)();
    api().clReleaseEvent(reached);
  }
  std::vector<std::byte> contents(void* queue, const void* handle) const override {
    const auto memory = *static_cast<const cl_mem*>(handle);
    if (!memory) return {};
    std::size_t size = 0;
    check(api().clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof size, &size, nullptr), DeviceFault::runtime,
          "clGetMemObjectInfo");
    std::vector<std::byte> bytes(size);
    check(api().clEnqueueReadBuffer(static_cast<cl_command_queue>(queue), memory, 1, 0, size, bytes.data(), 0, nullptr,
                                    nullptr),
          DeviceFault::runtime, "clEnqueueReadBuffer");
    return bytes;
  }
  std::unique_ptr<Stopwatch> stopwatch(void* queue) const override { return std::make_unique<OpenclStopwatch>(queue); }
  std::unique_ptr<BufferCopy> buffer_copy(const Place& place, std::size_t bytes) const override {
    return std::make_unique<OpenclCopy>(place, bytes);
  }

 private:
  static constexpr cl_uint kQueueDevice = 0x1091;
};

}  // namespace

const Native& native_opencl() {
  if (!api().usable()) throw UserError("OpenCL cannot be used here: " + api().problem());
  static const OpenclNative native;
  return native;
}

}  // namespace ergotune::launcher
