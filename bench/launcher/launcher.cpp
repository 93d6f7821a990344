// What the launcher adds to a launch and to the first call, and a program that goes from untuned to tuned with it.
//   bench_launcher overhead cuda|opencl          a launch with it and without, ns, side by side
//   bench_launcher first cuda|opencl CACHE       the first call of this process: run it twice for cold and warm
//   bench_launcher heat cuda|opencl WIDTH HEIGHT STEPS    examples/application, checked against the host
//   bench_launcher online cuda|opencl WIDTH HEIGHT STEPS BOUND    the same, tuned online, against a loop that is not
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <vector>

#include "device/cuda/cuda_kernel.hpp"
#include "device/opencl/opencl_program.hpp"
#include "ergotune/launcher.hpp"

namespace {

using namespace ergotune;
using Kernel = launcher::Kernel;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

const char* kOpencl =
    "kernel void nothing(int n, float a, global float* x, global float* y) { if (get_global_id(0) > n) x[0] = a * "
    "y[0]; }";
const char* kCuda =
    "extern \"C\" __global__ void nothing(int n, float a, float* x, float* y) { if (threadIdx.x > n) x[0] = a * y[0]; "
    "}";

launcher::Builder nothing(const std::string& language) {
  auto builder = launcher::Builder::from_text("nothing", language, language == "cuda" ? kCuda : kOpencl);
  builder.constant("N", 64).constant("A", 1).tune("BLOCK", {32, 64});
  builder.scalar("n", "int32", "N")
      .scalar("a", "float32", "A")
      .buffer("x", "float32", "N", "read_write")
      .buffer("y", "float32", "N");
  builder.global({"N"}).block({"BLOCK"});
  return builder;
}

/// An application's own way to a device.
struct Application {
  virtual ~Application() = default;
  void* queue = nullptr;
  std::uint64_t x = 0, y = 0;  ///< handles of two buffers
  virtual std::uint64_t buffer(const std::vector<float>& values) = 0;
  virtual void read(std::uint64_t handle, std::vector<float>& values) = 0;
  /// `nothing`, launched as an application of its own would.
  virtual void launch(int n, float a) = 0;
  virtual void wait() = 0;
};

struct CudaApplication : Application {
  const cuda::Api& api = cuda::api();
  std::unique_ptr<cuda::CudaModule> module;
  void check(int code, const char* what) { api.check(code, DeviceFault::runtime, what); }
  explicit CudaApplication(bool with_kernel) {
    check(api.cuInit(0), "cuInit");
    cuda::CUcontext context = nullptr;
    check(api.cuDevicePrimaryCtxRetain(&context, 0), "context");
    check(api.cuCtxSetCurrent(context), "context");
    cuda::CUstream stream = nullptr;
    check(api.cuStreamCreate(&stream, 1), "stream");
    queue = stream;
    x = buffer(std::vector<float>(64)), y = buffer(std::vector<float>(64));
    if (!with_kernel) return;
    CompileJob job;
    job.language = Language::cuda;
    job.source = kCuda;
    job.function = "nothing";
    module = std::make_unique<cuda::CudaModule>(api, open_compiler("cuda:0")->compile(job));
  }
  std::uint64_t buffer(const std::vector<float>& values) override {
    cuda::CUdeviceptr address = 0;
    check(api.cuMemAlloc(&address, values.size() * sizeof(float)), "memory");
    check(api.cuMemcpyHtoDAsync(address, values.data(), values.size() * sizeof(float),
                                static_cast<cuda::CUstream>(queue)),
          "copy");
    wait();
    return address;
  }
  void read(std::uint64_t handle, std::vector<float>& values) override {
    check(
        api.cuMemcpyDtoHAsync(values.data(), handle, values.size() * sizeof(float), static_cast<cuda::CUstream>(queue)),
        "copy");
    wait();
  }
  void launch(int n, float a) override {
    void* arguments[] = {&n, &a, &x, &y};
    check(api.cuLaunchKernel(module->function(), 2, 1, 1, 32, 1, 1, 0, static_cast<cuda::CUstream>(queue), arguments,
                             nullptr),
          "launch");
  }
  void wait() override { check(api.cuStreamSynchronize(static_cast<cuda::CUstream>(queue)), "wait"); }
};

struct OpenclApplication : Application {
  const opencl::Api& api = opencl::api();
  opencl::DeviceEntry device = opencl::find_devices().at(0);
  opencl::Context context{device};
  std::optional<opencl::Program> program;
  opencl::cl_kernel kernel = nullptr;
  opencl::cl_command_queue native() const { return static_cast<opencl::cl_command_queue>(queue); }
  explicit OpenclApplication(bool with_kernel) {
    opencl::cl_int code = 0;
    queue = api.clCreateCommandQueue(context.get(), device.device, 0, &code);
    x = buffer(std::vector<float>(64)), y = buffer(std::vector<float>(64));
    if (!with_kernel) return;
    opencl::PortableProgram source;
    source.source = kOpencl;
    program.emplace(opencl::Program::from_source(context, device.device, source));
    kernel = api.clCreateKernel(program->get(), "nothing", &code);
  }
  std::uint64_t buffer(const std::vector<float>& values) override {
    opencl::cl_int code = 0;
    const auto memory =
        api.clCreateBuffer(context.get(), opencl::CL_MEM_READ_WRITE, values.size() * sizeof(float), nullptr, &code);
    api.clEnqueueWriteBuffer(native(), memory, 1, 0, values.size() * sizeof(float), values.data(), 0, nullptr, nullptr);
    return reinterpret_cast<std::uint64_t>(memory);
  }
  void read(std::uint64_t handle, std::vector<float>& values) override {
    api.clEnqueueReadBuffer(native(), reinterpret_cast<opencl::cl_mem>(handle), 1, 0, values.size() * sizeof(float),
                            values.data(), 0, nullptr, nullptr);
  }
  void launch(int n, float a) override {
    api.clSetKernelArg(kernel, 0, sizeof n, &n);
    api.clSetKernelArg(kernel, 1, sizeof a, &a);
    api.clSetKernelArg(kernel, 2, sizeof x, &x);
    api.clSetKernelArg(kernel, 3, sizeof y, &y);
    const std::size_t global[] = {64}, local[] = {32};
    api.clEnqueueNDRangeKernel(native(), kernel, 1, nullptr, global, local, 0, nullptr, nullptr);
  }
  void wait() override { api.clFinish(native()); }
};

std::unique_ptr<Application> application(const std::string& backend, bool with_kernel = false) {
  if (backend == "cuda") return std::make_unique<CudaApplication>(with_kernel);
  return std::make_unique<OpenclApplication>(with_kernel);
}

/// Seconds of the host for each of `count` calls, the device waited for outside.
double each(Application& app, int count, const std::function<void()>& call) {
  app.wait();
  const double start = seconds();
  for (int i = 0; i < count; ++i) call();
  const double spent = (seconds() - start) / count;
  app.wait();
  return spent;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int overhead(const std::string& backend) {
  const auto app = application(backend, true);
  const Kernel kernel(nothing(backend));
  const auto launched = [&] { kernel(app->queue, 64, 1.0f, app->x, app->y); };
  const auto own = [&] { app->launch(64, 1.0f); };
  launched();
  own();
  // few enough that the driver's queue does not fill up, in turns, so that what else goes on is on both sides
  std::vector<double> with, without, more;
  for (int round = 0; round < 400; ++round) {
    const bool first = round % 2 == 0;
    const double a = each(*app, 200, first ? std::function<void()>(own) : launched);
    const double b = each(*app, 200, first ? std::function<void()>(launched) : own);
    without.push_back(first ? a : b);
    with.push_back(first ? b : a);
    more.push_back(with.back() - without.back());
  }
  fmt::print(
      "{{\"backend\": \"{}\", \"own_launch_ns\": {:.0f}, \"with_launcher_ns\": {:.0f}, \"difference_ns\": {:.0f}, "
      "\"ratio\": {:.3f}}}\n",
      backend, median(without) * 1e9, median(with) * 1e9, median(more) * 1e9, median(with) / median(without));
  return median(more) <= 2e-6 ? 0 : 1;
}

int first_call(const std::string& backend, const std::string& cache) {
  const auto app = application(backend);
  launcher::Options options;
  options.cache = cache;
  const double begin = seconds();
  const Kernel kernel(nothing(backend), options);
  const double opened = seconds();
  kernel(app->queue, 64, 1.0f, app->x, app->y);
  const double called = seconds();
  app->wait();
  const double done = seconds();
  kernel(app->queue, 64, 1.0f, app->x, app->y);
  const double second = seconds();
  fmt::print(
      "{{\"backend\": \"{}\", \"open_ms\": {:.2f}, \"first_call_ms\": {:.2f}, \"until_done_ms\": {:.2f}, "
      "\"second_call_us\": {:.2f}}}\n",
      backend, (opened - begin) * 1e3, (called - opened) * 1e3, (done - opened) * 1e3, (second - done) * 1e6);
  return 0;
}

void step(int width, int height, float rate, const std::vector<float>& now, std::vector<float>& next) {
  for (int y = 1; y < height - 1; ++y)
    for (int x = 1; x < width - 1; ++x) {
      const auto i = static_cast<std::size_t>(y) * width + x;
      next[i] = now[i] + rate * (now[i - 1] + now[i + 1] + now[i - width] + now[i + width] - 4.0f * now[i]);
    }
}

/// Grid whose left edge is warm.
std::vector<float> warm_edge(int width, int height) {
  std::vector<float> cells(static_cast<std::size_t>(width) * height);
  for (int y = 0; y < height; ++y) cells[static_cast<std::size_t>(y) * width] = 1.0f + 0.001f * static_cast<float>(y);
  return cells;
}

std::string heat_problem(const std::string& backend) {
  return backend == "cuda" ? "examples/application/heat_cuda.toml" : "examples/application/heat.toml";
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, static_cast<double>(std::abs(a[i] - b[i])));
  return worst;
}

/// The loop twice: with the default, and tuned online. It waits for the device every hundred steps, as an application
/// does that writes its results.
int online(const std::string& backend, int width, int height, int steps, double bound) {
  constexpr int kChunk = 100;
  const auto app = application(backend);
  const std::vector<float> cells = warm_edge(width, height);
  std::vector<double> ends[2];
  std::vector<float> results[2] = {cells, cells};
  std::string why;
  for (const int tuned : {0, 1}) {
    std::uint64_t now = app->buffer(cells), next = app->buffer(cells);
    launcher::Options options;
    options.online = tuned ? bound : 0;
    const Kernel kernel(heat_problem(backend), options);
    kernel.prepare(app->queue, width, height, 0.2f, now, next);
    app->wait();
    const double start = seconds();
    for (int s = 1; s <= steps; ++s) {
      kernel(app->queue, width, height, 0.2f, now, next);
      std::swap(now, next);
      if (s % kChunk != 0) continue;
      app->wait();
      ends[tuned].push_back(seconds() - start);
    }
    app->wait();
    why = kernel.why(app->queue, width, height, 0.2f, now, next);
    app->read(now, results[tuned]);
  }
  const std::size_t chunks = ends[0].size();
  const double each = ends[0].back() / static_cast<double>(chunks);
  double worst = 0;
  for (std::size_t i = 9; i < chunks; ++i) worst = std::max(worst, ends[1][i] / (each * static_cast<double>(i + 1)));
  const auto step_us = [&](std::size_t chunk) {
    return (ends[1][chunk] - (chunk == 0 ? 0 : ends[1][chunk - 1])) / kChunk * 1e6;
  };
  const double error = largest_difference(results[0], results[1]);
  fmt::print(
      "{{\"backend\": \"{}\", \"default_step_us\": {:.2f}, \"first_step_us\": {:.2f}, \"last_step_us\": {:.2f}, "
      "\"ratio\": {:.4f}, \"worst_ratio\": {:.4f}, \"largest_error\": {:.2g}, \"why\": {}}}\n",
      backend, each / kChunk * 1e6, step_us(0), step_us(chunks - 1), ends[1].back() / ends[0].back(), worst, error,
      why);
  return error < 1e-4 ? 0 : 1;
}

int heat(const std::string& backend, int width, int height, int steps) {
  const auto app = application(backend);
  const std::vector<float> cells = warm_edge(width, height);
  std::uint64_t now = app->buffer(cells), next = app->buffer(cells);
  const Kernel kernel(heat_problem(backend));
  const float rate = 0.2f;
  double start = 0;
  for (int s = 0; s <= steps; ++s) {
    if (s == 1) {
      app->wait();
      start = seconds();
    }
    kernel(app->queue, width, height, rate, now, next);
    std::swap(now, next);
  }
  app->wait();
  const double spent = (seconds() - start) / steps;
  std::vector<float> expected = cells, other = cells, found(cells.size());
  for (int s = 0; s <= steps; ++s) {
    step(width, height, rate, expected, other);
    std::swap(expected, other);
  }
  app->read(now, found);
  const double worst = largest_difference(found, expected);
  fmt::print("{{\"backend\": \"{}\", \"step_us\": {:.2f}, \"largest_error\": {:.2g}, \"why\": {}}}\n", backend,
             spent * 1e6, worst, kernel.why(app->queue, width, height, rate, now, next));
  return worst < 1e-4 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "", backend = argc > 2 ? argv[2] : "";
  try {
    if (what == "overhead" && argc == 3) return overhead(backend);
    if (what == "first" && argc == 4) return first_call(backend, argv[3]);
    if (what == "heat" && argc == 6) return heat(backend, std::atoi(argv[3]), std::atoi(argv[4]), std::atoi(argv[5]));
    if (what == "online" && argc == 7)
      return online(backend, std::atoi(argv[3]), std::atoi(argv[4]), std::atoi(argv[5]), std::atof(argv[6]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  fmt::print(stderr,
             "bench_launcher overhead BACKEND | first BACKEND CACHE | heat BACKEND WIDTH HEIGHT STEPS | online BACKEND "
             "WIDTH HEIGHT STEPS BOUND\n");
  return 2;
}
