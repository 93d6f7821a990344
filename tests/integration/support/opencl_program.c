/* An OpenCL program that knows nothing of ergotune: what tests capture, and run tuned. Prints a sum of its results.
   opencl_program HOW [N] [EXIT CODE]; HOW is one of those in main(). */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void* Handle;
extern int clGetPlatformIDs(unsigned, Handle*, unsigned*);
extern int clGetDeviceIDs(Handle, uint64_t, unsigned, Handle*, unsigned*);
extern Handle clCreateContext(const intptr_t*, unsigned, const Handle*, void*, void*, int*);
extern int clReleaseContext(Handle);
extern Handle clCreateCommandQueue(Handle, Handle, uint64_t, int*);
extern int clReleaseCommandQueue(Handle);
extern Handle clCreateBuffer(Handle, uint64_t, size_t, void*, int*);
extern Handle clCreateSubBuffer(Handle, uint64_t, unsigned, const void*, int*);
extern int clReleaseMemObject(Handle);
extern Handle clCreateProgramWithSource(Handle, unsigned, const char**, const size_t*, int*);
extern Handle clCreateProgramWithBinary(Handle, unsigned, const Handle*, const size_t*, const unsigned char**, int*,
                                        int*);
extern int clGetProgramInfo(Handle, unsigned, size_t, void*, size_t*);
extern int clBuildProgram(Handle, unsigned, const Handle*, const char*, void*, void*);
extern int clReleaseProgram(Handle);
extern Handle clCreateKernel(Handle, const char*, int*);
extern int clReleaseKernel(Handle);
extern int clSetKernelArg(Handle, unsigned, size_t, const void*);
extern int clSetKernelArgSVMPointer(Handle, unsigned, const void*);
extern void* clSVMAlloc(Handle, uint64_t, size_t, unsigned);
extern int clEnqueueNDRangeKernel(Handle, Handle, unsigned, const size_t*, const size_t*, const size_t*, unsigned,
                                  const Handle*, Handle*);
extern int clEnqueueReadBuffer(Handle, Handle, unsigned, size_t, size_t, void*, unsigned, const Handle*, Handle*);
extern int clFinish(Handle);

static const char* kSource =
    "/* y = k*x + SHIFT, slowly */\n"
    "__kernel void scale(const float k, __global const float* x, __global float* y, int n) {\n"
    "  int i = get_global_id(0);\n"
    "  float sum = 0;\n"
    "  for (int j = 0; j < ROUNDS; ++j) sum += k * x[i] + SHIFT;\n"
    "  if (i < n) y[i] = sum / ROUNDS;\n"
    "}\n"
    "__kernel void fill(__global float* y, float4 v) { y[get_global_id(0)] = v.y; }\n";
static const char* kOther =
    "__kernel void scale(const float k, __global const float* x, __global float* y, int n) {\n"
    "  y[get_global_id(0)] = k * x[get_global_id(0)] - 1;\n}\n";
static const char* kGroup =
    "__kernel void turn(__global float* y, __local float* room) {\n"
    "  int i = get_local_id(0);\n  room[i] = y[get_global_id(0)];\n  barrier(CLK_LOCAL_MEM_FENCE);\n"
    "  y[get_global_id(0)] = room[get_local_size(0) - 1 - i];\n}\n";

static int n = 4096, in_place = 0, looked_up = 0;
static Handle device;

struct Work {
  Handle context, queue, program, x, y;
  float* host;
};

static void check(int code, const char* what) {
  if (code == 0) return;
  fprintf(stderr, "%s: %d\n", what, code);
  exit(9);
}

static struct Work begin(const char* source, uint64_t properties) {
  struct Work w;
  int code = 0;
  w.context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  check(code, "context");
  w.queue = clCreateCommandQueue(w.context, device, properties, &code);
  check(code, "queue");
  w.host = malloc(sizeof(float) * (size_t)n);
  for (int i = 0; i < n; ++i) w.host[i] = (float)(i % 97);
  w.x = clCreateBuffer(w.context, 1 | 32, sizeof(float) * (size_t)n, w.host, &code);
  w.y = clCreateBuffer(w.context, 1 | 32, sizeof(float) * (size_t)n, w.host, &code);
  w.program = clCreateProgramWithSource(w.context, 1, &source, NULL, &code);
  check(clBuildProgram(w.program, 1, &device, "-DROUNDS=40 -D SHIFT=0.5f", NULL, NULL), "build");
  return w;
}

static double finish(struct Work w) {
  check(clEnqueueReadBuffer(w.queue, w.y, 1, 0, sizeof(float) * (size_t)n, w.host, 0, NULL, NULL), "read");
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += w.host[i];
  clReleaseMemObject(w.x);
  clReleaseMemObject(w.y);
  clReleaseProgram(w.program);
  clReleaseCommandQueue(w.queue);
  clReleaseContext(w.context);
  free(w.host);
  return sum;
}

static Handle scale_kernel(struct Work w) {
  int code = 0;
  const float k = 1.25f;
  const Handle kernel = clCreateKernel(w.program, "scale", &code);
  check(code, "kernel");
  clSetKernelArg(kernel, 0, sizeof k, &k);
  clSetKernelArg(kernel, 1, sizeof w.x, in_place ? &w.y : &w.x);
  clSetKernelArg(kernel, 2, sizeof w.y, &w.y);
  clSetKernelArg(kernel, 3, sizeof n, &n);
  return kernel;
}

