/* A HIP program that knows nothing of ergotune: opens the run time (ERGOTUNE_HIP names a fake one) and launches
   doubled(float* y, const float* x, int n) three times, in blocks of 256. Prints the sum of y.
     compile FILE     writes the kernel's code object, as hiprtc makes it (HIPRTC names its library), and ends
     source           compiles the kernel with hiprtc and launches a module's function
     module FILE      loads the code object and launches a module's function
     built FILE       registers the code object in a bundle, as hipcc does, and launches the host's function
     graph FILE       the same; the second launch is recorded into a graph, which is launched twice
     proc-address FILE the same, with hipGetProcAddress
     extended FILE    the same as module, with hipExtModuleLaunchKernel
     in-place FILE    the same as built, with y = x
     end FILE N       the same as built, and ends with N */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void* library;
static void* entry(const char* name) {
  void* function = dlsym(library, name);
  if (!function) fprintf(stderr, "no %s\n", name), exit(9);
  return function;
}

static char* code_of(size_t* size) {
  const char* source =
      "extern \"C\" __global__ void doubled(float* y, const float* x, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) y[i] = 2 * x[i];\n}\n";
  const char* options[] = {"--offload-arch=gfx90a"};
  void *rtc = dlopen(getenv("HIPRTC"), RTLD_NOW | RTLD_LOCAL), *program = NULL;
  if (!rtc) exit(6);
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*) =
      dlsym(rtc, "hiprtcCreateProgram");
  int (*compile)(void*, int, const char* const*) = dlsym(rtc, "hiprtcCompileProgram");
  int (*get_size)(void*, size_t*) = dlsym(rtc, "hiprtcGetCodeSize");
  int (*get)(void*, char*) = dlsym(rtc, "hiprtcGetCode");
  if (create(&program, source, "doubled.hip", 0, NULL, NULL) || compile(program, 1, options) || get_size(program, size))
    exit(6);
  char* code = malloc(*size);
  if (get(program, code)) exit(6);
  return code;
}
static char* read_code(const char* name, size_t* size) {
  FILE* file = fopen(name, "rb");
  if (!file) exit(5);
  char* code = malloc(1 << 20);
  *size = fread(code, 1, 1 << 20, file);
  fclose(file);
  return code;
}

static void doubled(void) {}
struct Extents {
  unsigned x, y, z;
};
static int (*launch_host)(const void*, struct Extents, struct Extents, void**, size_t, void*);
static int (*launch_module)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                            void**);

