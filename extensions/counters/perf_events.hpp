// The events of perf_event_open for the counters of the observer "perf".
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

/// An event of perf_event_open, and its weight in a counter.
struct PerfEvent {
  std::uint32_t type = 0;
  std::uint64_t config = 0;
  double weight = 1;
};

/// The CPU vendor in the text of /proc/cpuinfo, such as "GenuineIntel"; empty: none named.
std::string vendor_in(std::istream& cpuinfo);
/// The events for floating-point operations on CPUs of this vendor; empty: unknown.
std::vector<PerfEvent> flop_events(std::string_view vendor);
/// The events whose weighted sum is this counter (perf_counter_names()) on this machine; empty: not available.
std::vector<PerfEvent> perf_events_of(std::string_view counter);

}  // namespace ergotune