static double scale(const char* source, uint64_t properties, int launches) {
  const struct Work w = begin(source, properties);
  const Handle kernel = scale_kernel(w);
  const size_t global = (size_t)n, local = 4;
  int (*launch)(Handle, Handle, unsigned, const size_t*, const size_t*, const size_t*, unsigned, const Handle*,
                Handle*) = clEnqueueNDRangeKernel;
  if (looked_up) launch = dlsym(dlopen("libOpenCL.so.1", RTLD_NOW), "clEnqueueNDRangeKernel");
  for (int i = 0; i < launches; ++i) check(launch(w.queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL), "launch");
  clFinish(w.queue);
  clReleaseKernel(kernel);
  return finish(w);
}

/* two kernels in an out-of-order queue, one behind the other by an event; the first leaves its work-group open */
static double out_of_order(void) {
  const struct Work w = begin(kSource, 1);
  int code = 0;
  const Handle fill = clCreateKernel(w.program, "fill", &code), kernel = scale_kernel(w);
  const float v[4] = {1, 3, 5, 7};
  const size_t global = (size_t)n;
  Handle first = NULL, second = NULL;
  clSetKernelArg(fill, 0, sizeof w.x, &w.x);
  clSetKernelArg(fill, 1, sizeof v, v);
  check(clEnqueueNDRangeKernel(w.queue, fill, 1, NULL, &global, NULL, 0, NULL, &first), "fill");
  check(clEnqueueNDRangeKernel(w.queue, kernel, 1, NULL, &global, NULL, 1, &first, &second), "scale");
  clFinish(w.queue);
  return finish(w);
}

static double from_binary(void) {
  const struct Work w = begin(kSource, 0);
  size_t size = 0;
  clGetProgramInfo(w.program, 0x1165, sizeof size, &size, NULL);
  unsigned char* bytes = malloc(size);
  clGetProgramInfo(w.program, 0x1166, sizeof bytes, &bytes, NULL);
  int status = 0, code = 0;
  struct Work again = w;
  again.program =
      clCreateProgramWithBinary(w.context, 1, &device, &size, (const unsigned char**)&bytes, &status, &code);
  check(code, "binary");
  check(clBuildProgram(again.program, 1, &device, "", NULL, NULL), "build of the binary");
  const Handle kernel = scale_kernel(again);
  const size_t global = (size_t)n;
  check(clEnqueueNDRangeKernel(w.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL), "launch");
  return finish(w);
}

static double shared_memory(void) {
  const struct Work w = begin(kSource, 0);
  float* x = clSVMAlloc(w.context, 1, sizeof(float) * (size_t)n, 0);
  if (!x) return finish(w);
  const Handle kernel = scale_kernel(w);
  const size_t global = (size_t)n;
  memset(x, 0, sizeof(float) * (size_t)n);
  check(clSetKernelArgSVMPointer(kernel, 1, x), "SVM argument");
  check(clEnqueueNDRangeKernel(w.queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL), "launch");
  return finish(w);
}

static double offset(void) {
  const struct Work w = begin(kSource, 0);
  const Handle kernel = scale_kernel(w);
  const size_t begin_at = 64, global = (size_t)n - 64;
  check(clEnqueueNDRangeKernel(w.queue, kernel, 1, &begin_at, &global, NULL, 0, NULL, NULL), "launch");
  return finish(w);
}

static double local_memory(void) {
  const struct Work w = begin(kGroup, 0);
  int code = 0;
  const Handle kernel = clCreateKernel(w.program, "turn", &code);
  const size_t global = (size_t)n, local = 32;
  clSetKernelArg(kernel, 0, sizeof w.y, &w.y);
  clSetKernelArg(kernel, 1, sizeof(float) * local, NULL);
  check(clEnqueueNDRangeKernel(w.queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL), "launch");
  return finish(w);
}

static double sums[2];
static void* one_thread(void* which) {
  const int me = (int)(intptr_t)which;
  sums[me] = scale(me ? kOther : kSource, 0, me ? 3 : 5);
  return NULL;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "scale";
  if (argc > 2) n = atoi(argv[2]);
  Handle platform = NULL;
  check(clGetPlatformIDs(1, &platform, NULL), "platform");
  check(clGetDeviceIDs(platform, 0xFFFFFFFF, 1, &device, NULL), "device");
  double sum = 0;
  if (!strcmp(how, "scale")) sum = scale(kSource, 0, 20);
  if (!strcmp(how, "in-place")) in_place = 1, sum = scale(kSource, 0, 3);
  if (!strcmp(how, "looked-up")) looked_up = 1, sum = scale(kSource, 0, 20);
  if (!strcmp(how, "once")) sum = scale(kSource, 0, 1);
  if (!strcmp(how, "out-of-order")) sum = out_of_order();
  if (!strcmp(how, "binary")) sum = from_binary();
  if (!strcmp(how, "shared")) sum = shared_memory();
  if (!strcmp(how, "offset")) sum = offset();
  if (!strcmp(how, "local")) sum = local_memory();
  if (!strcmp(how, "crash")) sum = scale(kSource, 0, 2), printf("sum %.3f\n", sum), fflush(stdout), abort();
  if (!strcmp(how, "threads")) {
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, one_thread, (void*)(intptr_t)i);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    sum = sums[0] + 2 * sums[1];
  }
  printf("sum %.3f\n", sum);
  return argc > 3 ? atoi(argv[3]) : 0;
}
