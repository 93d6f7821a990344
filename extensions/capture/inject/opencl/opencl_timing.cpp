#include "capture/inject/opencl/opencl_timing.hpp"

#include "capture/inject/pending_times.hpp"
#include "capture/inject/session.hpp"

namespace ergotune::inject {

namespace {

PendingTimes<cl_event>& pending() {
  static auto* const all = new PendingTimes<cl_event>;
  return *all;
}

void collect() noexcept {
  const auto has_ended = [](cl_event event) {
    return info_of<cl_int>(At::GetEventInfo, event, CL_EVENT_COMMAND_EXECUTION_STATUS) <= CL_COMPLETE;
  };
  const auto take = [](cl_event event) {
    const auto start = info_of<cl_ulong>(At::GetEventProfilingInfo, event, CL_PROFILING_COMMAND_START);
    const auto end = info_of<cl_ulong>(At::GetEventProfilingInfo, event, CL_PROFILING_COMMAND_END);
    (void)next.get<cl_int(cl_event)>(At::ReleaseEvent)(event);
    return start && end > start ? end - start : 0;
  };
  quietly([&] { pending().collect(has_ended, take); });
}

}  // namespace

ERGOTUNE_EXPORT cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device, cl_bitfield properties,
                                                      cl_int* code) noexcept {
  auto* create = next.get<cl_command_queue(cl_context, cl_device_id, cl_bitfield, cl_int*)>(At::CreateCommandQueue);
  const bool timed = Session::get().wants_times();
  const cl_command_queue queue =
      timed ? create(context, device, properties | CL_QUEUE_PROFILING_ENABLE, code) : nullptr;
  return queue ? queue : create(context, device, properties, code);
}

ERGOTUNE_EXPORT cl_command_queue clCreateCommandQueueWithProperties(cl_context context, cl_device_id device,
                                                                    const cl_properties* given, cl_int* code) noexcept {
  auto* create = next.get<cl_command_queue(cl_context, cl_device_id, const cl_properties*, cl_int*)>(
      At::CreateCommandQueueWithProperties);
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
  return next.get<cl_int(cl_command_queue)>(At::ReleaseCommandQueue)(queue);
}
ERGOTUNE_EXPORT cl_int clFinish(cl_command_queue queue) noexcept {
  const cl_int code = next.get<cl_int(cl_command_queue)>(At::Finish)(queue);
  collect();
  return code;
}
ERGOTUNE_EXPORT cl_int clWaitForEvents(cl_uint count, const cl_event* events) noexcept {
  const cl_int code = next.get<cl_int(cl_uint, const cl_event*)>(At::WaitForEvents)(count, events);
  collect();
  return code;
}
ERGOTUNE_EXPORT cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocking, std::size_t offset,
                                           std::size_t bytes, void* to, cl_uint waits, const cl_event* waits_for,
                                           cl_event* event) noexcept {
  const cl_int code = next.get<cl_int(cl_command_queue, cl_mem, cl_bool, std::size_t, std::size_t, void*, cl_uint,
                                      const cl_event*, cl_event*)>(At::EnqueueReadBuffer)(
      queue, memory, blocking, offset, bytes, to, waits, waits_for, event);
  if (blocking) collect();
  return code;
}
ERGOTUNE_EXPORT void* clEnqueueMapBuffer(cl_command_queue queue, cl_mem memory, cl_bool blocking, cl_bitfield flags,
                                         std::size_t offset, std::size_t bytes, cl_uint waits,
                                         const cl_event* waits_for, cl_event* event, cl_int* code) noexcept {
  void* mapped = next.get<void*(cl_command_queue, cl_mem, cl_bool, cl_bitfield, std::size_t, std::size_t, cl_uint,
                                const cl_event*, cl_event*, cl_int*)>(At::EnqueueMapBuffer)(
      queue, memory, blocking, flags, offset, bytes, waits, waits_for, event, code);
  if (blocking) collect();
  return mapped;
}

TimedEvent::TimedEvent(std::shared_ptr<KernelLog::Entry> entry, cl_event* wanted)
    : entry_(std::move(entry)), wanted_(wanted), timing_(Session::get().wants_times()) {}

void TimedEvent::queued(cl_int code) {
  if (!timing_ || code != CL_SUCCESS) return;
  const cl_event event = wanted_ ? *wanted_ : own_;
  if (!event) return;
  if (wanted_) (void)next.get<cl_int(cl_event)>(At::RetainEvent)(event);
  if (pending().add(event, entry_) % 256 == 0) collect();
}

}  // namespace ergotune::inject
