// Calls of the system that fail. What fails is in ERGOTUNE_FAULT, words with commas between them:
//   call=write     write (pwrite, writev, send too), read (pread, readv, recv, recvmsg), fsync (fdatasync), open
//   (fopen; to write), look (open to
//                  read), rename, truncate, fork, mmap (of files), pipe (socketpair, eventfd, memfd_create), accept,
//                  thread (pthread_create), clock (the wall clock steps by `error` seconds at the nth look, and stays
//                  there)
//   nth=3          the third such call of a process; stays: all from then on; times=5: five of them
//   error=28       errno; 0: a short write or read, of half the bytes
//   path=WORD      only files whose path has this word
//   process=WORD   only processes whose command line has this word
// ERGOTUNE_FAULT_LOG names a file that gets a line for each call that failed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))real_of(#name))

static struct {
  char call[16], path[256], process[64], log[1024];  // the log's name is kept: a program may empty its environment
  long nth, last;
  int error;
  int here;  // this process is meant
} fault;
static atomic_long seen;

static void* real_of(const char* name) { return dlsym(RTLD_NEXT, name); }

static void take(const char* text, const char* key, char* out, size_t room) {
  const char* at = text;
  const size_t length = strlen(key);
  while (at && (strncmp(at, key, length) != 0 || at[length] != '=')) {
    at = strchr(at, ',');
    if (at) ++at;
  }
  if (!at) return;
  at += length + 1;
  size_t n = strcspn(at, ",");
  if (n >= room) n = room - 1;
  memcpy(out, at, n);
  out[n] = 0;
}

__attribute__((constructor)) static void prepare(void) {
  const char* text = getenv("ERGOTUNE_FAULT");
  if (!text) return;
  char number[32] = "1", error[32] = "5", times[32] = "1";
  const char* log = getenv("ERGOTUNE_FAULT_LOG");
  if (log) snprintf(fault.log, sizeof fault.log, "%s", log);
  take(text, "call", fault.call, sizeof fault.call);
  take(text, "path", fault.path, sizeof fault.path);
  take(text, "process", fault.process, sizeof fault.process);
  take(text, "nth", number, sizeof number);
  take(text, "error", error, sizeof error);
  take(text, "times", times, sizeof times);
  fault.nth = atol(number);
  fault.last = strstr(text, ",stays") ? LONG_MAX : fault.nth + atol(times) - 1;
  fault.error = atoi(error);
  char line[4096];
  const int file = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY, 0);
  long size = file < 0 ? 0 : syscall(SYS_read, file, line, sizeof line - 1);
  if (file >= 0) syscall(SYS_close, file);
  if (size < 0) size = 0;
  line[size] = 0;
  for (long i = 0; i < size; ++i)
    if (line[i] == 0) line[i] = ' ';
  fault.here = fault.process[0] == 0 || strstr(line, fault.process) != NULL;
}

static int named(const char* path) { return fault.path[0] == 0 || (path && strstr(path, fault.path)); }

static int named_descriptor(int descriptor) {
  if (fault.path[0] == 0) return 1;
  char link[64], path[1024];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const long size = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return named(path);
}

/// Whether it may give or take less than it was asked: an event descriptor never does.
static int is_stream(int descriptor) {
  char link[64], path[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const long size = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path);
  return size < 5 || memcmp(path, "anon_", 5) != 0;
}

static void note(const char* call) {
  if (fault.log[0] == 0) return;
  const int kept = errno,
            file = (int)syscall(SYS_openat, AT_FDCWD, fault.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file >= 0) {
    char line[64];
    const int size = snprintf(line, sizeof line, "%s %d\n", call, (int)getpid());
    syscall(SYS_write, file, line, (size_t)size);
    syscall(SYS_close, file);
  }
  errno = kept;
}

/// Whether this call, to which everything else applies, is the one.
static int fails(const char* call) {
  if (!fault.here || strcmp(call, fault.call) != 0) return 0;
  const long number = 1 + atomic_fetch_add(&seen, 1);
  if (number < fault.nth || number > fault.last) return 0;
  note(call);
  errno = fault.error;
  return 1;
}
static int is(const char* call) { return fault.here && strcmp(call, fault.call) == 0; }

#define TRANSFER(kind, descriptor, size, whole, half)                                                      \
  if (is(kind) && named_descriptor(descriptor) && (fault.error || is_stream(descriptor)) && fails(kind)) { \
    if (fault.error) return -1;                                                                            \
    if ((size) > 1) return half;                                                                           \
  }                                                                                                        \
  return whole;

ssize_t write(int d, const void* b,
              size_t n){TRANSFER("write", d, n, REAL(write)(d, b, n), REAL(write)(d, b, n / 2))} ssize_t
    pwrite(int d, const void* b, size_t n,
           off_t o){TRANSFER("write", d, n, REAL(pwrite)(d, b, n, o), REAL(pwrite)(d, b, n / 2, o))} ssize_t
    pwrite64(int d, const void* b, size_t n,
             off64_t o){TRANSFER("write", d, n, REAL(pwrite64)(d, b, n, o), REAL(pwrite64)(d, b, n / 2, o))} ssize_t
    send(int d, const void* b, size_t n,
         int f){TRANSFER("write", d, n, REAL(send)(d, b, n, f), REAL(send)(d, b, n / 2, f))} ssize_t
    read(int d, void* b, size_t n){TRANSFER("read", d, n, REAL(read)(d, b, n), REAL(read)(d, b, n / 2))} ssize_t
    recv(int d, void* b, size_t n,
         int f){TRANSFER("read", d, n, REAL(recv)(d, b, n, f), REAL(recv)(d, b, n / 2, f))} ssize_t
    pread(int d, void* b, size_t n,
          off_t o){TRANSFER("read", d, n, REAL(pread)(d, b, n, o), REAL(pread)(d, b, n / 2, o))} ssize_t
    pread64(int d, void* b, size_t n, off64_t o) {
  TRANSFER("read", d, n, REAL(pread64)(d, b, n, o), REAL(pread64)(d, b, n / 2, o))
}
static ssize_t vector_half(ssize_t (*whole)(int, const struct iovec*, int), int d, const struct iovec* v) {
  const struct iovec half = {v->iov_base, (v->iov_len + 1) / 2};
  return whole(d, &half, 1);
}
ssize_t writev(int d, const struct iovec* v, int n){
    TRANSFER("write", d, n > 0 ? 2 : 0, REAL(writev)(d, v, n), vector_half(REAL(writev), d, v))} ssize_t
    readv(int d, const struct iovec* v,
          int n){TRANSFER("read", d, n > 0 ? 2 : 0, REAL(readv)(d, v, n), vector_half(REAL(readv), d, v))} ssize_t
    recvmsg(int d, struct msghdr* m, int f) {
  TRANSFER("read", d, 0, REAL(recvmsg)(d, m, f), 0)
}

