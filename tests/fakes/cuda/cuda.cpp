// A libcuda.so.1 without a GPU, for the logic around the driver: device memory is host memory, a stream runs
// at once (unless a test holds it, or it waits for an event on one that is held), and a kernel is one of a
// few known by name. It counts calls, keeps the rules that are easily broken (a current context, no work on a
// poisoned one, capture that must end), and faults where a kernel's name says so:
//   add_one(int* x, int n)   the honest one, but that blocks of 16 forget its last number     fault_address   illegal
//   address, sticky, seen at the next wait endless                  launch timeout            big_shared      fails
//   above 48 KiB unless the attribute is set add_struct({int* x; int n})   the same
//   add_far(int** x, int n)  adds where the address in x points
// code that NVRTC made has whichever of them is requested. Any function fails that fake_cuda_fail names, or
// FAKE_CUDA_FAIL="function=code", from its n-th call on with "function=code@n". FAKE_CUDA_LOG is a file for the name,
// the blocks and the threads of each launch that runs. FAKE_CUDA_SHARED is the static shared memory of a kernel, 512
// bytes otherwise. tests/fakes/hip is this driver under HIP's names, with kernels that run on the host.
// FAKE_CUDA_NO_DEVICE, FAKE_CUDA_NO_GRAPHS and FAKE_CUDA_NO_PARTS (green contexts) in the environment take those away.
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kPlainShared = 48 * 1024, kMostShared = 227 * 1024;

struct Function {
  std::string name;
  int dynamic_shared = kPlainShared;
  int carveout = -1, cluster = 1;
};
struct Module {
  std::map<std::string, Function> functions;
};
struct Launch {
  Function* function;
  std::vector<std::uint64_t> arguments;
  unsigned grid[3] = {}, block[3] = {};
  std::vector<std::string> values = {};  ///< of arguments, for what Hooks run
};
/// What a library around this one adds.
struct Hooks {
  /// Sizes of a kernel's arguments, for those that it runs.
  std::function<std::vector<std::size_t>(const std::string&)> sizes;
  std::function<bool(const Launch&)> run;  ///< false: not one of its own
  std::function<double()> milliseconds;    ///< the time, where it is not that of the kernels here
} hooks;
struct Graph {
  std::vector<Launch> launches;
};
struct Stream {
  bool capturing = false;
  Graph graph;
  int priority = 0;
  std::vector<unsigned> multiprocessors;  ///< that its kernels are kept to; none: all of them
  bool held = false;
  /// What is queued; each runs and says true, or says false while it has to wait.
  std::deque<std::function<bool()>> queue;
};
struct Event {
  double milliseconds = -1;
  long recorded = 0, passed = 0;  ///< how often
};

/// 144 bytes, as the driver's; a part is multiprocessors that follow each other.
struct Resource {
  int type;
  unsigned char internal[92];
  unsigned count, first;
  unsigned char rest[40];
};
static_assert(sizeof(Resource) == 144);
constexpr unsigned kMultiprocessors = 132, kUnit = 8;
struct Green {
  std::vector<unsigned> multiprocessors;
};

struct State {
  bool initialised = false;
  bool current = false;
  int retained = 0;
  int sticky = 0;   ///< a fault that has been seen: every call repeats it
  int pending = 0;  ///< a fault that the next wait will see
  double now_milliseconds = 0;
  std::map<std::string, long> counts;
  std::string failing;  ///< the function that fails, and with what
  int failure = 0;
  std::vector<Stream*> streams;
  std::map<std::uint64_t, std::pair<std::size_t, int>> memory;  ///< by address: bytes, device
  int greens = 0;                                               ///< green contexts that live
};
State state;
/// Of the counts and of what is current: a launcher's background thread loads code while the application launches.
std::mutex entering;

/// Of streams and memory, for programs that launch from several threads.
std::recursive_mutex driving;

