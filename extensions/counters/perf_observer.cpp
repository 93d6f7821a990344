#include "counters/perf_observer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/perf_event.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "ergotune/error.hpp"
#include "problem/tables/counter_names.hpp"

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

namespace {

/// A counter, which is the weighted sum of its events.
struct Counter {
  std::string name;
  bool hardware;
  std::vector<PerfEvent> events;
};

/// CPUs can count about this many events at a time; more would be multiplexed and extrapolated.
constexpr std::size_t kAtOnce = 4;

/// Opens an event for a thread and the threads that it starts later; returns -1 and sets errno on failure.
int open_event(const PerfEvent& event, pid_t thread, bool of_kernel) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.disabled = 1;
  attributes.inherit = 1;
  attributes.exclude_kernel = !of_kernel;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(::syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

/// Whether the event occurs inside the kernel (faults, context switches), so that it is 0 unless the kernel is
/// included; where that is not allowed, opening it fails.
bool counts_inside_kernel(const PerfEvent& event) {
  return event.type == PERF_TYPE_SOFTWARE && event.config != PERF_COUNT_SW_TASK_CLOCK &&
         event.config != PERF_COUNT_SW_PAGE_FAULTS;
}

/// 0 if the counter is available, else an errno.
int trouble_with(const Counter& counter) {
  if (counter.events.empty()) return ENOENT;
  for (const PerfEvent& event : counter.events) {
    const int descriptor = open_event(event, 0, counts_inside_kernel(event));
    if (descriptor < 0) return errno;
    ::close(descriptor);
  }
  return 0;
}

std::string why_not(int failure) {
  if (failure != EACCES && failure != EPERM) return "this CPU or virtual machine does not count them";
  std::string level;
  std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> level;
  return fmt::format(
      "this user may not: kernel.perf_event_paranoid is {} (2 or less allows a user's own processes, 1 their share of "
      "the kernel; containers also need the system call perf_event_open)",
      level);
}

std::vector<pid_t> own_threads() {
  std::vector<pid_t> threads;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    const std::string name = entry.path().filename();
    pid_t thread = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), thread).ec == std::errc()) threads.push_back(thread);
  }
  return threads;
}

class PerfObserver : public Observer {
 public:
  explicit PerfObserver(std::vector<Counter> counters) : counters_(std::move(counters)) {
    // Hardware events share few registers and are split over passes. Software events are counted in the first pass.
    std::vector<std::size_t> software;
    for (std::size_t c = 0; c < counters_.size(); ++c) {
      if (!counters_[c].hardware) software.push_back(c);
      for (std::size_t e = 0; counters_[c].hardware && e < counters_[c].events.size(); ++e) {
        if (passes_.empty() || passes_.back().size() == kAtOnce) passes_.emplace_back();
        passes_.back().emplace_back(c, e);
      }
    }
    if (passes_.empty()) passes_.emplace_back();
    for (const std::size_t c : software) passes_.front().emplace_back(c, 0);
  }
  ~PerfObserver() override { close(); }
  std::string name() const override { return "perf"; }
  ObserverPhase phase() const override { return ObserverPhase::own; }
  void register_configuration(const ObservedConfiguration&) override {
    close();
    sums_.assign(counters_.size(), 0);
    counted_ = 0;
    scaled_ = false;
  }
  int passes() override { return static_cast<int>(passes_.size()); }

  void begin_pass(int pass) override {
    for (const pid_t thread : own_threads())
      for (const auto& [c, e] : passes_[static_cast<std::size_t>(pass)]) {
        const PerfEvent& event = counters_[c].events[e];
        const int descriptor = open_event(event, thread, counts_inside_kernel(event));
        if (descriptor >= 0)
          open_.push_back({descriptor, c, event.weight});
        else if (errno != ESRCH)  // ESRCH: the thread has just ended
          throw Error(fmt::format("{} cannot be counted: {}", counters_[c].name, std::strerror(errno)));
      }
    ::prctl(PR_TASK_PERF_EVENTS_ENABLE);
  }
  void end_pass(int) override {
    ::prctl(PR_TASK_PERF_EVENTS_DISABLE);
    for (const Open& one : open_) {
      std::uint64_t found[3] = {};  // value, time enabled, time running
      if (::read(one.descriptor, found, sizeof found) != sizeof found)
        throw Error(fmt::format("{} cannot be read: {}", counters_[one.counter].name, std::strerror(errno)));
      if (found[2] == 0) continue;  // the thread did not run
      scaled_ = scaled_ || found[2] < found[1];
      sums_[one.counter] +=
          one.weight * static_cast<double>(found[0]) * static_cast<double>(found[1]) / static_cast<double>(found[2]);
    }
    close();
    ++counted_;
  }
  std::map<std::string, Quantity> results() override {
    std::map<std::string, Quantity> results;
    if (counted_ < passes()) return results;
    const std::string method = fmt::format("perf_event, {} pass{}{}", counted_, counted_ == 1 ? "" : "es",
                                           scaled_ ? ", scaled from a share of the time" : "");
    for (std::size_t c = 0; c < counters_.size(); ++c)
      results[counters_[c].name] = {sums_[c], 0, 1, method, {}, Provenance::measured};
    return results;
  }

 private:
  struct Open {
    int descriptor;
    std::size_t counter;
    double weight;
  };
  void close() {
    for (const Open& one : open_) ::close(one.descriptor);
    open_.clear();
  }

  std::vector<Counter> counters_;
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> passes_;  ///< counters and their events
  std::vector<Open> open_;
  std::vector<double> sums_;
  int counted_ = 0;
  bool scaled_ = false;
};

}  // namespace

void check_perf_names(const std::vector<std::string>& requested) {
  std::vector<std::string> known;
  for (const PerfCounterInfo& counter : perf_counter_names()) known.emplace_back(counter.name);
  for (const std::string& name : requested)
    if (std::ranges::find(known, name) == known.end())
      throw UserError(fmt::format("observer \"perf\": unknown counter \"{}\"{}", name, suggestion(name, known)));
}

std::shared_ptr<Observer> make_perf_observer(const std::vector<std::string>& requested, const DeviceInfo& device,
                                             std::vector<std::string>* notes) {
  check_perf_names(requested);
  if (!device.is_cpu)
    throw UserError(fmt::format("observer \"perf\" counts events of a CPU, and {} is none{}",
                                device.id.empty() ? "this" : device.id,
                                device.backend == "cuda" ? "; NVIDIA's GPUs have the observer \"counters\"" : ""));
  std::vector<Counter> counters;
  std::vector<std::string> missing;
  int failure = 0;
  for (const PerfCounterInfo& info : perf_counter_names()) {
    const bool named = std::ranges::find(requested, info.name) != requested.end();
    if (!requested.empty() && !named) continue;
    Counter counter{std::string(info.name), info.hardware, perf_events_of(info.name)};
    const int code = trouble_with(counter);
    if (code == 0) {
      counters.push_back(std::move(counter));
      continue;
    }
    if (named)
      throw UserError(fmt::format("observer \"perf\": {} is not to be had here: {}", info.name, why_not(code)));
    missing.push_back(std::move(counter.name));
    if (failure == 0 || failure == ENOENT) failure = code;
  }
  if (counters.empty())
    throw UserError(fmt::format("observer \"perf\": nothing can be counted here: {}", why_not(failure)));
  if (notes && !missing.empty())
    notes->push_back(fmt::format("perf: {} {} not to be had here: {}", fmt::join(missing, ", "),
                                 missing.size() == 1 ? "is" : "are", why_not(failure)));
  return std::make_shared<PerfObserver>(std::move(counters));
}

}  // namespace ergotune
