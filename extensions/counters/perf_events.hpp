// What perf_event_open calls the counters of the observer "perf".
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

/// One number of perf's, and what it counts for in a counter.
struct PerfEvent {
  std::uint32_t type = 0;
  std::uint64_t config = 0;
  double weight = 1;
};

/// "GenuineIntel", of what /proc/cpuinfo holds; empty where it names no vendor.
std::string vendor_in(std::istream& cpuinfo);
/// Operations on floating-point numbers, by the processor's vendor; empty for one whose events are not known.
std::vector<PerfEvent> flop_events(std::string_view vendor);
/// The weighted sum that a counter of perf_counter_names() is, on this machine; empty where it has none.
std::vector<PerfEvent> perf_events_of(std::string_view counter);

}  // namespace ergotune
