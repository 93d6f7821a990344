/* A CUDA program that knows nothing of ergotune: opens the driver (ERGOTUNE_CUDA names a fake one), loads a code object
   and launches its kernel add_one(int* x, int n) three times. Prints the sum of x. What it does otherwise:
     idle              launches nothing             proc-address    finds the driver's functions as the runtime does
     extended          cuLaunchKernelEx             graph           launches once, then records a graph and launches it
     nodes             the same, with the graph's nodes made one by one
     packed            arguments in one piece       steps N         so many launches, of 32 and of 64 numbers in turn
     threads           four threads launch          fork            a child ends with 5 before the launches
     reload            ends its context, loads again    end N           ends with N
     addresses         x holds an address, which changes
     pointers          launches add_far, whose argument points to the address of y
     abort           ends by a signal behind the launches
     nvrtc LIBRARY     compiles its kernel with NVRTC
     structure         launches add_struct, whose one argument is a structure with an address */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void* driver;
static int (*proc_address)(const char*, void**, int, uint64_t, int*);
static void* entry(const char* name) {
  void* function = NULL;
  if (proc_address)
    proc_address(name, &function, 13000, 0, NULL);
  else
    function = dlsym(driver, name);
  if (!function) fprintf(stderr, "no %s\n", name), exit(9);
  return function;
}