/// Runs whatever may run.
void progress() {
  const std::lock_guard lock(driving);
  for (bool moved = true; moved;) {
    moved = false;
    for (Stream* stream : state.streams) {
      while (!stream->held && !stream->queue.empty() && stream->queue.front()()) {
        stream->queue.pop_front();
        moved = true;
      }
    }
  }
}
void enqueue(void* stream, std::function<void()> work) {
  const std::lock_guard lock(driving);
  static_cast<Stream*>(stream)->queue.push_back([work = std::move(work)] {
    work();
    return true;
  });
  progress();
}

/// FAKE_CUDA_FAIL
int requested_failure(const std::string& name) {
  static const char* const text = std::getenv("FAKE_CUDA_FAIL");
  if (!text || std::strncmp(text, (name + "=").c_str(), name.size() + 1) != 0) return 0;
  const char* const from = std::strchr(text, '@');
  return state.counts[name] >= (from ? std::atol(from + 1) : 1) ? std::atoi(text + name.size() + 1) : 0;
}

int enter(const char* name) {
  const std::lock_guard lock(entering);
  ++state.counts[name];
  if (const int code = requested_failure(name)) return code;
  if (state.failing == name) return state.failure;
  if (!state.initialised) return 3;
  return state.sticky;
}
/// What ends things ends them, whatever it answers.
int leave(const char* name) {
  const std::lock_guard lock(entering);
  ++state.counts[name];
  return state.failing == name ? state.failure : state.sticky;
}
int enter_with_context(const char* name) {
  if (const int code = enter(name)) return code;
  const std::lock_guard lock(entering);
  return state.current ? 0 : 201;
}
int surface() {
  if (state.pending) state.sticky = state.pending;
  state.pending = 0;
  return state.sticky;
}

double milliseconds() { return hooks.milliseconds ? hooks.milliseconds() : state.now_milliseconds; }

void run(const Launch& launch) {
  const std::string& name = launch.function->name;
  if (const char* log = std::getenv("FAKE_CUDA_LOG"))
    std::ofstream(log, std::ios::app) << name << ' ' << launch.grid[0] << 'x' << launch.block[0]
                                      << (launch.function->carveout >= 0 ? " carveout" : "")
                                      << (launch.function->cluster > 1 ? " cluster" : "") << '\n';
  if (hooks.run && hooks.run(launch)) return;
  state.now_milliseconds += 0.010;
  if (name == "add_one" || name == "add_struct" || name == "add_far") {
    auto* x = reinterpret_cast<int*>(launch.arguments[0]);
    if (name == "add_far") std::memcpy(&x, static_cast<const void*>(x), sizeof x);
    const int n = static_cast<int>(launch.arguments[1]);
    for (int i = 0; i < n - (launch.block[0] == 16 && launch.grid[0] > 1); ++i) ++x[i];
  } else if (name == "fault_address") {
    state.pending = 700;
  } else if (name == "endless") {
    state.pending = 702;
  }
}

}  // namespace

/// Calls of a function so far; launches inside graphs count as "kernel", graphs as their own.
EXPORT long fake_cuda_count(const char* name) { return state.counts[name]; }
/// As if the process had just begun: for tests that share one.
EXPORT void fake_cuda_reset() { state = {}; }
/// From now on this function answers with this code and does nothing; 0: it works again.
EXPORT void fake_cuda_fail(const char* name, int code) {
  state.failing = code ? name : "";
  state.failure = code;
}
/// Keeps what is queued on a stream from running, or lets it run.
EXPORT void fake_cuda_hold(void* stream, bool held) {
  static_cast<Stream*>(stream)->held = held;
  progress();
}
EXPORT int fake_cuda_priority(void* stream) { return static_cast<Stream*>(stream)->priority; }
EXPORT unsigned fake_cuda_multiprocessors(void* stream, unsigned* first) {
  const auto& list = static_cast<Stream*>(stream)->multiprocessors;
  if (!list.empty()) *first = list.front();
  return static_cast<unsigned>(list.size());
}
EXPORT int fake_cuda_greens() { return state.greens; }
EXPORT int fake_cuda_streams() { return static_cast<int>(state.streams.size()); }
EXPORT int fake_cuda_retained() { return state.retained; }
EXPORT bool fake_cuda_current() { return state.current; }
/// Memory that another library of the process allocates on a device.
EXPORT std::uint64_t fake_cuda_tensor(std::size_t bytes, int device) {
  const auto address = reinterpret_cast<std::uint64_t>(std::calloc(bytes, 1));
  state.memory[address] = {bytes, device};
  return address;
}

