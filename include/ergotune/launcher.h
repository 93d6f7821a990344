/* libergotune-launcher: tuned kernels at run time, for C. launcher.hpp is the same for C++.
 *
 * A kernel is described by a problem file (docs/problem-file.md) or its text. Each launch says by its scalar arguments
 * how large the work is; the configuration comes from wisdom (docs/formats.md), is compiled once, kept on disk, and
 * runs on the application's own queue and buffers. Every function may be called from several threads at once, but for
 * open and close.
 */
#ifndef ERGOTUNE_LAUNCHER_H
#define ERGOTUNE_LAUNCHER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Counts up when something here changes. */
#define ERGOTUNE_LAUNCHER_VERSION 1

typedef struct ergotune_kernel ergotune_kernel;

/* All that may be left as 0 or NULL is left to its default. */
typedef struct ergotune_options {
  size_t size;         /* sizeof(ergotune_options) */
  const char* backend; /* "cuda", "hip" or "opencl"; default: the one that the kernel has a source for */
  const char* kernel;  /* of a problem of several */
  const char*
      wisdom; /* folders with ':' between them; default: $ERGOTUNE_WISDOM, else "wisdom" beside the problem file */
  const char* constants; /* values of the problem's constants, which win over the file's: "n=4096,type=float" */
  const char* objective; /* preferred where there is wisdom for several; default: $ERGOTUNE_OBJECTIVE */
  const char* cache;     /* folder of compiled code; default: ~/.cache/ergotune/compiled; "none": nothing is kept */
  int background;        /* 1: a thread of the launcher's compiles, and the default (or what ran last) runs meanwhile */
  void (*warn)(const char* message, void* data); /* default: a line on standard error; it may call nothing of this */
  void* data;
  int clocks; /* 1: clocks and limits of the wisdom are in force while this process lives (launcher.md, "Clocks");
                 0: only where $ERGOTUNE_CLOCKS is 1 */
} ergotune_options;

/* A buffer: address of the handle (CUdeviceptr, cl_mem). A scalar: address of the value, of the type that the problem
 * says. Arguments are those of the problem in their order, without local memory. */
typedef struct ergotune_argument {
  const void* address;
  size_t size;
} ergotune_argument;

/* NULL when it fails: ergotune_error() says why. Nothing is compiled yet. `folder` is what paths in the text start at.
 */
ergotune_kernel* ergotune_kernel_open(const char* problem_file, const ergotune_options* options);
ergotune_kernel* ergotune_kernel_open_text(const char* problem, const char* folder, const ergotune_options* options);
/* After the last launch has been queued, and before the context is destroyed. */
void ergotune_kernel_close(ergotune_kernel* kernel);

/* Queues one launch: CUstream (of the current context; NULL: its default stream), hipStream_t or cl_command_queue.
 * 0: done; else the driver's code, or -1000 for a mistake of the caller's: ergotune_error() says what. */
int ergotune_kernel_launch(ergotune_kernel* kernel, void* queue, const ergotune_argument* arguments, size_t count);
/* The same without the launch: afterwards one with scalars like these compiles nothing. Waits for the compiler, always.
 */
int ergotune_kernel_prepare(ergotune_kernel* kernel, void* queue, const ergotune_argument* arguments, size_t count);
/* Reads the wisdom anew: the next launches choose again. */
int ergotune_kernel_reload(ergotune_kernel* kernel);

/* What launches like this one run, and why, as one JSON document: {"kernel", "configuration", "execution", "reason",
 * "match", "distance", "is_default"}. `execution` are the clocks it was tuned at: a hint. The text is good until this
 * thread's next call. */
const char* ergotune_kernel_why(ergotune_kernel* kernel, void* queue, const ergotune_argument* arguments, size_t count);

/* The arguments of a launch, a word each: "int32", "float64" ..., "*" for a buffer, "struct:24" for a structure of so
 * many bytes. Good as long as the kernel. */
const char* ergotune_kernel_signature(ergotune_kernel* kernel);

/* What went wrong in this thread's last call that failed. */
const char* ergotune_error(void);

#ifdef __cplusplus
}
#endif
#endif
