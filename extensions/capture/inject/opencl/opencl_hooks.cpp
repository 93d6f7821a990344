// The functions of OpenCL in front of those of the loader that the program uses (LD_PRELOAD).
#include <cstdlib>
#include <cstring>
#include <memory>

#include "capture/inject/kernel_log.hpp"
#include "capture/inject/opencl/opencl_capture.hpp"
#include "capture/inject/opencl/opencl_objects.hpp"
#include "capture/inject/opencl/opencl_table.hpp"
#include "capture/inject/opencl/opencl_tuned.hpp"
#include "capture/inject/session.hpp"

namespace ergotune::inject {

const char* interface_name() { return "opencl"; }

using Mode = CaptureRequest::Mode;

void* find_function(const char* name) {
  if (void* next = own_dlsym(RTLD_NEXT, name)) return next;
  void* const library = loaded_library("libOpenCL");
  return library ? own_dlsym(library, name) : nullptr;
}

bool stands_in_front(std::string_view) { return !Session::get().wants(CaptureRequest::Mode::nothing); }

// How long kernels take on the device, by events of the program's own queues: where no kernel is named, to find the one
// with the most time.

namespace {

PendingTimes<cl_event>& pending() {
  static auto* const all = new PendingTimes<cl_event>;
  return *all;
}

void collect() noexcept {
  const auto has_ended = [](cl_event event) {
    return info_of<cl_int>(next().GetEventInfo, event, CL_EVENT_COMMAND_EXECUTION_STATUS) <= CL_COMPLETE;
  };
  const auto take = [](cl_event event) {
    const auto start = info_of<cl_ulong>(next().GetEventProfilingInfo, event, CL_PROFILING_COMMAND_START);
    const auto end = info_of<cl_ulong>(next().GetEventProfilingInfo, event, CL_PROFILING_COMMAND_END);
    (void)next().ReleaseEvent(event);
    return start && end > start ? end - start : 0;
  };
  quietly([&] { pending().collect(has_ended, take); });
}

/// The event of one launch: the program's where it asks for one, else one that is kept until it has its time.
class TimedEvent {
 public:
  TimedEvent(std::shared_ptr<KernelLog::Entry> entry, cl_event* wanted);
  /// What the driver is given.
  cl_event* event() { return timing_ && !wanted_ ? &own_ : wanted_; }
  void queued(cl_int code);

 private:
  std::shared_ptr<KernelLog::Entry> entry_;
  cl_event* wanted_;
  cl_event own_ = nullptr;
  bool timing_;
};

TimedEvent::TimedEvent(std::shared_ptr<KernelLog::Entry> entry, cl_event* wanted)
    : entry_(std::move(entry)), wanted_(wanted), timing_(Session::get().wants_times()) {}

void TimedEvent::queued(cl_int code) {
  if (!timing_ || code != CL_SUCCESS) return;
  const cl_event event = wanted_ ? *wanted_ : own_;
  if (!event) return;
  if (wanted_) (void)next().RetainEvent(event);
  if (pending().add(event, entry_) % 256 == 0) collect();
}

}  // namespace

ERGOTUNE_EXPORT cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device, cl_bitfield properties,
                                                      cl_int* code) noexcept {
  const auto& create = next().CreateCommandQueue;
  const bool timed = Session::get().wants_times();
  const cl_command_queue queue =
      timed ? create(context, device, properties | CL_QUEUE_PROFILING_ENABLE, code) : nullptr;
  return queue ? queue : create(context, device, properties, code);
}

ERGOTUNE_EXPORT cl_command_queue clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                                                    const cl_properties* given, cl_int* code) noexcept {
  const auto& create = next().CreateCommandQueueWithProperties;
  cl_properties properties[32] = {};
  std::size_t used = 0;
  bool found = false;
  for (const cl_properties* one = given; one && *one && used < 28; one += 2) {
    const bool flags = *one == static_cast<cl_properties>(CL_QUEUE_PROPERTIES);
    found |= flags;
    properties[used++] = one[0];
    properties[used++] = flags ? one[1] | static_cast<cl_properties>(CL_QUEUE_PROFILING_ENABLE) : one[1];
  }
  if (!found) {
    properties[used++] = CL_QUEUE_PROPERTIES;
    properties[used++] = CL_QUEUE_PROFILING_ENABLE;
  }
  const cl_command_queue queue = Session::get().wants_times() ? create(context, device, properties, code) : nullptr;
  return queue ? queue : create(context, device, given, code);
}

