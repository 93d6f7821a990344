// A libamdhip64.so without a GPU: the fake of CUDA's driver (tests/fakes/cuda) under HIP's names, with what is AMD's
// own. Device 0 is a die of an MI250X, device 1 another one's. Kernels run on the host: real code objects, as hiprtc
// makes them, load, and a kernel in them is the function of its name in the library that FAKE_HIP_KERNELS names
// (kernels.cpp). They take as long as they take, and markers tell the host's time.
//   FAKE_HIP_CARD    a card's folder in a tree of sysfs ("/tmp/tree/sys/class/drm/card0/device"): its gpu_metrics file
//   then
//                    counts the GPU's energy, 90 W while it rests and what its kernels say while they run
//   FAKE_HIP_DEFECT  "still": the counter stands still; "zero": it reads 0
//   FAKE_HIP_OLDER   no properties of HIP 6
#include <dlfcn.h>

#include <chrono>
#include <fstream>
#include <mutex>
#include <thread>

#include "fakes/cuda/cuda.cpp"
#include "kernels.hpp"

namespace {

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The GPU's energy, and the thread that writes its file while the process lives.
class Gpu {
 public:
  explicit Gpu(std::string folder) : folder_(std::move(folder)), last_(seconds()) {
    std::thread([this] {
      while (true) {
        write();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    }).detach();
  }
  void draw(double watts) {
    const std::lock_guard lock(mutex_);
    advance();
    watts_ = watts;
  }

 private:
  void advance() {
    const double now = seconds();
    joules_ += watts_ * (now - last_);
    last_ = now;
  }
  void write() {
    const char* defect = std::getenv("FAKE_HIP_DEFECT");
    std::uint64_t units = 0;
    {
      const std::lock_guard lock(mutex_);
      advance();
      units = static_cast<std::uint64_t>(65536 * joules_);
    }
    if (defect) units = std::string(defect) == "zero" ? 0 : 1 << 30;
    std::string table(120, '\xff');
    const auto put = [&](std::size_t offset, std::uint64_t value, std::size_t bytes) {
      std::memcpy(table.data() + offset, &value, bytes);
    };
    put(0, table.size(), 2);
    put(2, 1, 1);
    put(3, 3, 1);
    put(24, units, 8);
    put(112, 0, 8);
    const std::string file = folder_ + "/gpu_metrics", draft = file + ".draft";
    std::ofstream(draft, std::ios::binary) << table;
    std::rename(draft.c_str(), file.c_str());
  }

  std::string folder_;
  std::mutex mutex_;
  double joules_ = 1000, watts_ = 90, last_;
};

Gpu* gpu() {
  static Gpu* const one = std::getenv("FAKE_HIP_CARD") ? new Gpu(std::getenv("FAKE_HIP_CARD")) : nullptr;
  return one;
}

const fake_hip::Kernel* kernel_named(const std::string& name) {
  static void* const library =
      std::getenv("FAKE_HIP_KERNELS") ? ::dlopen(std::getenv("FAKE_HIP_KERNELS"), RTLD_NOW) : nullptr;
  if (!library) return nullptr;
  return static_cast<const fake_hip::Kernel*>(::dlsym(library, ("kernel_" + name).c_str()));
}

bool run_on_host(const Launch& launch) {
  const fake_hip::Kernel* kernel = kernel_named(launch.function->name);
  if (!kernel) return false;
  std::vector<const void*> arguments;
  for (const std::string& value : launch.values) arguments.push_back(value.data());
  if (gpu()) gpu()->draw(kernel->watts(launch.block));
  if (const int fault = kernel->run(launch.grid, launch.block, arguments.data())) state.pending = fault;
  if (gpu()) gpu()->draw(90);
  return true;
}

const bool kHooked = [] {
  hooks.run = run_on_host;
  hooks.sizes = [](const std::string& name) {
    const fake_hip::Kernel* kernel = kernel_named(name);
    return kernel ? kernel->sizes : std::vector<std::size_t>();
  };
  hooks.milliseconds = [] { return std::getenv("FAKE_HIP_KERNELS") ? 1e3 * seconds() : state.now_milliseconds; };
  return true;
}();

/// Bytes of an ELF file: it ends with the table of its sections.
std::size_t elf_size(const char* image) {
  std::uint64_t table = 0;
  std::uint16_t step = 0, count = 0;
  std::memcpy(&table, image + 40, sizeof table);
  std::memcpy(&step, image + 58, sizeof step);
  std::memcpy(&count, image + 60, sizeof count);
  return table + std::size_t{step} * count;
}

int properties(void* structure, std::size_t offset, int device) {
  std::strcpy(static_cast<char*>(structure) + offset,
              device == 0 ? "gfx90a:sramecc+:xnack-" : "gfx90a:sramecc+:xnack+");
  return 0;
}

}  // namespace

// The same functions under HIP's names.
#define SAME(hip, cuda) EXPORT decltype(cuda) hip __attribute__((alias(#cuda)))
SAME(hipInit, cuInit);
SAME(hipGetDeviceCount, cuDeviceGetCount);
SAME(hipDeviceGet, cuDeviceGet);
SAME(hipDeviceTotalMem, cuDeviceTotalMem_v2);
SAME(hipDeviceGetPCIBusId, cuDeviceGetPCIBusId);
SAME(hipDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain);
SAME(hipDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2);
SAME(hipCtxSetCurrent, cuCtxSetCurrent);
SAME(hipCtxGetCurrent, cuCtxGetCurrent);
SAME(hipDeviceSynchronize, cuCtxSynchronize);
SAME(hipPointerGetAttribute, cuPointerGetAttribute);
SAME(hipMemGetAddressRange, cuMemGetAddressRange_v2);
SAME(hipMemcpyDtoH, cuMemcpyDtoH_v2);
SAME(hipCtxGetDevice, cuCtxGetDevice);
SAME(hipStreamIsCapturing, cuStreamIsCapturing);
SAME(hipModuleUnload, cuModuleUnload);
SAME(hipModuleGetFunction, cuModuleGetFunction);
SAME(hipFuncGetAttribute, cuFuncGetAttribute);
SAME(hipFuncSetAttribute, cuFuncSetAttribute);
SAME(hipModuleLaunchKernel, cuLaunchKernel);
SAME(hipMalloc, cuMemAlloc_v2);
SAME(hipFree, cuMemFree_v2);
SAME(hipMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2);
SAME(hipMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2);
SAME(hipMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2);
SAME(hipMemsetD8Async, cuMemsetD8Async);
SAME(hipStreamCreateWithFlags, cuStreamCreate);
SAME(hipStreamCreateWithPriority, cuStreamCreateWithPriority);
SAME(hipDeviceGetStreamPriorityRange, cuCtxGetStreamPriorityRange);
SAME(hipLaunchHostFunc, cuLaunchHostFunc);
SAME(hipStreamDestroy, cuStreamDestroy_v2);
SAME(hipStreamSynchronize, cuStreamSynchronize);
SAME(hipStreamWaitEvent, cuStreamWaitEvent);
SAME(hipEventCreateWithFlags, cuEventCreate);
SAME(hipEventDestroy, cuEventDestroy_v2);
SAME(hipEventRecord, cuEventRecord);
SAME(hipEventQuery, cuEventQuery);
SAME(hipEventElapsedTime, cuEventElapsedTime);
SAME(hipStreamBeginCapture, cuStreamBeginCapture_v2);
SAME(hipStreamEndCapture, cuStreamEndCapture);
SAME(hipGraphInstantiateWithFlags, cuGraphInstantiateWithFlags);
SAME(hipGraphLaunch, cuGraphLaunch);
SAME(hipGraphExecDestroy, cuGraphExecDestroy);
SAME(hipGraphDestroy, cuGraphDestroy);

// What differs.
EXPORT int hipDriverGetVersion(int* version) {
  if (const int code = enter("hipDriverGetVersion")) return code;
  *version = 60342131;
  return 0;
}
EXPORT const char* hipGetErrorName(int code) {
  return code == 700 ? "hipErrorIllegalAddress" : code == 2 ? "hipErrorOutOfMemory" : "hipErrorOther";
}
EXPORT const char* hipGetErrorString(int) { return "words of the fake run time"; }
EXPORT int hipDeviceGetName(char* name, int size, int) {
  if (const int code = enter("hipDeviceGetName")) return code;
  std::strncpy(name, "AMD Instinct MI250X", static_cast<std::size_t>(size));
  return 0;
}
EXPORT int hipDeviceGetUuid(char* uuid, int device) {
  if (const int code = enter("hipDeviceGetUuid")) return code;
  std::memcpy(uuid, device == 0 ? "a1b2c3d4e5f60718" : "a1b2c3d4e5f60719", 16);
  return 0;
}
EXPORT int hipDeviceGetAttribute(int* value, int attribute, int) {
  if (const int code = enter("hipDeviceGetAttribute")) return code;
  static const std::map<int, int> values = {{19, 8 << 20}, {56, 1024},  {57, 2048}, {63, 110},
                                            {71, 65536},   {74, 65536}, {87, 64},   {10002, 65536}};
  const auto found = values.find(attribute);
  if (found == values.end()) return 1;
  *value = found->second;
  return 0;
}
EXPORT int hipGetDevicePropertiesR0600(void* structure, int device) {
  if (const int code = enter("hipGetDevicePropertiesR0600")) return code;
  return properties(structure, 1160, device);
}
EXPORT int hipGetDeviceProperties(void* structure, int device) {
  if (const int code = enter("hipGetDeviceProperties")) return code;
  return properties(structure, 396, device);
}
EXPORT int hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*, int threads, std::size_t) {
  if (const int code = enter_with_context("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor")) return code;
  *blocks = 2048 / threads;
  return 0;
}
std::vector<unsigned> last_mask;
EXPORT unsigned fake_hip_mask(unsigned word) { return last_mask.at(word); }
EXPORT int hipExtStreamCreateWithCUMask(void** stream, unsigned words, const unsigned* mask) {
  if (const int code = enter_with_context("hipExtStreamCreateWithCUMask")) return code;
  last_mask.assign(mask, mask + words);
  return cuStreamCreate(stream, 1);
}
EXPORT int hipModuleLoadDataEx(void** module, const void* image, unsigned count, int* options, void** values) {
  const char* bytes = static_cast<const char*>(image);
  if (std::memcmp(bytes, "\177ELF", 4) != 0) return cuModuleLoadDataEx(module, image, count, options, values);
  // a real one: it has the kernels that are named in it and that the host knows
  gpu();
  const std::string code(bytes, elf_size(bytes));
  std::string names;
  const std::string marker = ".kd";  // a kernel's descriptor is a symbol: "vector_add.kd"
  for (std::size_t at = 0; (at = code.find(marker, at)) != std::string::npos; ++at) {
    std::size_t begin = at;
    const auto in_name = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
    while (begin > 0 && in_name(static_cast<unsigned char>(code[begin - 1]))) --begin;
    if (begin < at) names += code.substr(begin, at - begin) + " ";
  }
  if (!names.empty()) names.pop_back();
  return cuModuleLoadDataEx(module, names.c_str(), 0, nullptr, nullptr);
}
EXPORT int hipModuleLoadData(void** module, const void* image) {
  return hipModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

// What hipcc builds into a program: a wrapper of its code, and functions of the host that stand for kernels. As in HIP,
// a function of the host is no hipFunction_t: only hipLaunchKernel takes it.
struct Registered {
  const void* image;
  std::map<const void*, std::string> names;
  void* module = nullptr;
};
std::vector<Registered*> registered;
EXPORT void** __hipRegisterFatBinary(const void* wrapper) {
  const void* image = nullptr;
  std::memcpy(&image, static_cast<const char*>(wrapper) + 8, sizeof image);
  registered.push_back(new Registered{image, {}});
  return reinterpret_cast<void**>(registered.back());
}
EXPORT void __hipRegisterFunction(void** modules, const void* function, char*, const char* name, unsigned, void*, void*,
                                  void*, void*, int*) {
  reinterpret_cast<Registered*>(modules)->names[function] = name;
}
EXPORT void __hipUnregisterFatBinary(void** modules) { std::erase(registered, reinterpret_cast<Registered*>(modules)); }
struct Extents {
  unsigned x, y, z;
};
EXPORT int hipLaunchKernel(const void* function, Extents grid, Extents block, void** parameters, std::size_t shared,
                           void* stream) {
  for (Registered* one : registered) {
    const auto found = one->names.find(function);
    if (found == one->names.end()) continue;
    void* kernel = nullptr;
    // a bundle's first entry
    std::uint64_t offset = 0;
    const char* image = static_cast<const char*>(one->image);
    if (std::memcmp(image, "\177ELF", 4) != 0) std::memcpy(&offset, image + 32, sizeof offset);
    if (!one->module)
      if (const int code = hipModuleLoadDataEx(&one->module, image + offset, 0, nullptr, nullptr)) return code;
    if (const int code = hipModuleGetFunction(&kernel, one->module, found->second.c_str())) return code;
    return hipModuleLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                 static_cast<unsigned>(shared), stream, parameters, nullptr);
  }
  return 98;  // hipErrorInvalidDeviceFunction
}
/// Takes threads in place of blocks.
EXPORT int hipExtModuleLaunchKernel(void* function, unsigned tx, unsigned ty, unsigned tz, unsigned bx, unsigned by,
                                    unsigned bz, std::size_t shared, void* stream, void** parameters, void** extra,
                                    void* start, void* stop, unsigned) {
  if (start || stop || tx % bx || ty % by || tz % bz) return 1;
  return hipModuleLaunchKernel(function, tx / bx, ty / by, tz / bz, bx, by, bz, static_cast<unsigned>(shared), stream,
                               parameters, extra);
}
EXPORT int hipGetProcAddress(const char* symbol, void** function, int, std::uint64_t, int*) {
  *function = std::string(symbol) == "hipLaunchKernel" ? reinterpret_cast<void*>(hipLaunchKernel) : nullptr;
  return *function ? 0 : 500;
}