/// What CUPTI (tests/fakes/cupti) is told: a launch before (0) and behind (1) the driver's work, as the driver is given
/// it, and a code object's bytes.
struct Watcher {
  void (*launch)(int site, const char* symbol, const void* parameters, int* result) = nullptr;
  void (*code)(const void* bytes, std::size_t size) = nullptr;
} watcher;
EXPORT void fake_cuda_watch(const Watcher* given) { watcher = *given; }
/// With FAKE_CUDA_LAZY code is loaded when somebody first asks for a kernel's arguments, as the driver does with what
/// nvcc built in.
std::string lazy_image;
void load_lazily() {
  if (!lazy_image.empty() && watcher.code) watcher.code(lazy_image.c_str(), lazy_image.size() + 1);
  lazy_image.clear();
}

EXPORT int cuInit(unsigned) {
  const bool first = !state.initialised;
  state.initialised = true;
  if (const char* injected =
          first && !hooks.run ? std::getenv("CUDA_INJECTION64_PATH") : nullptr)  // as CUDA's driver does
    if (void* library = dlopen(injected, RTLD_NOW | RTLD_LOCAL))
      if (auto* begin = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))) begin();
  if (const int code = enter("cuInit")) return code;
  return std::getenv("FAKE_CUDA_NO_DEVICE") ? 100 : 0;
}
EXPORT int cuDriverGetVersion(int* version) {
  if (const int code = enter("cuDriverGetVersion")) return code;
  *version = 13000;
  return 0;
}
EXPORT int cuGetErrorName(int code, const char** name) {
  *name = code == 700   ? "CUDA_ERROR_ILLEGAL_ADDRESS"
          : code == 702 ? "CUDA_ERROR_LAUNCH_TIMEOUT"
          : code == 1   ? "CUDA_ERROR_INVALID_VALUE"
                        : "CUDA_ERROR_OTHER";
  return 0;
}
EXPORT int cuGetErrorString(int, const char** words) {
  *words = "words of the fake driver";
  return 0;
}
EXPORT int cuDeviceGetCount(int* count) {
  if (const int code = enter("cuDeviceGetCount")) return code;
  *count = 2;
  return 0;
}
EXPORT int cuDeviceGet(int* device, int number) {
  *device = number;
  return enter("cuDeviceGet");
}
EXPORT int cuDeviceGetName(char* name, int size, int) {
  if (const int code = enter("cuDeviceGetName")) return code;
  std::strncpy(name, "Fake H100", static_cast<std::size_t>(size));
  return 0;
}
EXPORT int cuDeviceGetUuid(unsigned char* uuid, int device) {
  if (const int code = enter("cuDeviceGetUuid")) return code;
  for (int i = 0; i < 16; ++i) uuid[i] = static_cast<unsigned char>(i * 16 + device);
  return 0;
}
EXPORT int cuDeviceGetUuid_v2(unsigned char* uuid, int device) { return cuDeviceGetUuid(uuid, device); }
EXPORT int cuDeviceGetPCIBusId(char* text, int, int device) {
  if (const int code = enter("cuDeviceGetPCIBusId")) return code;
  std::strcpy(text, device == 0 ? "0000:1B:00.0" : "0001:C3:00.0");
  return 0;
}
EXPORT int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  if (const int code = enter("cuDeviceTotalMem_v2")) return code;
  *bytes = std::size_t{80} << 30;
  return 0;
}
EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
  if (const int code = enter("cuDeviceGetAttribute")) return code;
  static const std::map<int, int> values = {{1, 1024},      {8, kPlainShared}, {10, 32},  {12, 65536}, {16, 132},
                                            {38, 52428800}, {39, 2048},        {75, 9},   {76, 0},     {81, 233472},
                                            {82, 65536},    {97, kMostShared}, {106, 32}, {120, 1}};
  const auto found = values.find(attribute);
  if (found == values.end()) return 1;
  *value = found->second;
  return 0;
}
EXPORT int cuDevicePrimaryCtxRetain(void** context, int) {
  if (const int code = enter("cuDevicePrimaryCtxRetain")) return code;
  *context = &state;
  ++state.retained;
  return 0;
}
EXPORT int cuDevicePrimaryCtxRelease_v2(int) {
  --state.retained;
  return leave("cuDevicePrimaryCtxRelease_v2");
}
EXPORT int cuDevicePrimaryCtxGetState(int, unsigned* flags, int* active) {
  *flags = 0;
  *active = state.retained > 0;
  return 0;
}
EXPORT int cuCtxSetCurrent(void* context) {
  if (const int code = enter("cuCtxSetCurrent")) return code;
  const std::lock_guard lock(entering);
  state.current = context == &state;
  return 0;
}
EXPORT int cuCtxGetCurrent(void** context) {
  const int code = enter("cuCtxGetCurrent");
  const std::lock_guard lock(entering);
  *context = state.current ? &state : nullptr;
  return code;
}
EXPORT int cuCtxSynchronize() {
  if (const int code = enter_with_context("cuCtxSynchronize")) return code;
  for (const Stream* stream : state.streams)
    if (!stream->queue.empty()) return 999;  // it would never return
  return surface();
}
EXPORT int cuPointerGetAttribute(void* value, int attribute, std::uint64_t address) {
  const auto after = state.memory.upper_bound(address);
  if (attribute != 9 || after == state.memory.begin()) return 1;
  const auto& [start, memory] = *std::prev(after);
  if (address >= start + memory.first) return 1;
  *static_cast<int*>(value) = memory.second;
  return enter_with_context("cuPointerGetAttribute");
}
EXPORT int cuModuleLoadDataEx(void** module, const void* image, unsigned, int*, void**) {
  if (const int code = enter_with_context("cuModuleLoadDataEx")) return code;
  // an image is a list of function names
  const std::string names(static_cast<const char*>(image));
  lazy_image = names;
  if (!std::getenv("FAKE_CUDA_LAZY")) load_lazily();
  if (names.starts_with("broken")) return 200;
  auto* made = new Module;
  if (names.starts_with("\x7f"
                        "ELF") ||
      names.starts_with("//")) {  // a real compiler's: its kernels are known by name
    for (const char* known : {"add_one", "add_struct", "add_far", "fault_address", "endless", "no_work"})
      made->functions[known] = Function{known};
    *module = made;
    return 0;
  }
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t end = std::min(names.find(' ', at), names.size());
    const std::string name = names.substr(at, end - at);
    made->functions[name] = Function{name};
    at = end + 1;
  }
  *module = made;
  return 0;
}
EXPORT int cuModuleLoadData(void** module, const void* image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}
EXPORT int cuModuleUnload(void* module) {
  delete static_cast<Module*>(module);
  return leave("cuModuleUnload");
}
EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
  if (const int code = enter_with_context("cuModuleGetFunction")) return code;
  auto& functions = static_cast<Module*>(module)->functions;
  const auto found = functions.find(name);
  if (found == functions.end()) return 500;
  *function = &found->second;
  return 0;
}
EXPORT int cuKernelGetAttribute(int* value, int attribute, void*, int) {
  static const std::map<int, int> values = {{0, 1024}, {1, 512}, {3, 16}, {4, 42}};
  const auto found = values.find(attribute);
  if (found == values.end()) return 1;
  *value = found->second;
  if (const char* shared = std::getenv("FAKE_CUDA_SHARED"); shared && attribute == 1) *value = std::atoi(shared);
  return 0;
}
EXPORT int cuFuncGetAttribute(int* value, int attribute, void* function) {
  if (const int code = enter("cuFuncGetAttribute")) return code;
  return cuKernelGetAttribute(value, attribute, function, 0);
}
EXPORT int cuFuncSetAttribute(void* function, int attribute, int value) {
  if (const int code = enter_with_context("cuFuncSetAttribute")) return code;
  auto* set = static_cast<Function*>(function);
  if (attribute == 8 && value <= kMostShared)
    set->dynamic_shared = value;
  else if (attribute == 9 && value <= 100)
    set->carveout = value;
  else if (attribute == 11 && value <= 8)
    set->cluster = value;
  else if ((attribute != 12 && attribute != 13) || value != 1)
    return 1;
  return 0;
}
static int launch_kernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                         unsigned shared, void* stream, void** parameters) {
  if (const int code = enter_with_context("cuLaunchKernel")) return code;
  const std::lock_guard lock(driving);
  auto* called = static_cast<Function*>(function);
  if (gx * gy * gz == 0 || bx * by * bz > 1024 || static_cast<int>(shared) > called->dynamic_shared ||
      gx % static_cast<unsigned>(called->cluster) != 0)
    return 1;
  Launch launch{called, {}, {gx, gy, gz}, {bx, by, bz}};
  if (called->name.starts_with("add_")) {
    std::uint64_t address = 0;
    std::int32_t n = 0;
    std::memcpy(&address, parameters[0], sizeof address);
    const bool whole = called->name == "add_struct";
    std::memcpy(&n, whole ? static_cast<char*>(parameters[0]) + 8 : parameters[1], sizeof n);
    launch.arguments = {address, static_cast<std::uint64_t>(n)};
  }
  if (hooks.sizes)
    for (const std::size_t size : hooks.sizes(called->name))
      launch.values.emplace_back(static_cast<const char*>(parameters[launch.values.size()]), size);
  auto* queue = static_cast<Stream*>(stream);
  if (queue->capturing) {
    queue->graph.launches.push_back(launch);
  } else {
    enqueue(stream, [launch] {
      ++state.counts["kernel"];
      run(launch);
    });
  }
  return 0;
}
EXPORT int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned shared, void* stream, void** parameters, void** extra) {
  const struct {
    void* function;
    unsigned sizes[7];
    void* stream;
    void** parameters;
    void** extra;
  } given{function, {gx, gy, gz, bx, by, bz, shared}, stream, parameters, extra};
  void* packed[2] = {};
  for (void** one = extra; !parameters && one && *one; one += 2)
    if (*one == reinterpret_cast<void*>(1)) {  // add_one's
      packed[0] = one[1];
      packed[1] = static_cast<char*>(one[1]) + 8;
    }
  const auto tell = [&](int site, int* result) {
    if (watcher.launch) watcher.launch(site, static_cast<Function*>(function)->name.c_str(), &given, result);
  };
  tell(0, nullptr);
  int code = launch_kernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters ? parameters : packed);
  tell(1, &code);
  return code;
}
struct LaunchConfiguration {
  unsigned grid[3], block[3], shared;
  void *stream, *attributes;
  unsigned count;
};
EXPORT int cuLaunchKernelEx(const LaunchConfiguration* given, void* function, void** parameters, void** extra) {
  if (given->count > 0) return 1;
  const unsigned *grid = given->grid, *block = given->block;
  return cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], given->shared, given->stream,
                        parameters, extra);
}
EXPORT int cuFuncGetParamInfo(void* function, std::size_t index, std::size_t* offset, std::size_t* size) {
  load_lazily();
  const std::string& name = static_cast<Function*>(function)->name;
  *offset = 8 * index;
  *size = name == "add_struct" ? 16 : index == 0 ? 8 : 4;
  return index < (name == "add_struct" ? 1u : name.starts_with("add_") ? 2u : 0u) ? 0 : 1;
}
EXPORT int cuMemGetAddressRange_v2(std::uint64_t* begin, std::size_t* bytes, std::uint64_t address) {
  const std::lock_guard lock(driving);
  const auto after = state.memory.upper_bound(address);
  if (after == state.memory.begin()) return 500;
  const auto& [start, memory] = *std::prev(after);
  if (address >= start + memory.first) return 500;
  *begin = start;
  *bytes = memory.first;
  return 0;
}
EXPORT int cuMemcpyDtoH_v2(void* to, std::uint64_t from, std::size_t bytes) {
  if (const int code = enter_with_context("cuMemcpyDtoH_v2")) return code;
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return 0;
}
EXPORT int cuCtxGetDevice(int* device) {
  *device = 0;
  return enter_with_context("cuCtxGetDevice");
}
EXPORT int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  if (const int code = enter_with_context("cuMemAlloc_v2")) return code;
  if (bytes > std::size_t{80} << 30) return 2;
  const std::lock_guard lock(driving);
  *address = reinterpret_cast<std::uint64_t>(std::malloc(bytes));
  state.memory[*address] = {bytes, 0};
  return 0;
}
EXPORT int cuMemFree_v2(std::uint64_t address) {
  const std::lock_guard lock(driving);
  state.memory.erase(address);
  std::free(reinterpret_cast<void*>(address));
  return leave("cuMemFree_v2");
}
EXPORT int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void* stream) {
  if (const int code = enter_with_context("cuMemcpyHtoDAsync_v2")) return code;
  enqueue(stream, [=] { std::memcpy(reinterpret_cast<void*>(to), from, bytes); });
  return 0;
}
EXPORT int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void* stream) {
  if (const int code = enter_with_context("cuMemcpyDtoHAsync_v2")) return code;
  enqueue(stream, [=] { std::memcpy(to, reinterpret_cast<void*>(from), bytes); });
  return 0;
}
EXPORT int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* stream) {
  if (const int code = enter_with_context("cuMemcpyDtoDAsync_v2")) return code;
  enqueue(stream, [=] { std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes); });
  return 0;
}
EXPORT int cuMemsetD8Async(std::uint64_t to, unsigned char byte, std::size_t bytes, void* stream) {
  if (const int code = enter_with_context("cuMemsetD8Async")) return code;
  enqueue(stream, [=] { std::memset(reinterpret_cast<void*>(to), byte, bytes); });
  return 0;
}
EXPORT int cuStreamCreate(void** stream, unsigned) {
  if (const int code = enter_with_context("cuStreamCreate")) return code;
  auto* made = new Stream;
  state.streams.push_back(made);
  *stream = made;
  return 0;
}
EXPORT int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  if (const int code = enter_with_context("cuStreamCreateWithPriority")) return code;
  const int code = cuStreamCreate(stream, flags);
  if (code == 0) static_cast<Stream*>(*stream)->priority = priority;
  return code;
}
EXPORT int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return enter_with_context("cuCtxGetStreamPriorityRange");
}
EXPORT int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
  if (const int code = enter_with_context("cuLaunchHostFunc")) return code;
  enqueue(stream, [=] { function(data); });
  return 0;
}
EXPORT int cuStreamDestroy_v2(void* stream) {
  std::erase(state.streams, static_cast<Stream*>(stream));
  delete static_cast<Stream*>(stream);
  return leave("cuStreamDestroy_v2");
}
EXPORT int cuStreamSynchronize(void* stream) {
  if (const int code = enter_with_context("cuStreamSynchronize")) return code;
  const std::lock_guard lock(driving);
  if (static_cast<Stream*>(stream)->capturing) return 900;
  if (!static_cast<Stream*>(stream)->queue.empty()) return 999;  // it would never return
  return surface();
}
EXPORT int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  if (const int code = enter_with_context("cuStreamWaitEvent")) return code;
  const auto* awaited = static_cast<Event*>(event);
  static_cast<Stream*>(stream)->queue.push_back(
      [awaited, wanted = awaited->recorded] { return awaited->passed >= wanted; });
  progress();
  return 0;
}
EXPORT int cuEventCreate(void** event, unsigned) {
  if (const int code = enter_with_context("cuEventCreate")) return code;
  *event = new Event;
  return 0;
}
EXPORT int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return leave("cuEventDestroy_v2");
}
EXPORT int cuEventRecord(void* event, void* stream) {
  if (const int code = enter_with_context("cuEventRecord")) return code;
  auto* recorded = static_cast<Event*>(event);
  enqueue(stream, [recorded, number = ++recorded->recorded] {
    recorded->passed = number;
    recorded->milliseconds = milliseconds();
  });
  return 0;
}
EXPORT int cuEventQuery(void* event) {
  if (const int code = enter_with_context("cuEventQuery")) return code;
  if (static_cast<Event*>(event)->passed < static_cast<Event*>(event)->recorded) return 600;
  return surface();
}
EXPORT int cuEventElapsedTime(float* milliseconds, void* start, void* stop) {
  if (const int code = enter_with_context("cuEventElapsedTime")) return code;
  const auto *a = static_cast<Event*>(start), *b = static_cast<Event*>(stop);
  if (a->milliseconds < 0 || b->milliseconds < 0) return 400;
  *milliseconds = static_cast<float>(b->milliseconds - a->milliseconds);
  return 0;
}
EXPORT int cuStreamBeginCapture_v2(void* stream, int) {
  if (const int code = enter_with_context("cuStreamBeginCapture_v2")) return code;
  if (std::getenv("FAKE_CUDA_NO_GRAPHS")) return 801;
  static_cast<Stream*>(stream)->capturing = true;
  static_cast<Stream*>(stream)->graph = {};
  return 0;
}
EXPORT int cuStreamIsCapturing(void* stream, int* status) {
  *status = static_cast<Stream*>(stream)->capturing ? 1 : 0;
  return enter_with_context("cuStreamIsCapturing");
}
EXPORT int cuStreamEndCapture(void* stream, void** graph) {
  auto* queue = static_cast<Stream*>(stream);
  const bool capturing = queue->capturing;
  queue->capturing = false;
  if (const int code = enter_with_context("cuStreamEndCapture")) return code;
  if (!capturing) return 903;
  *graph = new Graph(queue->graph);
  return 0;
}
EXPORT int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  if (const int code = enter_with_context("cuGraphInstantiateWithFlags")) return code;
  *executable = new Graph(*static_cast<Graph*>(graph));
  return 0;
}
EXPORT int cuGraphCreate(void** graph, unsigned) {
  *graph = new Graph;
  return enter_with_context("cuGraphCreate");
}
struct KernelNode {
  void* function;
  unsigned grid[3], block[3], shared;
  void **parameters, **extra, *kernel, *context;
};
EXPORT int cuGraphAddKernelNode_v2(void** node, void* graph, void* const*, std::size_t, const KernelNode* given) {
  if (const int code = enter_with_context("cuGraphAddKernelNode_v2")) return code;
  Stream recording;
  recording.capturing = true;
  const unsigned *grid = given->grid, *block = given->block;
  const int code = launch_kernel(given->function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                 given->shared, &recording, given->parameters);
  auto& launches = static_cast<Graph*>(graph)->launches;
  launches.insert(launches.end(), recording.graph.launches.begin(), recording.graph.launches.end());
  *node = graph;
  return code;
}
EXPORT int cuGraphLaunch(void* executable, void* stream) {
  if (const int code = enter_with_context("cuGraphLaunch")) return code;
  enqueue(stream, [launches = static_cast<Graph*>(executable)->launches] {
    for (const auto& launch : launches) {
      ++state.counts["kernel"];
      run(launch);
    }
  });
  return 0;
}
EXPORT int cuGraphExecDestroy(void* executable) {
  delete static_cast<Graph*>(executable);
  return leave("cuGraphExecDestroy");
}
EXPORT int cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return leave("cuGraphDestroy");
}

