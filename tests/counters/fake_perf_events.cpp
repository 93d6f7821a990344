#include "counters/fake_perf_events.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>

namespace ergotune::test {
namespace {
FakePerfEvents* answering = nullptr;
}

FakePerfEvents::FakePerfEvents() { answering = this; }
FakePerfEvents::~FakePerfEvents() { answering = nullptr; }

int FakePerfEvents::open(const perf_event_attr& attributes, int thread, int processor, int group, unsigned long flags) {
  Opened one{attributes, thread, processor, group, -1, flags};
  const auto& refusals = thread == 0 ? refused : refused_threads;
  if (const auto refusal = refusals.find(one.event()); refusal != refusals.end()) {
    errno = refusal->second;
    return -1;
  }
  // A file that holds what a read of the event would give.
  const auto said = counts.find(one.event());
  const Count count = said == counts.end() ? Count{10, 100, 100} : said->second;
  one.descriptor = ::memfd_create("event", MFD_CLOEXEC);
  const auto bytes = static_cast<ssize_t>(count.size() * sizeof count[0]);
  if (one.descriptor < 0 || ::pwrite(one.descriptor, count.data(), static_cast<std::size_t>(bytes), 0) != bytes)
    return -1;
  opened.push_back(one);
  return one.descriptor;
}

std::vector<FakePerfEvents::Opened> FakePerfEvents::opened_for_threads() {
  std::vector<Opened> found;
  for (const Opened& one : std::exchange(opened, {}))
    if (one.thread != 0) found.push_back(one);
  return found;
}

}  // namespace ergotune::test

/// The C library's, but for the one call. How many arguments there are only the call's number says: like the C
/// library's own it takes six, of which the last may be whatever lies on the caller's stack.
extern "C" __attribute__((no_sanitize_address)) long syscall(long number, ...) noexcept {
  std::va_list list;
  va_start(list, number);
  long a[6];
  for (long& one : a) one = va_arg(list, long);
  va_end(list);
  if (number == SYS_perf_event_open && ergotune::test::answering)
    return ergotune::test::answering->open(*reinterpret_cast<const perf_event_attr*>(a[0]), static_cast<int>(a[1]),
                                           static_cast<int>(a[2]), static_cast<int>(a[3]),
                                           static_cast<unsigned long>(a[4]));
  static const auto real = reinterpret_cast<long (*)(long, ...)>(::dlsym(RTLD_NEXT, "syscall"));
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
