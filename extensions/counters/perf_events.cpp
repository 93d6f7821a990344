#include "counters/perf_events.hpp"

#include <linux/perf_event.h>

#include <fstream>
#include <map>

namespace ergotune {
namespace {

constexpr std::uint64_t read_misses(std::uint64_t cache) {
  return cache | PERF_COUNT_HW_CACHE_OP_READ << 8 | PERF_COUNT_HW_CACHE_RESULT_MISS << 16;
}

}  // namespace

std::string vendor_in(std::istream& cpuinfo) {
  for (std::string line; std::getline(cpuinfo, line);)
    if (line.starts_with("vendor_id")) return line.substr(line.find(':') + 2);
  return {};
}

/// Intel: FP_ARITH_INST_RETIRED (0xC7) by width, where a fused multiply-add counts twice already; AMD since Zen:
/// FpRetSseAvxOps (0x03), all operations.
std::vector<PerfEvent> flop_events(std::string_view vendor) {
  if (vendor == "AuthenticAMD") return {{PERF_TYPE_RAW, 0x0f03, 1}};
  if (vendor != "GenuineIntel") return {};
  return {{PERF_TYPE_RAW, 0x01c7, 1}, {PERF_TYPE_RAW, 0x02c7, 1}, {PERF_TYPE_RAW, 0x04c7, 2},
          {PERF_TYPE_RAW, 0x08c7, 4}, {PERF_TYPE_RAW, 0x10c7, 4}, {PERF_TYPE_RAW, 0x20c7, 8},
          {PERF_TYPE_RAW, 0x40c7, 8}, {PERF_TYPE_RAW, 0x80c7, 16}};
}

std::vector<PerfEvent> perf_events_of(std::string_view counter) {
  if (counter == "cpu_flops") {
    std::ifstream cpuinfo("/proc/cpuinfo");
    return flop_events(vendor_in(cpuinfo));
  }
  static const std::map<std::string_view, PerfEvent> all{
      {"cycles", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES}},
      {"instructions", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS}},
      {"cache_references", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES}},
      {"cache_misses", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}},
      {"branches", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS}},
      {"branch_misses", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES}},
      {"l1d_misses", {PERF_TYPE_HW_CACHE, read_misses(PERF_COUNT_HW_CACHE_L1D)}},
      {"dtlb_misses", {PERF_TYPE_HW_CACHE, read_misses(PERF_COUNT_HW_CACHE_DTLB)}},
      {"task_clock", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 1e-9}},
      {"page_faults", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS}},
      {"context_switches", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES}},
      {"cpu_migrations", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS}},
  };
  return {all.at(counter)};
}

}  // namespace ergotune
