// The layer where the ICD loader knows no layers: OpenCL's functions in front of those of the loader that the program
// is linked with (LD_PRELOAD). Where the loader calls the layer itself, they pass on.
#include "capture/inject/interpose.hpp"
#include "capture/inject/opencl/opencl_table.hpp"
#include "capture/inject/opencl/opencl_timing.hpp"
#include "capture/inject/session.hpp"

namespace ergotune::inject {
namespace {

const Table& of_loader() {
  static const Table table = [] {
    Table found;
    void* const library = loaded_library("libOpenCL");  // a package may bring a loader of its own
    const auto find = [&](std::size_t at, const char* name) {
      void* function = dlsym(RTLD_NEXT, name);
      found.entries[at] = function || !library ? function : dlsym(library, name);
    };
#define ERGOTUNE_FIND(name, position) find(position, "cl" #name)
    ERGOTUNE_OPENCL_FUNCTIONS(ERGOTUNE_FIND);
#undef ERGOTUNE_FIND
    return found;
  }();
  return table;
}

const Table& in_use() noexcept {
  if (called_by_loader || Session::get().wants(CaptureRequest::Mode::nothing)) return of_loader();
  static const bool begun = begin_layer(of_loader());
  return begun ? layered : of_loader();
}

}  // namespace
}  // namespace ergotune::inject

using namespace ergotune::inject;

#define IN_FRONT(name, result, parameters, arguments)                            \
  extern "C" __attribute__((visibility("default"))) result cl##name parameters { \
    return in_use().get<result parameters>(At::name) arguments;                  \
  }

IN_FRONT(CreateProgramWithSource, cl_program,
         (cl_context context, cl_uint count, const char** texts, const std::size_t* lengths, cl_int* code),
         (context, count, texts, lengths, code))
IN_FRONT(CreateProgramWithBinary, cl_program,
         (cl_context context, cl_uint count, const cl_device_id* devices, const std::size_t* lengths,
          const unsigned char** binaries, cl_int* status, cl_int* code),
         (context, count, devices, lengths, binaries, status, code))
IN_FRONT(CreateProgramWithIL, cl_program, (cl_context context, const void* il, std::size_t length, cl_int* code),
         (context, il, length, code))
IN_FRONT(LinkProgram, cl_program,
         (cl_context context, cl_uint devices, const cl_device_id* list, const char* options, cl_uint count,
          const cl_program* inputs, ProgramCallback* done, void* data, cl_int* code),
         (context, devices, list, options, count, inputs, done, data, code))
IN_FRONT(RetainProgram, cl_int, (cl_program program), (program))
IN_FRONT(ReleaseProgram, cl_int, (cl_program program), (program))
IN_FRONT(BuildProgram, cl_int,
         (cl_program program, cl_uint count, const cl_device_id* devices, const char* options, ProgramCallback* done,
          void* data),
         (program, count, devices, options, done, data))
IN_FRONT(CreateKernel, cl_kernel, (cl_program program, const char* name, cl_int* code), (program, name, code))
IN_FRONT(CreateKernelsInProgram, cl_int, (cl_program program, cl_uint room, cl_kernel* kernels, cl_uint* count),
         (program, room, kernels, count))
IN_FRONT(RetainKernel, cl_int, (cl_kernel kernel), (kernel))
IN_FRONT(ReleaseKernel, cl_int, (cl_kernel kernel), (kernel))
IN_FRONT(CloneKernel, cl_kernel, (cl_kernel kernel, cl_int* code), (kernel, code))
IN_FRONT(SetKernelArg, cl_int, (cl_kernel kernel, cl_uint position, std::size_t size, const void* bytes),
         (kernel, position, size, bytes))
IN_FRONT(SetKernelArgSVMPointer, cl_int, (cl_kernel kernel, cl_uint position, const void* pointer),
         (kernel, position, pointer))
IN_FRONT(SetKernelExecInfo, cl_int, (cl_kernel kernel, cl_uint name, std::size_t size, const void* value),
         (kernel, name, size, value))
IN_FRONT(EnqueueNDRangeKernel, cl_int,
         (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const std::size_t* offset,
          const std::size_t* global, const std::size_t* local, cl_uint waits, const cl_event* waits_for,
          cl_event* event),
         (queue, kernel, dimensions, offset, global, local, waits, waits_for, event))
IN_FRONT(EnqueueTask, cl_int,
         (cl_command_queue queue, cl_kernel kernel, cl_uint waits, const cl_event* waits_for, cl_event* event),
         (queue, kernel, waits, waits_for, event))
IN_FRONT(CreateCommandQueue, cl_command_queue,
         (cl_context context, cl_device_id device, cl_bitfield properties, cl_int* code),
         (context, device, properties, code))
IN_FRONT(CreateCommandQueueWithProperties, cl_command_queue,
         (cl_context context, cl_device_id device, const cl_properties* properties, cl_int* code),
         (context, device, properties, code))
IN_FRONT(ReleaseCommandQueue, cl_int, (cl_command_queue queue), (queue))
IN_FRONT(Finish, cl_int, (cl_command_queue queue), (queue))
IN_FRONT(WaitForEvents, cl_int, (cl_uint count, const cl_event* events), (count, events))
IN_FRONT(EnqueueReadBuffer, cl_int,
         (cl_command_queue queue, cl_mem memory, cl_bool blocking, std::size_t offset, std::size_t bytes, void* to,
          cl_uint waits, const cl_event* waits_for, cl_event* event),
         (queue, memory, blocking, offset, bytes, to, waits, waits_for, event))
IN_FRONT(EnqueueMapBuffer, void*,
         (cl_command_queue queue, cl_mem memory, cl_bool blocking, cl_bitfield flags, std::size_t offset,
          std::size_t bytes, cl_uint waits, const cl_event* waits_for, cl_event* event, cl_int* code),
         (queue, memory, blocking, flags, offset, bytes, waits, waits_for, event, code))