EXPORT int cuDeviceGetDevResource(int, Resource* resource, int type) {
  if (std::getenv("FAKE_CUDA_NO_PARTS")) return 801;
  if (type != 1) return 1;
  *resource = {};
  resource->type = 1;
  resource->count = kMultiprocessors;
  return enter("cuDeviceGetDevResource");
}
EXPORT int cuDevSmResourceSplitByCount(Resource* parts, unsigned* groups, const Resource* input, Resource* rest,
                                       unsigned, unsigned least) {
  if (input->type != 1 || input->count != kMultiprocessors) return 1;  // what was split is not split again
  const unsigned size = std::max(kUnit, (least + kUnit - 1) / kUnit * kUnit), most = input->count / size;
  if (!parts) {
    *groups = most;
    return 0;
  }
  *groups = std::min(*groups, most);
  for (unsigned i = 0; i < *groups; ++i) parts[i] = {1, {}, size, i * size, {}};
  if (rest) *rest = {1, {}, input->count - *groups * size, *groups * size, {}};
  return enter("cuDevSmResourceSplitByCount");
}
EXPORT int cuDevResourceGenerateDesc(void** description, const Resource* resources, unsigned count) {
  auto* made = new Green;
  for (unsigned i = 0; i < count; ++i)
    for (unsigned m = 0; m < resources[i].count; ++m) made->multiprocessors.push_back(resources[i].first + m);
  *description = made;
  return made->multiprocessors.empty() ? 1 : enter("cuDevResourceGenerateDesc");
}
EXPORT int cuGreenCtxCreate(void** context, void* description, int, unsigned flags) {
  if (flags != 1) return 1;
  *context = description;
  ++state.greens;
  return enter_with_context("cuGreenCtxCreate");
}
EXPORT int cuGreenCtxDestroy(void* context) {
  --state.greens;
  delete static_cast<Green*>(context);
  return state.sticky;
}
EXPORT int cuGreenCtxStreamCreate(void** stream, void* context, unsigned flags, int priority) {
  if (flags != 1) return 1;
  const int code = cuStreamCreateWithPriority(stream, flags, priority);
  static_cast<Stream*>(*stream)->multiprocessors = static_cast<Green*>(context)->multiprocessors;
  return code;
}

/// For programs that find everything by it; not by dlsym(), which may be another's.
EXPORT int cuGetProcAddress_v2(const char* symbol, void** function, int, std::uint64_t, int*) {
  const auto address = [](auto* known) { return reinterpret_cast<void*>(known); };
  static const std::map<std::string, void*> functions = {
      {"cuInit", address(cuInit)},
      {"cuDevicePrimaryCtxRetain", address(cuDevicePrimaryCtxRetain)},
      {"cuDevicePrimaryCtxRelease_v2", address(cuDevicePrimaryCtxRelease_v2)},
      {"cuModuleLoadDataEx", address(cuModuleLoadDataEx)},
      {"cuModuleUnload", address(cuModuleUnload)},
      {"cuModuleGetFunction", address(cuModuleGetFunction)},
      {"cuStreamCreateWithPriority", address(cuStreamCreateWithPriority)},
      {"cuCtxSetCurrent", address(cuCtxSetCurrent)},
      {"cuLaunchKernel", address(cuLaunchKernel)},
      {"cuMemAlloc_v2", address(cuMemAlloc_v2)}};
  const auto found = functions.find(symbol);
  *function = found == functions.end() ? nullptr : found->second;
  return *function ? 0 : 500;
}