ERGOTUNE_EXPORT cl_int clReleaseCommandQueue(cl_command_queue queue) noexcept {
  collect();
  return next().ReleaseCommandQueue(queue);
}
ERGOTUNE_EXPORT cl_int clFinish(cl_command_queue queue) noexcept {
  const cl_int code = next().Finish(queue);
  collect();
  return code;
}
ERGOTUNE_EXPORT cl_int clWaitForEvents(cl_uint count, const cl_event* events) noexcept {
  const cl_int code = next().WaitForEvents(count, events);
  collect();
  return code;
}
ERGOTUNE_EXPORT cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocking, std::size_t offset,
                                           std::size_t bytes, void* to, cl_uint waits, const cl_event* waits_for,
                                           cl_event* event) noexcept {
  const cl_int code = next().EnqueueReadBuffer(queue, memory, blocking, offset, bytes, to, waits, waits_for, event);
  if (blocking) collect();
  return code;
}
ERGOTUNE_EXPORT void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocking, cl_bitfield flags,
                                         std::size_t offset, std::size_t bytes, cl_uint waits,
                                         const cl_event* waits_for, cl_event* event, cl_int* code) noexcept {
  void* mapped = next().EnqueueMapBuffer(queue, memory, blocking, flags, offset, bytes, waits, waits_for, event, code);
  if (blocking) collect();
  return mapped;
}

ERGOTUNE_EXPORT cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char** texts,
                                                     const std::size_t* lengths, cl_int* code) noexcept {
  const cl_program program = next().CreateProgramWithSource(context, count, texts, lengths, code);
  if (program)
    quietly([&] {
      ProgramState state;
      for (cl_uint i = 0; i < count; ++i)
        state.source.append(texts[i], lengths && lengths[i] ? lengths[i] : std::strlen(texts[i]));
      Objects::get().add(program, std::move(state));
    });
  return program;
}

static void add_without_source(cl_program program, const char* why) noexcept {
  if (program)
    quietly([&] {
      ProgramState state;
      state.without_source = why;
      Objects::get().add(program, std::move(state));
    });
}

ERGOTUNE_EXPORT cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id* devices,
                                                     const std::size_t* lengths, const unsigned char** binaries,
                                                     cl_int* status, cl_int* code) noexcept {
  const cl_program program = next().CreateProgramWithBinary(context, count, devices, lengths, binaries, status, code);
  add_without_source(
      program, "made from a binary, without source (a cache of compiled kernels, perhaps: empty it, or turn it off)");
  return program;
}

ERGOTUNE_EXPORT cl_program clCreateProgramWithIL(cl_context context, const void* code, std::size_t length,
                                                 cl_int* error) noexcept {
  const cl_program program = next().CreateProgramWithIL(context, code, length, error);
  add_without_source(program, "made from intermediate code (SPIR-V), without source");
  return program;
}

ERGOTUNE_EXPORT cl_program clLinkProgram(cl_context context, cl_uint devices, const cl_device_id* list,
                                         const char* options, cl_uint count, const cl_program* inputs,
                                         ProgramCallback* done, void* data, cl_int* code) noexcept {
  const cl_program program = next().LinkProgram(context, devices, list, options, count, inputs, done, data, code);
  add_without_source(program, "linked from parts (clLinkProgram)");
  return program;
}

ERGOTUNE_EXPORT cl_int clRetainProgram(cl_program program) noexcept {
  quietly([&] { Objects::get().refer(program, 1); });
  return next().RetainProgram(program);
}
ERGOTUNE_EXPORT cl_int clReleaseProgram(cl_program program) noexcept {
  quietly([&] { Objects::get().refer(program, -1); });
  return next().ReleaseProgram(program);
}

ERGOTUNE_EXPORT cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id* devices,
                                      const char* options, ProgramCallback* done, void* data) noexcept {
  quietly([&] { Objects::get().built(program, options); });
  return next().BuildProgram(program, count, devices, options, done, data);
}

