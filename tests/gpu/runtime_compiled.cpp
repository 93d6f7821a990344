// A CUDA program that compiles its kernel at run time (scripts/gpu-check, step capture).
#include <cuda.h>
#include <nvrtc.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(int code, const char* what) {
  if (code == 0) return;
  std::fprintf(stderr, "%s: %d\n", what, code);
  std::exit(9);
}

int main() {
  const char* source =
      "#include \"rounds.h\"\n"
      "extern \"C\" __global__ void average(const float* __restrict__ x, float* y, const float weight, int n) {\n"
      "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < 1 || i >= n - 1) return;\n"
      "  float sum = 0;\n"
      "  for (int round = 0; round < ROUNDS; ++round) sum += weight * (x[i - 1] + x[i] + x[i + 1]) + SHIFT;\n"
      "  y[i] = sum / ROUNDS;\n"
      "}\n";
  const char* header = "#define ROUNDS 20\n";
  const char* name = "rounds.h";
  const char* options[] = {"--gpu-architecture=sm_90", "-DSHIFT=0.5f", "--use_fast_math"};
  nvrtcProgram program;
  check(nvrtcCreateProgram(&program, source, "average.cu", 1, &header, &name), "create");
  check(nvrtcCompileProgram(program, 3, options), "compile");
  size_t size = 0;
  check(nvrtcGetCUBINSize(program, &size), "size");
  std::vector<char> code(size);
  check(nvrtcGetCUBIN(program, code.data()), "code");
  nvrtcDestroyProgram(&program);
  check(cuInit(0), "init");
  CUdevice device;
  CUcontext context;
  check(cuDeviceGet(&device, 0), "device");
  check(cuDevicePrimaryCtxRetain(&context, device), "context");
  check(cuCtxSetCurrent(context), "current");
  CUmodule module;
  CUfunction function;
  check(cuModuleLoadData(&module, code.data()), "module");
  check(cuModuleGetFunction(&function, module, "average"), "function");
  int n = 1 << 20;
  float weight = 0.25f;
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = static_cast<float>(i % 89);
  CUdeviceptr x, y;
  check(cuMemAlloc(&x, n * sizeof(float)), "x");
  check(cuMemAlloc(&y, n * sizeof(float)), "y");
  check(cuMemcpyHtoD(x, host.data(), n * sizeof(float)), "copy");
  check(cuMemcpyHtoD(y, host.data(), n * sizeof(float)), "copy");
  void* arguments[] = {&x, &y, &weight, &n};
  for (int i = 0; i < 5; ++i)
    check(cuLaunchKernel(function, n / 64, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr), "launch");
  check(cuMemcpyDtoH(host.data(), y, n * sizeof(float)), "copy back");
  double sum = 0;
  for (const float value : host) sum += value;
  std::printf("sum %.3f\n", sum);
  return 0;
}
