#include "problem/tables/counter_names.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace ergotune {
namespace {

constexpr double kSector = 32;      // bytes
constexpr double kWavefront = 128;  // bytes: 32 banks of 4

#define PRED(op) "smsp__sass_thread_inst_executed_op_" op "_pred_on.sum"

// docs/counters.md holds the same table (a test compares them).
constexpr std::array<CounterInfo, 37> kCounters{{
    {"achieved_occupancy",
     "",
     "mean share of the warps that an SM can hold, while it works",
     0.01,
     {{1, "sm__warps_active.avg.pct_of_peak_sustained_active"}},
     {},
     true},
    {"ipc", "", "instructions executed per cycle and SM", 1, {{1, "sm__inst_executed.avg.per_cycle_active"}}, {}, true},
    {"issued_ipc",
     "",
     "instructions issued per cycle and SM",
     4,
     {{1, "smsp__inst_issued.avg.per_cycle_active"}},
     {},
     true},
    {"inst_executed", "", "instructions executed, of warps", 1, {{1, "smsp__inst_executed.sum"}}, {}, true},
    {"inst_issued", "", "instructions issued, of warps", 1, {{1, "smsp__inst_issued.sum"}}, {}, true},
    {"ldst_executed",
     "",
     "loads and stores executed, of warps",
     1,
     {{1, "smsp__inst_executed_pipe_lsu.sum"}},
     {},
     true},
    {"dram_read_bytes", "B", "bytes read from device memory", 1, {{1, "dram__bytes_read.sum"}}, {}, true},
    {"dram_write_bytes", "B", "bytes written to device memory", 1, {{1, "dram__bytes_write.sum"}}, {}, true},
    {"dram_read_throughput",
     "B/s",
     "bytes per second read from device memory",
     1,
     {{1, "dram__bytes_read.sum.per_second"}},
     {},
     true},
    {"dram_write_throughput",
     "B/s",
     "bytes per second written to device memory",
     1,
     {{1, "dram__bytes_write.sum.per_second"}},
     {},
     true},
    {"dram_utilization",
     "",
     "share of the device memory's peak throughput",
     0.01,
     {{1, "dram__throughput.avg.pct_of_peak_sustained_elapsed"}},
     {},
     true},
    {"l2_read_throughput",
     "B/s",
     "bytes per second read from L2",
     kSector,
     {{1, "lts__t_sectors_op_read.sum.per_second"}},
     {},
     true},
    {"l2_write_throughput",
     "B/s",
     "bytes per second written to L2",
     kSector,
     {{1, "lts__t_sectors_op_write.sum.per_second"}},
     {},
     true},
    {"l2_tex_read_throughput",
     "B/s",
     "bytes per second read from L2 by L1 and texture units",
     kSector,
     {{1, "lts__t_sectors_srcunit_tex_op_read.sum.per_second"}},
     {},
     true},
    {"l2_tex_read_hit_rate",
     "",
     "share of those reads that L2 had",
     1,
     {{1, "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"}},
     "lts__t_sectors_srcunit_tex_op_read.sum",
     true},
    {"tex_throughput",
     "B/s",
     "bytes per second through L1 and texture units",
     1,
     {{1, "l1tex__t_bytes.sum.per_second"}},
     {},
     true},
    {"shared_load_throughput",
     "B/s",
     "bytes per second read from shared memory",
     kWavefront,
     {{1, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum.per_second"}},
     {},
     true},
    {"shared_load_transactions",
     "",
     "wavefronts of reads from shared memory",
     1,
     {{1, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"}},
     {},
     true},
    {"shared_store_transactions",
     "",
     "wavefronts of writes to shared memory",
     1,
     {{1, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"}},
     {},
     true},
    {"stall_inst_fetch",
     "",
     "share of warp cycles spent waiting for the next instruction",
     0.01,
     {{1, "smsp__warp_issue_stalled_no_instruction_per_warp_active.pct"}},
     {},
     true},
    {"ldst_issued",
     "",
     "loads and stores issued, of warps (replays are gone since Volta: as ldst_executed)",
     1,
     {{1, "smsp__inst_executed_pipe_lsu.sum"}}},
    {"ipc_instance",
     "",
     "instructions per cycle of the busiest SM",
     1,
     {{1, "sm__inst_executed.max.per_cycle_active"}}},
    {"sm_efficiency",
     "",
     "share of the time in which an SM has a warp to run",
     0.01,
     {{1, "smsp__cycles_active.avg.pct_of_peak_sustained_elapsed"}}},
    {"shared_store_throughput",
     "B/s",
     "bytes per second written to shared memory",
     kWavefront,
     {{1, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum.per_second"}}},
    {"shared_load_bank_conflicts",
     "",
     "further wavefronts that bank conflicts of reads cost",
     1,
     {{1, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"}}},
    {"shared_store_bank_conflicts",
     "",
     "further wavefronts that bank conflicts of writes cost",
     1,
     {{1, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"}}},
    {"gld_transactions",
     "",
     "sectors of 32 bytes that global loads ask for",
     1,
     {{1, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"}}},
    {"gst_transactions",
     "",
     "sectors of 32 bytes that global stores touch",
     1,
     {{1, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"}}},
    {"gld_requested_bytes",
     "B",
     "bytes that global loads ask for",
     1,
     {{1, "smsp__sass_data_bytes_mem_global_op_ld.sum"}}},
    {"gst_requested_bytes",
     "B",
     "bytes that global stores write",
     1,
     {{1, "smsp__sass_data_bytes_mem_global_op_st.sum"}}},
    {"gld_requested_throughput",
     "B/s",
     "bytes per second that global loads ask for",
     1e9,
     {{1, "smsp__sass_data_bytes_mem_global_op_ld.sum"}},
     "gpu__time_duration.sum"},
    {"gst_requested_throughput",
     "B/s",
     "bytes per second that global stores write",
     1e9,
     {{1, "smsp__sass_data_bytes_mem_global_op_st.sum"}},
     "gpu__time_duration.sum"},
    {"gld_efficiency",
     "",
     "share of the bytes that global loads bring in that were asked for",
     0.01,
     {{1, "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"}}},
    {"flop_count_sp",
     "",
     "single-precision operations; a fused multiply-add is two",
     1,
     {{1, PRED("fadd")}, {1, PRED("fmul")}, {2, PRED("ffma")}}},
    {"flop_count_dp",
     "",
     "double-precision operations; a fused multiply-add is two",
     1,
     {{1, PRED("dadd")}, {1, PRED("dmul")}, {2, PRED("dfma")}}},
    {"tensor_utilization",
     "",
     "share of the tensor cores' peak, while the SM works",
     0.01,
     {{1, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"}}},
    {"gpu_time",
     "s",
     "time of the counted launch itself; the launch is watched, so it is not a measurement of time",
     1e-9,
     {{1, "gpu__time_duration.sum"}}},
}};
#undef PRED

// docs/counters.md holds the same table.
constexpr std::array<PerfCounterInfo, 13> kPerfCounters{{
    {"cycles", "", "cycles of the cores, of all threads"},
    {"instructions", "", "instructions that were retired"},
    {"cache_references", "", "accesses to the last-level cache"},
    {"cache_misses", "", "of those, misses"},
    {"branches", "", "branches that were retired"},
    {"branch_misses", "", "branches that were predicted wrongly"},
    {"l1d_misses", "", "reads that the first-level data cache did not have"},
    {"dtlb_misses", "", "reads whose page the data TLB did not have"},
    {"cpu_flops", "", "floating-point operations (Intel since Haswell, AMD since Zen); a fused multiply-add is two"},
    {"task_clock", "s", "time that threads were running, summed", false},
    {"page_faults", "", "pages that were touched for the first time or read in", false},
    {"context_switches", "", "times that a thread gave up its core", false},
    {"cpu_migrations", "", "times that a thread moved to another core", false},
}};

}  // namespace

std::span<const CounterInfo> counter_names() { return kCounters; }

std::span<const PerfCounterInfo> perf_counter_names() { return kPerfCounters; }

const CounterInfo* counter_info(std::string_view name) {
  const auto found = std::ranges::find_if(kCounters, [&](const CounterInfo& c) { return c.name == name; });
  return found == kCounters.end() ? nullptr : &*found;
}

std::vector<std::string> usual_counters() {
  std::vector<std::string> names;
  for (const CounterInfo& counter : kCounters)
    if (counter.usual) names.emplace_back(counter.name);
  return names;
}

bool is_chip_metric(std::string_view name) {
  const std::size_t unit = name.find("__");
  return unit != name.npos && unit > 0 && name.find('.', unit) != name.npos;
}

std::vector<std::string> metrics_behind(const std::string& counter) {
  const CounterInfo* info = counter_info(counter);
  if (!info) return {counter};
  std::vector<std::string> metrics;
  for (const CounterTerm& term : info->terms)
    if (!term.metric.empty()) metrics.emplace_back(term.metric);
  if (!info->divisor.empty()) metrics.emplace_back(info->divisor);
  return metrics;
}

std::string unit_of_counter(std::string_view name) {
  if (const CounterInfo* info = counter_info(name)) return std::string(info->unit);
  if (!is_chip_metric(name) || name.find(".pct") != name.npos || name.ends_with(".ratio")) return {};
  if (name.find("per_cycle") != name.npos || name.find("throughput") != name.npos) return {};
  const bool rate = name.ends_with(".per_second");
  const std::string_view what = name.substr(0, name.find('.'));
  if (what.find("_bytes") != what.npos) return rate ? "B/s" : "B";
  if (what == "gpu__time_duration" && !rate) return "ns";
  return rate ? "1/s" : "";
}

double counter_value(const std::string& counter, std::span<const double> metrics) {
  const CounterInfo* info = counter_info(counter);
  if (!info) return metrics.front();
  double sum = 0;
  std::size_t at = 0;
  for (const CounterTerm& term : info->terms)
    if (!term.metric.empty()) sum += term.weight * metrics[at++];
  if (info->divisor.empty()) return info->factor * sum;
  const double divisor = metrics[at];
  return divisor != 0 ? info->factor * sum / divisor : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace ergotune
