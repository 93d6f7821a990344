// The observer "perf": CPU counters during an iteration, read through perf_event_open (Linux).
#pragma once

#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "ergotune/observer.hpp"

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

/// Throws UserError, with a suggestion, for a name that is not a CPU counter.
void check_perf_names(const std::vector<std::string>& requested);
/// Creates the observer; none requested: all that are available here, and `notes` names the unavailable ones. Throws
/// UserError for a device that is not a CPU, for a requested counter that is unavailable, and if the user may not count
/// at all.
std::shared_ptr<Observer> make_perf_observer(const std::vector<std::string>& requested, const DeviceInfo& device,
                                             std::vector<std::string>* notes);

}  // namespace ergotune
