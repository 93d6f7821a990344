// What a launch costs beside the same launches written by hand: rounds of 1,000 short launches (500 of a kernel whose
// scalar changes, 500 of another between them), the tuner's and a hand-written round in turns, on one device in one
// process.
//
//   bench_several [--device cuda:0] [--rounds 200]
//
// By hand means: on CUDA one graph, captured once; on OpenCL clSetKernelArg and clEnqueueNDRangeKernel in a loop.
// Prints as JSON medians of what a launch takes (s): wall time of a round from its begin to the device's end, processor
// time of the thread that launches.
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/clock.hpp"
#include "base/statistics.hpp"
#include "device/cuda/cuda_api.hpp"
#include "device/opencl/opencl_program.hpp"
#include "ergotune/problem_file.hpp"
#include "kernel/configure.hpp"
#include "measure/buffers/problem_buffers.hpp"
#include "measure/timing/loaded_iteration.hpp"

namespace {

using namespace ergotune;

constexpr int kPairs = 500, kLaunches = 2 * kPairs, kCount = 64;

constexpr const char* kProblem = R"toml(
name = "launches"
[buffers]
x = { type = "float32", count = 64 }
y = { type = "float32", count = 64 }
[kernels.a]
function = "a"
parameters = { BLOCK = [64] }
source.opencl.text = "kernel void a(global float* x, int k) { x[get_global_id(0)] = k; }"
source.cuda.text = "extern \"C\" __global__ void a(float* x, int k) { x[blockIdx.x * blockDim.x + threadIdx.x] = k; }"
arguments = [{ buffer = "x", access = "write" }, { name = "k", type = "int32", value = "k" }]
launch = { global = [64], block = [64] }
[kernels.b]
function = "b"
source.opencl.text = "kernel void b(global const float* x, global float* y) { y[get_global_id(0)] = x[get_global_id(0)]; }"
source.cuda.text = "extern \"C\" __global__ void b(const float* x, float* y) { int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = x[i]; }"
arguments = [{ buffer = "x" }, { buffer = "y", access = "write" }]
launch = { global = [64], block = [64] }
[workload]
steps = [{ for = "k", to = 500, steps = [{ kernel = "a" }, { kernel = "b" }] }]
)toml";

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The tuner's round, as the runner launches it.
struct TunersRound {
  Problem problem = parse_problem(kProblem, "launches.toml");
  Constants constants;
  ProblemBuffers buffers;
  std::vector<Binary> binaries;
  std::unique_ptr<LoadedIteration> round;

  explicit TunersRound(Device& device) : buffers(device, argument_lists(problem), constants) {
    for (const Kernel& kernel : problem.kernels)
      binaries.push_back(device.make_compiler()->compile(
          make_compile_job(problem, kernel, device.info(), constants, default_values(problem))));
    round = std::make_unique<LoadedIteration>(device, problem, constants, buffers, default_values(problem), binaries);
  }
};

/// One graph over the same code and memory, in the device's context, which is current.
std::function<void()> by_hand_cuda(const TunersRound& tuners, Device& device) {
  using namespace cuda;
  static CUfunction a = nullptr, b = nullptr;
  const auto load = [&](CUfunction* function, std::size_t k) {
    CUmodule module = nullptr;
    check(api().cuModuleLoadDataEx(&module, tuners.binaries[k].bytes.c_str(), 0, nullptr, nullptr), DeviceFault::launch,
          "load");
    check(api().cuModuleGetFunction(function, module, tuners.binaries[k].entry.c_str()), DeviceFault::launch,
          "function");
  };
  load(&a, 0);
  load(&b, 1);
  static CUdeviceptr x = 0, y = 0;
  check(api().cuMemAlloc(&x, kCount * sizeof(float)), DeviceFault::out_of_memory, "x");
  check(api().cuMemAlloc(&y, kCount * sizeof(float)), DeviceFault::out_of_memory, "y");
  const auto stream = static_cast<CUstream>(device.main_queue().native_handle());
  check(api().cuStreamBeginCapture(stream, kCaptureThreadLocal), DeviceFault::launch, "capture");
  for (int k = 0; k < kPairs; ++k) {
    void* of_a[] = {&x, &k};
    void* of_b[] = {&x, &y};
    check(api().cuLaunchKernel(a, 1, 1, 1, kCount, 1, 1, 0, stream, of_a, nullptr), DeviceFault::launch, "a");
    check(api().cuLaunchKernel(b, 1, 1, 1, kCount, 1, 1, 0, stream, of_b, nullptr), DeviceFault::launch, "b");
  }
  CUgraph graph = nullptr;
  CUgraphExec ready = nullptr;
  check(api().cuStreamEndCapture(stream, &graph), DeviceFault::launch, "capture's end");
  check(api().cuGraphInstantiate(&ready, graph, 0), DeviceFault::launch, "instantiate");
  return [ready, stream] {
    check(api().cuGraphLaunch(ready, stream), DeviceFault::launch, "launch");
    check(api().cuStreamSynchronize(stream), DeviceFault::runtime, "wait");
  };
}

