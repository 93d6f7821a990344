/* An application with a tuned kernel: launches add_one twice, by two kernels, writes the file READY and waits to be
   killed.

     launcher_application FOLDER READY [by-environment | ROUNDS MEGA_CYCLES SECONDS]

   With ROUNDS it launches add_one and light.toml's kernel in turn, and ends. A launch of add_one takes the fake GPU
   MEGA_CYCLES of its clock at full activity, one of the other kernel SECONDS at an activity of 0.3.

   FOLDER has add.toml, wisdom and the cache; warnings go to READY.warnings. The clocks of the wisdom are asked for
   here, or left to the environment. ERGOTUNE_CUDA names the driver. */
#include <dlfcn.h>
#include <ergotune/launcher.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void* entry(void* driver, const char* name) {
  void* function = dlsym(driver, name);
  if (!function) fprintf(stderr, "no %s\n", name), exit(9);
  return function;
}

static void play_rounds(const char* folder, ergotune_options* options, void* stream, const ergotune_argument* arguments,
                        char** numbers) {
  char problem[4096];
  void* nvml = dlopen(getenv("ERGOTUNE_NVML"), RTLD_NOW);
  void (*work)(double, double, double) = entry(nvml, "fake_nvml_work");
  const double cycles = atof(numbers[1]), seconds = atof(numbers[2]);
  ergotune_kernel* kernels[2];
  for (int i = 0; i < 2; ++i) {
    snprintf(problem, sizeof problem, "%s/%s.toml", folder, i == 0 ? "add" : "light");
    kernels[i] = ergotune_kernel_open(problem, options);
    if (!kernels[i] || ergotune_kernel_prepare(kernels[i], stream, arguments, 2) != 0)
      fprintf(stderr, "%s\n", ergotune_error()), exit(7);
  }
  for (int round = 0; round < atoi(numbers[0]); ++round)
    for (int i = 0; i < 2; ++i) {
      if (ergotune_kernel_launch(kernels[i], stream, arguments, 2) != 0) exit(7);
      work(i == 0 ? cycles : 0, i == 0 ? 0 : seconds, i == 0 ? 1 : 0.3);
    }
}

static void warn(const char* message, void* file) {
  FILE* out = fopen(file, "a");
  if (out) fprintf(out, "%s\n", message), fclose(out);
}

int main(int argc, char** argv) {
  if (argc < 3) return 9;
  char problem[4096], cache[4096], warnings[4096];
  snprintf(problem, sizeof problem, "%s/add.toml", argv[1]);
  snprintf(cache, sizeof cache, "%s/cache", argv[1]);
  snprintf(warnings, sizeof warnings, "%s.warnings", argv[2]);
  void* driver = dlopen(getenv("ERGOTUNE_CUDA"), RTLD_NOW);
  if (!driver) return 9;
  int (*init)(unsigned) = entry(driver, "cuInit");
  int (*retain)(void**, int) = entry(driver, "cuDevicePrimaryCtxRetain");
  int (*make_current)(void*) = entry(driver, "cuCtxSetCurrent");
  int (*allocate)(uint64_t*, size_t) = entry(driver, "cuMemAlloc_v2");
  int (*make_stream)(void**, unsigned, int) = entry(driver, "cuStreamCreateWithPriority");
  void *context = NULL, *stream = NULL;
  uint64_t memory = 0;
  if (init(0) || retain(&context, 0) || make_current(context) || allocate(&memory, 64 * sizeof(int)) ||
      make_stream(&stream, 1, 0))
    return 8;
  ergotune_options options = {.size = sizeof options, .cache = cache, .warn = warn, .data = warnings};
  options.clocks = argc != 4;
  int count = 64;
  const ergotune_argument arguments[] = {{&memory, sizeof memory}, {&count, sizeof count}};
  if (argc > 5) play_rounds(argv[1], &options, stream, arguments, argv + 3);
  for (int i = 0; i < 2 && argc <= 5; ++i) {
    ergotune_kernel* kernel = ergotune_kernel_open(problem, &options);
    if (!kernel || ergotune_kernel_launch(kernel, stream, arguments, 2) != 0) {
      fprintf(stderr, "%s\n", ergotune_error());
      return 7;
    }
  }
  FILE* ready = fopen(argv[2], "w");
  if (!ready) return 9;
  fclose(ready);
  while (argc <= 5) pause();
}
