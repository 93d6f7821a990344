// The system call perf_event_open as a kernel answers it, for processors and rights that this machine need not have:
// what each thread counts is what a test says.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace ergotune::test {

class FakePerfEvents {
 public:
  /// From here on the call is answered by this one, until its end.
  FakePerfEvents();
  ~FakePerfEvents();
  FakePerfEvents(const FakePerfEvents&) = delete;
  FakePerfEvents& operator=(const FakePerfEvents&) = delete;

  using Event = std::pair<std::uint32_t, std::uint64_t>;  ///< type and config
  using Count = std::vector<std::uint64_t>;               ///< value, time enabled, time running

  struct Opened {
    perf_event_attr attributes;
    int thread, processor, group, descriptor;
    unsigned long flags;
    Event event() const { return {attributes.type, attributes.config}; }
  };

  /// What each thread counts; of others {10, 100, 100}.
  std::map<Event, Count> counts;
  /// What the calling thread (number 0) is refused, with errno.
  std::map<Event, int> refused;
  /// What each of its threads by number is refused.
  std::map<Event, int> refused_threads;
  std::vector<Opened> opened;

  /// What was opened for threads by number, since the last look.
  std::vector<Opened> opened_for_threads();

  int open(const perf_event_attr& attributes, int thread, int processor, int group, unsigned long flags);
};

}  // namespace ergotune::test