static void at_exit() {
  quietly([] {
    if (Session::get().wants(Mode::run))
      report_tuned();
    else
      KernelLog::get().report(true);
  });
}

static void add_kernel(cl_kernel kernel, const char* name, cl_program program) {
  static const int registered = std::atexit(at_exit);
  (void)registered;
  Objects::get().add(kernel, name, Objects::get().find(program));
}

ERGOTUNE_EXPORT cl_kernel clCreateKernel(cl_program program, const char* name, cl_int* code) noexcept {
  const cl_kernel kernel = next().CreateKernel(program, name, code);
  if (kernel) quietly([&] { add_kernel(kernel, name, program); });
  return kernel;
}

ERGOTUNE_EXPORT cl_int clCreateKernelsInProgram(cl_program program, cl_uint room, cl_kernel* kernels,
                                                cl_uint* count) noexcept {
  cl_uint made = 0;
  const cl_int result = next().CreateKernelsInProgram(program, room, kernels, &made);
  if (count) *count = made;
  if (result == CL_SUCCESS && kernels)
    quietly([&] {
      for (cl_uint i = 0; i < made && i < room; ++i) {
        char name[512] = {};
        (void)next().GetKernelInfo(kernels[i], kKernelFunctionName, sizeof name - 1, name, nullptr);
        add_kernel(kernels[i], name, program);
      }
    });
  return result;
}

ERGOTUNE_EXPORT cl_int clRetainKernel(cl_kernel kernel) noexcept {
  quietly([&] { Objects::get().refer(kernel, 1); });
  return next().RetainKernel(kernel);
}
ERGOTUNE_EXPORT cl_int clReleaseKernel(cl_kernel kernel) noexcept {
  quietly([&] { Objects::get().refer(kernel, -1); });
  return next().ReleaseKernel(kernel);
}
ERGOTUNE_EXPORT cl_kernel clCloneKernel(cl_kernel kernel, cl_int* code) noexcept {
  const cl_kernel clone = next().CloneKernel(kernel, code);
  if (clone) quietly([&] { Objects::get().clone(kernel, clone); });
  return clone;
}

/// The place of an argument that was just set.
static ArgumentValue* argument_of(cl_kernel handle, cl_uint position) {
  KernelState* kernel = Objects::get().find(handle);
  if (!kernel || position > 1023) return nullptr;
  if (kernel->arguments.size() <= position) kernel->arguments.resize(position + 1);
  ArgumentValue& value = kernel->arguments[position];
  value.set = true;
  ++value.version;
  return &value;
}

ERGOTUNE_EXPORT cl_int clSetKernelArg(cl_kernel handle, cl_uint position, std::size_t size,
                                      const void* bytes) noexcept {
  const cl_int code = next().SetKernelArg(handle, position, size, bytes);
  if (code == CL_SUCCESS)
    quietly([&] {
      ArgumentValue* value = argument_of(handle, position);
      if (!value) return;
      const auto* first = static_cast<const std::byte*>(bytes);
      value->size = size;
      value->shared_virtual = false;
      // a buffer may be given as no bytes at all: a null pointer, which local memory of its size would look like
      value->local = !bytes;
      if (bytes)
        value->bytes.assign(first, first + size);
      else
        value->bytes.clear();
    });
  return code;
}

ERGOTUNE_EXPORT cl_int clSetKernelArgSVMPointer(cl_kernel handle, cl_uint position, const void* pointer) noexcept {
  const cl_int code = next().SetKernelArgSVMPointer(handle, position, pointer);
  if (code == CL_SUCCESS)
    quietly([&] {
      if (ArgumentValue* value = argument_of(handle, position)) value->shared_virtual = true;
    });
  return code;
}

ERGOTUNE_EXPORT cl_int clSetKernelExecInfo(cl_kernel handle, cl_uint name, std::size_t size,
                                           const void* value) noexcept {
  quietly([&] {
    if (KernelState* kernel = Objects::get().find(handle)) kernel->has_execution_info = true;
  });
  return next().SetKernelExecInfo(handle, name, size, value);
}

