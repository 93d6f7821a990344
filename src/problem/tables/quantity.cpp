#include "problem/tables/quantity.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "ergotune/problem.hpp"
#include "problem/tables/counter_names.hpp"

namespace ergotune {
namespace {

constexpr auto kLess = Direction::minimise;

// docs/measuring.md holds the same table, with what observers declare (a test compares them).
constexpr QuantityInfo kQuantities[] = {
    {"time", "s", "device time of one round", Producer::device, kLess, true},
    {"energy", "J", "energy of one round", Producer::sensor, kLess, true},
    {"power", "W", "mean power while it runs", Producer::sensor, kLess, true},
    {"idle_subtracted_energy", "J", "energy of one round above what the idle device would have used", Producer::sensor,
     kLess, true},
    {"corrected_energy", "J", "energy of one round at one temperature of the chip: modelled", Producer::sensor, kLess,
     true, true},
    {"core_clock", "Hz", "core clock that it ran at", Producer::monitor, std::nullopt, true},
    {"memory_clock", "Hz", "memory clock that it ran at", Producer::monitor, std::nullopt, true},
    {"temperature", "°C", "temperature of the chip", Producer::monitor, std::nullopt, false},
    {"throttled_share", "", "share of the time in which firmware held the clocks down", Producer::monitor, kLess,
     false},
    {"core_voltage", "V", "core voltage that it ran at", Producer::monitor, std::nullopt, true},
    {"clock_latency", "s", "how long the change of clocks before it took to be in force", Producer::monitor,
     std::nullopt, false},
    {"error", "", "largest relative error of the outputs", Producer::verification, kLess, false},
    {"registers", "", "registers of a thread", Producer::compiler, std::nullopt, false},
    {"shared_bytes", "B", "shared memory of a block that the code asks for", Producer::compiler, std::nullopt, false},
    {"local_bytes", "B", "memory of a thread outside its registers (spills)", Producer::compiler, std::nullopt, false},
    {"spilled_registers", "", "registers of a thread that did not fit and live in memory", Producer::compiler, kLess,
     false},
    {"occupancy", "", "share of an SM's threads that the code's registers and shared memory leave room for",
     Producer::compiler, std::nullopt, false},
    {"block_need", "", "largest share that a block takes of the threads, registers and shared memory that it may have",
     Producer::compiler, std::nullopt, false},
    {"static_instructions", "", "instructions of the compiled code", Producer::compiler, std::nullopt, false},
    {"static_fma", "", "of them fused multiply-adds", Producer::compiler, std::nullopt, false},
    {"static_tensor", "", "of them operations of tensor cores", Producer::compiler, std::nullopt, false},
    {"static_global_loads", "", "of them loads from device memory, textures too", Producer::compiler, std::nullopt,
     false},
    {"static_global_stores", "", "of them stores and atomic operations to device memory", Producer::compiler,
     std::nullopt, false},
    {"static_shared_loads", "", "of them loads from shared memory", Producer::compiler, std::nullopt, false},
    {"static_shared_stores", "", "of them stores to shared memory", Producer::compiler, std::nullopt, false},
    {"static_spills", "", "of them loads and stores of local memory", Producer::compiler, std::nullopt, false},
    {"static_branches", "", "of them branches and calls", Producer::compiler, std::nullopt, false},
    {"static_barriers", "", "of them barriers of a block", Producer::compiler, std::nullopt, false},
    {"overlap", "", "share of a round's busy time in which kernels ran side by side", Producer::device, std::nullopt,
     false},
    {"cpu_time", "s", "CPU time of one run of a program, all its threads and processes", Producer::program, kLess,
     true},
    {"peak_memory", "B", "most memory that one process of a program had", Producer::program, kLess, true},
};

/// The table and what observers declare.
std::vector<QuantityInfo>& all_quantities() {
  static std::vector<QuantityInfo> all(std::begin(kQuantities), std::end(kQuantities));
  return all;
}

// Quantities of one kernel of a workload: "time.NAME", "occupancy.NAME".
constexpr QuantityInfo kTimeOfKernel{"time.NAME",      "s",   "device time of one kernel's launches in a round",
                                     Producer::device, kLess, true};

// Endings of quantity names that other tools and observers use. A unit is given only if the name is unambiguous: their
// times are in s or in ms.
struct Ending {
  std::string_view ending, unit;
};
constexpr std::array<Ending, 6> kEndings{
    {{"energy", "J"}, {"power", "W"}, {"joules", "J"}, {"energys", ""}, {"time", ""}, {"seconds", ""}}};

const Ending* ending_of(std::string_view name) {
  const auto found = std::ranges::find_if(kEndings, [&](const Ending& e) { return name.ends_with(e.ending); });
  return found == kEndings.end() ? nullptr : &*found;
}

const QuantityInfo* info_of_counter(std::string_view name) {
  static const auto all = [] {
    std::map<std::string_view, QuantityInfo> infos;
    for (const CounterInfo& c : counter_names())
      infos[c.name] = {c.name, c.unit, c.meaning, Producer::observer, std::nullopt, false};
    for (const PerfCounterInfo& c : perf_counter_names())
      infos[c.name] = {c.name, c.unit, c.meaning, Producer::observer, std::nullopt, false};
    return infos;
  }();
  const auto found = all.find(name);
  return found == all.end() ? nullptr : &found->second;
}

}  // namespace

std::string to_string(Producer producer) {
  constexpr std::array kNames{"device", "sensor", "monitor", "compiler", "verification", "observer", "program"};
  return kNames[static_cast<std::size_t>(producer)];
}

std::span<const QuantityInfo> quantities() { return all_quantities(); }

ObservedQuantity::ObservedQuantity(std::string_view name, std::string_view unit, std::string_view meaning,
                                   std::optional<Direction> better, bool positive) {
  all_quantities().push_back({name, unit, meaning, Producer::observer, better, positive});
}

const QuantityInfo* quantity_info(std::string_view name) {
  if (name.starts_with("time.")) return &kTimeOfKernel;
  if (name.starts_with("occupancy.")) return quantity_info("occupancy");
  const auto found = std::ranges::find(all_quantities(), name, &QuantityInfo::name);
  return found == all_quantities().end() ? info_of_counter(name) : &*found;
}

std::vector<std::string> per_kernel_quantities(const Problem& problem) {
  std::vector<std::string> names;
  if (!problem.has_named_kernels()) return names;
  for (const char* quantity : {"time", "occupancy"})
    for (const Kernel& kernel : problem.kernels) names.push_back(std::string(quantity) + "." + kernel.name);
  return names;
}

std::string unit_of(std::string_view name, std::span<const Metric> metrics) {
  for (const Metric& metric : metrics) {
    if (metric.name == name) return metric.unit;
  }
  if (const QuantityInfo* info = quantity_info(name)) return std::string(info->unit);
  if (is_chip_metric(name)) return unit_of_counter(name);
  const bool plain = std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
  const Ending* ending = plain ? ending_of(name) : nullptr;  // "time*energy" is not an energy
  return ending ? std::string(ending->unit) : std::string();
}

bool must_be_positive(std::string_view name) {
  if (const QuantityInfo* info = quantity_info(name)) return info->positive;
  return ending_of(name) != nullptr;
}

}  // namespace ergotune
