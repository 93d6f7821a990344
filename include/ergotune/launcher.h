/* libergotune-launcher launches tuned kernels from C applications. launcher.hpp is its C++ interface.
 *
 * A kernel is described by a problem file (docs/problem-file.md) or the text of one. The scalar arguments of a launch
 * determine the problem size; the launcher selects a configuration from wisdom (docs/formats.md), compiles it once,
 * keeps the compiled code on disk, and launches it on the application's own queue and buffers. All functions except
 * open and close may be called from several threads at the same time.
 */
#ifndef ERGOTUNE_LAUNCHER_H
#define ERGOTUNE_LAUNCHER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface; increases with every change. */
#define ERGOTUNE_LAUNCHER_VERSION 1

typedef struct ergotune_kernel ergotune_kernel;

/* Options of a kernel. 0 or NULL selects a member's default; `size` must be set. */
typedef struct ergotune_options {
  size_t size;         /* sizeof(ergotune_options) */
  const char* backend; /* "cuda", "hip" or "opencl"; default: the backend for which the kernel has a source */
  const char* kernel;  /* name of the kernel if the problem has several */
  const char* wisdom;  /* folders separated by ':'; default: $ERGOTUNE_WISDOM, else "wisdom" next to the problem file */
  const char* constants; /* constants that override those of the problem file: "n=4096,type=float" */
  const char* objective; /* preferred if wisdom holds several objectives; default: $ERGOTUNE_OBJECTIVE */
  const char* cache;     /* folder of compiled code; default: ~/.cache/ergotune/compiled; "none": no cache */
  int background;        /* 1: compile in a thread; until then launches run the latest or default configuration */
  void (*warn)(const char* message, void* data); /* default: prints to standard error; must not call the launcher */
  void* data;                                    /* passed to warn */
  int clocks;    /* 1: apply the clocks and power limits of the wisdom while this process runs (launcher.md, "Clocks");
                    0: only if $ERGOTUNE_CLOCKS is 1 */
  double online; /* above 0: launches try other configurations, as long as all launches together take at most this share
                    longer (0.05: 5 %) than without (launcher.md, "Online tuning"); 0: $ERGOTUNE_ONLINE, else none */
} ergotune_options;

/* An argument of a launch, in the order of the problem's arguments and without local memory. Buffer: address of the
 * handle (CUdeviceptr, cl_mem). Scalar: address of the value, which has the type declared in the problem. */
typedef struct ergotune_argument {
  const void* address;
  size_t size;
} ergotune_argument;

/* Opens a kernel from a problem file, or from the text of one, without compiling it. Relative paths in the text are
 * resolved against `folder`. Returns NULL on failure; ergotune_error() returns the reason. */
ergotune_kernel* ergotune_kernel_open(const char* problem_file, const ergotune_options* options);
ergotune_kernel* ergotune_kernel_open_text(const char* problem, const char* folder, const ergotune_options* options);
/* Frees a kernel. Call it after the last launch was queued, and before the context is destroyed. */
void ergotune_kernel_close(ergotune_kernel* kernel);

/* Queues one launch on a CUstream (of the current context; NULL: its default stream), hipStream_t or cl_command_queue.
 * Returns 0 on success, else the driver's error code, or -1000 for a mistake of the caller; ergotune_error() returns
 * the message. */
int ergotune_kernel_launch(ergotune_kernel* kernel, void* queue, const ergotune_argument* arguments, size_t count);
/* Selects and compiles the configuration for such a launch without launching it; later launches with equal scalars need
 * no compilation. Waits for the compiler even if `background` is set. */
int ergotune_kernel_prepare(ergotune_kernel* kernel, void* queue, const ergotune_argument* arguments, size_t count);
/* Reads the wisdom again; the next launches select their configurations anew. */
int ergotune_kernel_reload(ergotune_kernel* kernel);

/* Returns the configuration of launches with such arguments, and the reason for it, as one JSON document: {"kernel",
 * "configuration", "execution", "reason", "match", "distance", "is_default"}, with online tuning also "online".
 * `execution` holds the clocks at which it was tuned, as a hint. The text is valid until the next call in this thread.
 * NULL on failure. */
const char* ergotune_kernel_why(ergotune_kernel* kernel, void* queue, const ergotune_argument* arguments, size_t count);

/* Returns the types of a launch's arguments, separated by spaces: "int32", "float64" ..., "*" for a buffer, "struct:24"
 * for a structure of 24 bytes. Valid until the kernel is closed. */
const char* ergotune_kernel_signature(ergotune_kernel* kernel);

/* Returns the message of the latest failed call in this thread. */
const char* ergotune_error(void);

#ifdef __cplusplus
}
#endif
#endif