static LaunchShape shape_of(cl_uint dimensions, const std::size_t* global, const std::size_t* local) {
  LaunchShape shape;
  shape.dimensions = dimensions;
  shape.block_is_open = !local;
  for (cl_uint d = 0; d < dimensions; ++d) {
    shape.global[d] = global[d];
    if (local) shape.block[d] = local[d];
  }
  return shape;
}

/// What is wrong with a launch for a problem file.
static std::string unusual(const LaunchShape& shape, const std::size_t* offset) {
  for (std::size_t d = 0; d < shape.dimensions; ++d) {
    if (offset && offset[d]) return "it is launched with a global offset";
    if (shape.block[d] == 0 || shape.global[d] == 0 || shape.global[d] % shape.block[d])
      return "its global size is not a multiple of its work-group";
  }
  return {};
}

/// The launch that a user wants, with its data.
struct Capturing {
  KernelLog::Entry& entry;
  std::optional<OpenclCapture> capture;

  void begin(cl_command_queue queue, cl_kernel handle, const KernelState& kernel, const LaunchShape& shape,
             const std::size_t* offset, cl_uint waits, const cl_event* waits_for) {
    try {
      if (const std::string why = unusual(shape, offset); !why.empty()) throw Refused(why, false);
      capture.emplace(queue, handle, kernel, shape,
                      std::vector<cl_event>(waits_for, waits_for + (waits_for ? waits : 0)));
    } catch (const Refused& refused) {
      KernelLog::get().refuse(entry, refused.what());
      if (refused.of_kernel)
        KernelLog::get().unclaim_all();
      else
        KernelLog::get().unclaim(entry);
    }
  }
  void end() {
    if (capture) KernelLog::get().keep(entry, [&](const std::string& folder) { return capture->finish(folder); });
  }
};

static cl_int enqueue_watched(cl_command_queue queue, cl_kernel handle, KernelState& kernel, const LaunchShape& shape,
                              const std::size_t* offset, const std::size_t* global, const std::size_t* local,
                              cl_uint waits, const cl_event* waits_for, cl_event* event) {
  KernelLog& log = KernelLog::get();
  std::optional<Capturing> capturing;
  quietly([&] {
    const std::uint64_t launch =
        log.count(*kernel.entry, shape, std::to_string(kernel.arguments.size()) + " arguments");
    if (!log.claims(*kernel.entry, launch)) return;
    capturing.emplace(Capturing{*kernel.entry, {}});
    capturing->begin(queue, handle, kernel, shape, offset, waits, waits_for);
  });
  TimedEvent timed(kernel.entry, event);
  const cl_int code = next().EnqueueNDRangeKernel(queue, handle, static_cast<cl_uint>(shape.dimensions), offset, global,
                                                  local, waits, waits_for, timed.event());
  quietly([&] {
    timed.queued(code);
    if (capturing && code == CL_SUCCESS) capturing->end();
    log.report(false);
  });
  return code;
}

ERGOTUNE_EXPORT cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel handle, cl_uint dimensions,
                                              const std::size_t* offset, const std::size_t* global,
                                              const std::size_t* local, cl_uint waits, const cl_event* waits_for,
                                              cl_event* event) noexcept {
  KernelState* kernel = Objects::get().find(handle);
  if (kernel && global && dimensions >= 1 && dimensions <= 3) {
    const LaunchShape shape = shape_of(dimensions, global, local);
    if (!Session::get().wants(Mode::run))
      return enqueue_watched(queue, handle, *kernel, shape, offset, global, local, waits, waits_for, event);
    std::optional<cl_int> code;
    quietly([&] { code = launch_tuned(queue, *kernel, shape, offset, waits, waits_for, event); });
    if (code) return *code;
  }
  return next().EnqueueNDRangeKernel(queue, handle, dimensions, offset, global, local, waits, waits_for, event);
}

ERGOTUNE_EXPORT cl_int clEnqueueTask(cl_command_queue queue, cl_kernel handle, cl_uint waits, const cl_event* waits_for,
                                     cl_event* event) noexcept {
  const std::size_t one = 1;  // what the specification says it is
  return clEnqueueNDRangeKernel(queue, handle, 1, nullptr, &one, &one, waits, waits_for, event);
}

}  // namespace ergotune::inject