typedef int Launch(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
static Launch* launch;
static void *context, *function, *stream;
static int (*make_current)(void*);
static const char kImage[256] =
    "\x7f"
    "ELF.text.add_one";
static const char kStructures[256] =
    "\x7f"
    "ELF.text.add_struct";

static const char kPointers[256] =
    "\x7f"
    "ELF.text.add_far";

static uint64_t numbers(int n) {
  int (*allocate)(uint64_t*, size_t) = entry("cuMemAlloc_v2");
  uint64_t x = 0;
  if (allocate(&x, sizeof(int) * (size_t)n)) exit(8);
  for (int i = 0; i < n; ++i) ((int*)(uintptr_t)x)[i] = i; /* the fake device's memory is the host's */
  return x;
}
static int sum_of(uint64_t x, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += ((int*)(uintptr_t)x)[i];
  return sum;
}
static void add_one(uint64_t x, int n) {
  void* arguments[] = {&x, &n};
  if (launch(function, (unsigned)n / 8, 1, 1, 8, 1, 1, 0, stream, arguments, NULL)) exit(7);
}
static void* in_thread(void* x) {
  make_current(context);
  for (int i = 0; i < 50; ++i) add_one((uint64_t)(uintptr_t)x, 32);
  return NULL;
}

static void* compiled(const char* library, void** code) {
  void* nvrtc = dlopen(library, RTLD_NOW);
  const char* source =
      "extern \"C\" __global__ void add_one(int* x, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) x[i] += 1;\n}\n";
  const char* options[] = {"--gpu-architecture=sm_90"};
  void* program = NULL;
  size_t size = 0;
  if (!nvrtc) exit(6);
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*) =
      dlsym(nvrtc, "nvrtcCreateProgram");
  int (*compile)(void*, int, const char* const*) = dlsym(nvrtc, "nvrtcCompileProgram");
  int (*get_size)(void*, size_t*) = dlsym(nvrtc, "nvrtcGetCUBINSize");
  int (*get)(void*, char*) = dlsym(nvrtc, "nvrtcGetCUBIN");
  if (create(&program, source, "add_one.cu", 0, NULL, NULL) || compile(program, 1, options) || get_size(program, &size))
    exit(6);
  *code = malloc(size);
  if (get(program, *code)) exit(6);
  return *code;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? atoi(argv[2]) : 0;
  driver = dlopen(getenv("ERGOTUNE_CUDA"), RTLD_NOW);
  if (!driver) return 9;
  if (strcmp(how, "proc-address") == 0) proc_address = entry("cuGetProcAddress_v2");
  int (*init)(unsigned) = entry("cuInit");
  int (*retain)(void**, int) = entry("cuDevicePrimaryCtxRetain");
  int (*load)(void**, const void*, unsigned, int*, void**) = entry("cuModuleLoadDataEx");
  int (*unload)(void*) = entry("cuModuleUnload"), (*release)(int) = entry("cuDevicePrimaryCtxRelease_v2");
  int (*find)(void**, void*, const char*) = entry("cuModuleGetFunction");
  int (*make_stream)(void**, unsigned, int) = entry("cuStreamCreateWithPriority");
  make_current = entry("cuCtxSetCurrent");
  launch = (Launch*)entry("cuLaunchKernel");
  void *module = NULL, *code = NULL;
  const int in_structure = strcmp(how, "structure") == 0, pointers = strcmp(how, "pointers") == 0;
  const void* image = strcmp(how, "nvrtc") == 0 ? compiled(argv[2], &code)
                      : in_structure            ? kStructures
                      : pointers                ? kPointers
                                                : kImage;
  if (init(0) || retain(&context, 0) || make_current(context) || load(&module, image, 0, NULL, NULL) ||
      find(&function, module,
           in_structure ? "add_struct"
           : pointers   ? "add_far"
                        : "add_one") ||
      make_stream(&stream, 1, 0))
    return 8;
  if (strcmp(how, "idle") == 0) return 0;
  if (strcmp(how, "fork") == 0) {
    const int child = fork();
    int status = 0;
    if (child == 0) _exit(dlsym(driver, "cuLaunchKernel") ? 5 : 6);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 5) return 4;
  }
  const int n = 32;
  const uint64_t x = numbers(n), y = numbers(2 * n);
  if (strcmp(how, "addresses") == 0) *(uint64_t*)(uintptr_t)(x + 64) = y;
  if (pointers) *(uint64_t*)(uintptr_t)x = y;
  int launches = strcmp(how, "steps") == 0 ? number : 3;
  if (strcmp(how, "threads") == 0) {
    pthread_t threads[4];
    uint64_t own[4];
    for (int i = 0; i < 4; ++i) own[i] = numbers(n);
    for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, in_thread, (void*)(uintptr_t)own[i]);
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; ++i) printf("sum %d\n", sum_of(own[i], n));
  }
  for (int i = 0; i < launches; ++i) {
    uint64_t at = x;
    int count = n;
    size_t size = 12;
    struct {
      uint64_t x;
      int n;
    } packed = {x, n};
    void *whole[] = {&packed}, *extra[] = {(void*)1, &packed, (void*)2, &size, NULL}, *arguments[] = {&at, &count};
    struct {
      unsigned grid[3], block[3], shared;
      void *stream, *attributes;
      unsigned attribute_count;
    } configuration = {{4, 1, 1}, {8, 1, 1}, 0, stream, NULL, 0};
    if (strcmp(how, "extended") == 0) {
      int (*launch_extended)(const void*, void*, void**, void**) = entry("cuLaunchKernelEx");
      if (launch_extended(&configuration, function, arguments, NULL)) return 7;
    } else if (strcmp(how, "packed") == 0) {
      if (launch(function, 4, 1, 1, 8, 1, 1, 0, stream, NULL, extra)) return 7;
    } else if (strcmp(how, "nodes") == 0 && i > 0) {
      int (*create)(void**, unsigned) = entry("cuGraphCreate");
      int (*add)(void**, void*, const void*, size_t, const void*) = entry("cuGraphAddKernelNode_v2");
      int (*instantiate)(void**, void*, unsigned long long) = entry("cuGraphInstantiateWithFlags");
      int (*run)(void*, void*) = entry("cuGraphLaunch");
      void *graph = NULL, *executable = NULL, *added = NULL;
      struct {
        void* function;
        unsigned grid[3], block[3], shared;
        void **parameters, **extra, *kernel, *context;
      } node = {function, {4, 1, 1}, {8, 1, 1}, 0, arguments, NULL, NULL, NULL};
      if (create(&graph, 0) || add(&added, graph, NULL, 0, &node) || instantiate(&executable, graph, 0) ||
          run(executable, stream))
        return 6;
    } else if (in_structure) {
      if (launch(function, 4, 1, 1, 8, 1, 1, 0, stream, whole, NULL)) return 7;
    } else if (strcmp(how, "graph") == 0 && i > 0) {
      int (*begin)(void*, int) = entry("cuStreamBeginCapture_v2");
      int (*end)(void*, void**) = entry("cuStreamEndCapture");
      int (*instantiate)(void**, void*, unsigned long long) = entry("cuGraphInstantiateWithFlags");
      int (*run)(void*, void*) = entry("cuGraphLaunch");
      void *graph = NULL, *executable = NULL;
      if (begin(stream, 0)) return 6;
      add_one(x, n);
      if (end(stream, &graph) || instantiate(&executable, graph, 0) || run(executable, stream)) return 6;
    } else if (strcmp(how, "steps") == 0 && i % 2) {
      add_one(y, 2 * n);
    } else {
      add_one(x, n);
    }
    if (strcmp(how, "reload") == 0 && (unload(module) || release(0) || retain(&context, 0) ||
                                       load(&module, kImage, 0, NULL, NULL) || find(&function, module, "add_one")))
      return 8;
  }
  if (strcmp(how, "addresses") == 0) *(uint64_t*)(uintptr_t)(x + 64) = 0;
  if (pointers) *(uint64_t*)(uintptr_t)x = 0;
  printf("sum %d %d\n", sum_of(x, n), sum_of(y, 2 * n));
  fflush(stdout);
  free(code);
  if (strcmp(how, "abort") == 0) abort();
  return strcmp(how, "end") == 0 ? number : 0;
}