/// A context, a queue and two kernels of its own, as a program without the tuner has them.
std::function<void()> by_hand_opencl(const TunersRound& tuners, const std::string& id) {
  using namespace opencl;
  const DeviceEntry entry = find_device(id);
  static Context context(entry);
  cl_int code = CL_SUCCESS;
  const auto kernel = [&](std::size_t k) {
    static std::vector<std::shared_ptr<opencl::Program>> kept;
    kept.push_back(std::make_shared<opencl::Program>(
        opencl::Program::from_portable(context, entry.device, PortableProgram::unpack(tuners.binaries[k].bytes))));
    const cl_kernel made = api().clCreateKernel(kept.back()->get(), tuners.binaries[k].entry.c_str(), &code);
    check(code, DeviceFault::launch, "clCreateKernel");
    return made;
  };
  const cl_kernel a = kernel(0), b = kernel(1);
  const cl_command_queue queue =
      api().clCreateCommandQueue(context.get(), entry.device, CL_QUEUE_PROFILING_ENABLE, &code);
  check(code, DeviceFault::launch, "clCreateCommandQueue");
  const cl_mem x = api().clCreateBuffer(context.get(), CL_MEM_READ_WRITE, kCount * sizeof(float), nullptr, &code);
  const cl_mem y = api().clCreateBuffer(context.get(), CL_MEM_READ_WRITE, kCount * sizeof(float), nullptr, &code);
  check(code, DeviceFault::out_of_memory, "clCreateBuffer");
  return [=] {
    const std::size_t size = kCount;
    for (cl_int k = 0; k < kPairs; ++k) {
      api().clSetKernelArg(a, 0, sizeof x, &x);
      api().clSetKernelArg(a, 1, sizeof k, &k);
      check(api().clEnqueueNDRangeKernel(queue, a, 1, nullptr, &size, &size, 0, nullptr, nullptr), DeviceFault::launch,
            "a");
      api().clSetKernelArg(b, 0, sizeof x, &x);
      api().clSetKernelArg(b, 1, sizeof y, &y);
      check(api().clEnqueueNDRangeKernel(queue, b, 1, nullptr, &size, &size, 0, nullptr, nullptr), DeviceFault::launch,
            "b");
    }
    check(api().clFlush(queue), DeviceFault::launch, "clFlush");
    check(api().clFinish(queue), DeviceFault::runtime, "clFinish");
  };
}

struct Series {
  std::vector<double> wall, processor;
  void time(const std::function<void()>& round) {
    const double begin = host_seconds(), worked = thread_seconds();
    round();
    processor.push_back(thread_seconds() - worked);
    wall.push_back(host_seconds() - begin);
  }
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Cost of a launch beside launches by hand"};
  std::string id;
  int rounds = 200;
  app.add_option("--device", id);
  app.add_option("--rounds", rounds);
  CLI11_PARSE(app, argc, argv);
  try {
    const auto device = open_device(id);
    TunersRound tuners(*device);
    KernelWorkload& workload = tuners.round->kernels();
    const std::function<void()> ours = [&] {
      workload.launch(1);
      device->synchronise();
    };
    const std::function<void()> theirs =
        device->info().backend == "cuda" ? by_hand_cuda(tuners, *device) : by_hand_opencl(tuners, device->info().id);
    for (int i = 0; i < 3; ++i) {
      ours();
      theirs();
    }
    Series tuner, hand;
    for (int i = 0; i < rounds; ++i) {
      tuner.time(ours);
      hand.time(theirs);
    }
    std::vector<double> wall, processor;  // differences of neighbours: what else runs on the machine meets both
    for (int i = 0; i < rounds; ++i) {
      wall.push_back((tuner.wall[i] - hand.wall[i]) / kLaunches);
      processor.push_back((tuner.processor[i] - hand.processor[i]) / kLaunches);
    }
    const nlohmann::ordered_json document{{"device", device->info().name},
                                          {"launches", kLaunches},
                                          {"rounds", rounds},
                                          {"tuner_wall", median(tuner.wall) / kLaunches},
                                          {"hand_wall", median(hand.wall) / kLaunches},
                                          {"more_wall", median(wall)},
                                          {"tuner_processor", median(tuner.processor) / kLaunches},
                                          {"hand_processor", median(hand.processor) / kLaunches},
                                          {"more_processor", median(processor)}};
    fmt::print("{}\n", document.dump(2));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