/* A bundle of one entry, in the wrapper that a program has in its data. */
static void** register_code(const char* code, size_t size) {
  static struct {
    uint32_t magic, version;
    const void* image;
    void* unused;
  } wrapper = {0x48495046, 1, NULL, NULL};
  static const char kTriple[] = "hipv4-amdgcn-amd-amdhsa--gfx90a";
  const uint64_t numbers[] = {1, 4096, size, sizeof kTriple - 1};
  char* bundle = calloc(1, 4096 + size);
  memcpy(bundle, "__CLANG_OFFLOAD_BUNDLE__", 24);
  memcpy(bundle + 24, numbers, sizeof numbers);
  memcpy(bundle + 24 + sizeof numbers, kTriple, sizeof kTriple - 1);
  memcpy(bundle + 4096, code, size);
  wrapper.image = bundle;
  void** (*add)(const void*) = entry("__hipRegisterFatBinary");
  void (*add_function)(void**, const void*, const char*, const char*, unsigned, void*, void*, void*, void*, int*) =
      entry("__hipRegisterFunction");
  void** modules = add(&wrapper);
  add_function(modules, (const void*)doubled, "doubled", "doubled", ~0u, NULL, NULL, NULL, NULL, NULL);
  return modules;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  size_t size = 0;
  const int own = strcmp(how, "compile") == 0 || strcmp(how, "source") == 0;
  char* code = own ? code_of(&size) : argc > 2 ? read_code(argv[2], &size) : NULL;
  if (!code) return 2;
  if (strcmp(how, "compile") == 0) {
    FILE* file = fopen(argv[2], "wb");
    return !file || fwrite(code, 1, size, file) != size || fclose(file);
  }
  library = dlopen(getenv("ERGOTUNE_HIP"), RTLD_NOW);
  if (!library) return 9;
  const int graph = strcmp(how, "graph") == 0, built = graph || strcmp(how, "built") == 0 || strcmp(how, "end") == 0 ||
                                                       strcmp(how, "in-place") == 0 || strcmp(how, "proc-address") == 0;
  int (*init)(unsigned) = entry("hipInit"), (*retain)(void**, int) = entry("hipDevicePrimaryCtxRetain");
  int (*current)(void*) = entry("hipCtxSetCurrent"),
      (*make_stream)(void**, unsigned) = entry("hipStreamCreateWithFlags");
  int (*load)(void**, const void*) = entry("hipModuleLoadData");
  int (*find)(void**, void*, const char*) = entry("hipModuleGetFunction");
  int (*wait)(void*) = entry("hipStreamSynchronize");
  int (*allocate)(void**, size_t) = entry("hipMalloc"), (*unload)(void*) = entry("hipModuleUnload");
  int (*begin)(void*, int) = entry("hipStreamBeginCapture"), (*end)(void*, void**) = entry("hipStreamEndCapture");
  int (*instantiate)(void**, void*, unsigned long long) = entry("hipGraphInstantiateWithFlags");
  int (*run)(void*, void*) = entry("hipGraphLaunch");
  launch_module = entry("hipModuleLaunchKernel");
  launch_host = entry("hipLaunchKernel");
  int (*proc_address)(const char*, void**, int, uint64_t, int*) = entry("hipGetProcAddress");
  int (*launch_threads)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t, void*, void**,
                        void**, void*, void*, unsigned) = entry("hipExtModuleLaunchKernel");
  if (strcmp(how, "proc-address") == 0 && proc_address("hipLaunchKernel", (void**)&launch_host, 60200000, 0, NULL))
    return 8;
  void *context = NULL, *stream = NULL, *module = NULL, *function = NULL, *recorded = NULL, *executable = NULL;
  void** modules = built ? register_code(code, size) : NULL;
  if (init(0) || retain(&context, 0) || current(context) || make_stream(&stream, 1)) return 8;
  if (!built && (load(&module, code) || find(&function, module, "doubled"))) return 8;
  int n = 1024;
  float *x = NULL, *y = NULL;
  if (allocate((void**)&x, sizeof(float) * (size_t)n) || allocate((void**)&y, sizeof(float) * (size_t)n)) return 8;
  if (strcmp(how, "in-place") == 0) y = x;
  for (int i = 0; i < n; ++i) x[i] = (float)i, y[i] = 0; /* the fake device's memory is the host's */
  void* arguments[] = {&y, &x, &n};
  const struct Extents grid = {4, 1, 1}, block = {256, 1, 1};
  double sum = 0;
  for (int i = 0; i < 3; ++i) {
    const int recording = graph && i == 1;
    if (graph && i == 2) {
      if (run(executable, stream) || run(executable, stream)) return 7;
    } else {
      if (recording && begin(stream, 0)) return 7;
      if (strcmp(how, "extended") == 0
              ? launch_threads(function, 1024, 1, 1, 256, 1, 1, 0, stream, arguments, NULL, NULL, NULL, 0)
          : built ? launch_host((const void*)doubled, grid, block, arguments, 0, stream)
                  : launch_module(function, 4, 1, 1, 256, 1, 1, 0, stream, arguments, NULL))
        return 7;
      if (recording && (end(stream, &recorded) || instantiate(&executable, recorded, 0))) return 7;
    }
    if (wait(stream)) return 6;
    for (int k = 0; k < n; ++k) sum += y[k], y[k] = 0, x[k] += 1;
  }
  printf("sum %.0f\n", sum);
  fflush(stdout);
  if (modules) ((void (*)(void**))entry("__hipUnregisterFatBinary"))(modules);
  if (module && unload(module)) return 5;
  free(code);
  return strcmp(how, "end") == 0 ? atoi(argv[3]) : 0;
}