int fsync(int d) { return is("fsync") && named_descriptor(d) && fails("fsync") ? -1 : REAL(fsync)(d); }
int fdatasync(int d) { return is("fsync") && named_descriptor(d) && fails("fsync") ? -1 : REAL(fdatasync)(d); }
int ftruncate(int d, off_t n) {
  return is("truncate") && named_descriptor(d) && fails("truncate") ? -1 : REAL(ftruncate)(d, n);
}
int ftruncate64(int d, off64_t n) {
  return is("truncate") && named_descriptor(d) && fails("truncate") ? -1 : REAL(ftruncate64)(d, n);
}
int rename(const char* from, const char* to) {
  return is("rename") && named(to) && fails("rename") ? -1 : REAL(rename)(from, to);
}
pid_t fork(void) { return is("fork") && fails("fork") ? -1 : REAL(fork)(); }
int pipe2(int out[2], int flags) { return is("pipe") && fails("pipe") ? -1 : REAL(pipe2)(out, flags); }
int pipe(int out[2]) { return is("pipe") && fails("pipe") ? -1 : REAL(pipe)(out); }
int socketpair(int domain, int type, int protocol, int out[2]) {
  return is("pipe") && fails("pipe") ? -1 : REAL(socketpair)(domain, type, protocol, out);
}
int eventfd(unsigned int, int);
int eventfd(unsigned int value, int flags) { return is("pipe") && fails("pipe") ? -1 : REAL(eventfd)(value, flags); }
int memfd_create(const char* name, unsigned int flags) {
  return is("pipe") && fails("pipe") ? -1 : REAL(memfd_create)(name, flags);
}
void* mmap(void* a, size_t n, int p, int f, int d, off_t o) {
  return d >= 0 && is("mmap") && named_descriptor(d) && fails("mmap") ? MAP_FAILED : REAL(mmap)(a, n, p, f, d, o);
}
void* mmap64(void* a, size_t n, int p, int f, int d, off64_t o) {
  return d >= 0 && is("mmap") && named_descriptor(d) && fails("mmap") ? MAP_FAILED : REAL(mmap64)(a, n, p, f, d, o);
}

int accept(int d, struct sockaddr* a, socklen_t* n) {
  return is("accept") && fails("accept") ? -1 : REAL(accept)(d, a, n);
}
int accept4(int d, struct sockaddr* a, socklen_t* n, int f) {
  return is("accept") && fails("accept") ? -1 : REAL(accept4)(d, a, n, f);
}
int pthread_create(pthread_t* t, const pthread_attr_t* a, void* (*run)(void*), void* with) {
  return is("thread") && fails("thread") ? fault.error : REAL(pthread_create)(t, a, run, with);
}

int clock_gettime(clockid_t id, struct timespec* time) {
  const int code = REAL(clock_gettime)(id, time);
  if (id != CLOCK_REALTIME || !is("clock")) return code;
  const long number = 1 + atomic_fetch_add(&seen, 1);
  if (number == fault.nth) note("clock");
  if (number >= fault.nth) time->tv_sec += fault.error;
  return code;
}

/// "open" to write, "look" to read.
static int open_fails(const char* path, int flags) {
  const char* call = flags & (O_WRONLY | O_RDWR | O_CREAT) ? "open" : "look";
  return is(call) && named(path) && fails(call);
}
#define MODE(flags, mode)                  \
  mode_t mode = 0;                         \
  if ((flags) & (O_CREAT | __O_TMPFILE)) { \
    va_list rest;                          \
    va_start(rest, flags);                 \
    mode = va_arg(rest, mode_t);           \
    va_end(rest);                          \
  }
int open(const char* path, int flags, ...) {
  MODE(flags, mode)
  return open_fails(path, flags) ? -1 : REAL(open)(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE(flags, mode)
  return open_fails(path, flags) ? -1 : REAL(open64)(path, flags, mode);
}
int openat(int at, const char* path, int flags, ...) {
  MODE(flags, mode)
  return open_fails(path, flags) ? -1 : REAL(openat)(at, path, flags, mode);
}
int openat64(int at, const char* path, int flags, ...) {
  MODE(flags, mode)
  return open_fails(path, flags) ? -1 : REAL(openat64)(at, path, flags, mode);
}
FILE* fopen(const char* path, const char* how) {
  return open_fails(path, how[0] == 'r' ? O_RDONLY : O_WRONLY) ? NULL : REAL(fopen)(path, how);
}
FILE* fopen64(const char* path, const char* how) {
  return open_fails(path, how[0] == 'r' ? O_RDONLY : O_WRONLY) ? NULL : REAL(fopen64)(path, how);
}
