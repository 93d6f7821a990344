// The observer "perf" on processors that this machine need not have: what it asks the system for, how counts become
// counters, and what it says where nothing can be had.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "counters/fake_perf_events.hpp"
#include "counters/perf_observer.hpp"
#include "problem/tables/counter_names.hpp"

namespace ergotune {
namespace {

using test::FakePerfEvents;
using Event = FakePerfEvents::Event;

const Event kCycles{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    kInstructions{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    kTaskClock{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    kPageFaults{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS};

class PerfCounting : public testing::Test {
 protected:
  static DeviceInfo processor() {
    DeviceInfo device;
    device.id = device.backend = "host";
    device.is_cpu = true;
    return device;
  }
  std::shared_ptr<Observer> observer(const std::vector<std::string>& requested) {
    const auto made = make_perf_observer(requested, processor(), &notes);
    made->register_configuration({});
    events.opened.clear();
    return made;
  }
  /// Of one configuration, and what it opened in each pass, once for each thread.
  std::map<std::string, Quantity> counted(Observer& perf) {
    perf.register_configuration({});
    passes.clear();
    for (int pass = 0; pass < perf.passes(); ++pass) {
      perf.begin_pass(pass);
      perf.end_pass(pass);
      passes.emplace_back();
      std::set<int> threads;
      for (const auto& one : events.opened_for_threads()) {
        threads.insert(one.thread);
        if (one.thread == *threads.begin()) passes.back().push_back(one.event());
      }
      thread_count = static_cast<double>(threads.size());
    }
    return perf.results();
  }
  FakePerfEvents events;
  std::vector<std::string> notes;
  std::vector<std::vector<Event>> passes;
  double thread_count = 0;
};

TEST_F(PerfCounting, WatchesEachThreadAndThoseThatItStartsOfThisProcessAlone) {
  std::atomic<bool> end{false};
  std::thread other([&] { end.wait(false); });
  const auto perf = observer({"instructions"});
  perf->begin_pass(0);
  const auto opened = events.opened_for_threads();
  std::set<int> threads;
  for (const auto& one : opened) {
    threads.insert(one.thread);
    EXPECT_EQ(one.event(), kInstructions);
    EXPECT_EQ(one.attributes.size, sizeof(perf_event_attr));
    EXPECT_EQ(one.attributes.disabled, 1u) << "until the round begins";
    EXPECT_EQ(one.attributes.inherit, 1u);
    EXPECT_EQ(one.attributes.exclude_kernel, 1u);
    EXPECT_EQ(one.attributes.exclude_hv, 1u);
    EXPECT_EQ(one.processor, -1) << "wherever it runs";
    EXPECT_EQ(one.group, -1);
    EXPECT_EQ(one.flags, static_cast<unsigned long>(PERF_FLAG_FD_CLOEXEC));
  }
  EXPECT_EQ(threads.size(), opened.size()) << "each once";
  EXPECT_GE(threads.size(), 2u);
  EXPECT_TRUE(threads.contains(::gettid()));
  perf->end_pass(0);
  for (const auto& one : opened) EXPECT_EQ(::fcntl(one.descriptor, F_GETFD), -1) << "nothing stays open";
  EXPECT_EQ(perf->results().at("instructions").value, 10.0 * static_cast<double>(opened.size()));
  end = true;
  end.notify_all();
  other.join();
}

TEST_F(PerfCounting, FourOfTheProcessorInAPassAndTheSystemsWithTheFirst) {
  const std::vector<std::string> hardware{"cycles",   "instructions",  "cache_references", "cache_misses",
                                          "branches", "branch_misses", "l1d_misses",       "dtlb_misses"};
  for (const std::size_t count : {1, 4, 5, 8}) {
    std::vector<std::string> requested(hardware.begin(), hardware.begin() + static_cast<std::ptrdiff_t>(count));
    requested.insert(requested.end(), {"task_clock", "page_faults"});
    const auto found = counted(*observer(requested));
    EXPECT_EQ(found.size(), requested.size());
    EXPECT_EQ(passes.size(), (count + 3) / 4);
    std::size_t left = count;
    for (std::size_t pass = 0; pass < passes.size(); ++pass) {
      EXPECT_EQ(passes[pass].size(), std::min<std::size_t>(left, 4) + (pass == 0 ? 2 : 0)) << count << " " << pass;
      left -= std::min<std::size_t>(left, 4);
    }
    EXPECT_EQ(found.at("cycles").value, 10 * thread_count);
    EXPECT_EQ(found.at("cycles").method, count > 4 ? "perf_event, 2 passes" : "perf_event, 1 pass");
  }
  counted(*observer({"page_faults"}));
  EXPECT_EQ(passes, (std::vector<std::vector<Event>>{{kPageFaults}}))
      << "one pass, though the processor counts nothing";
}

TEST_F(PerfCounting, TimeIsInSeconds) {
  events.counts[kTaskClock] = {2'000'000'000, 5, 5};
  const auto found = counted(*observer({"task_clock"}));
  EXPECT_DOUBLE_EQ(found.at("task_clock").value, 2 * thread_count);
}

TEST_F(PerfCounting, WhatIsCountedForAShareOfTheTimeIsScaledAndSaysSo) {
  events.counts[kCycles] = {100, 200, 50};
  const auto perf = observer({"cycles", "instructions"});
  auto found = counted(*perf);
  EXPECT_EQ(found.at("cycles").value, 400 * thread_count);
  EXPECT_EQ(found.at("cycles").method, "perf_event, 1 pass, scaled from a share of the time");
  EXPECT_EQ(found.at("instructions").value, 10 * thread_count);
  events.counts[kCycles] = {100, 200, 200};
  found = counted(*perf);
  EXPECT_EQ(found.at("cycles").value, 100 * thread_count);
  EXPECT_EQ(found.at("cycles").method, "perf_event, 1 pass") << "each configuration begins anew";
  events.counts[kCycles] = {0, 200, 0};
  found = counted(*perf);
  EXPECT_EQ(found.at("cycles").value, 0) << "no thread ran";
  EXPECT_EQ(found.at("cycles").method, "perf_event, 1 pass");
}

TEST(PerfEvents, OperationsAreAsManyAsAnInstructionOfThatWidthHas) {
  // FP_ARITH_INST_RETIRED: a bit for each of scalar, 128, 256 and 512 bits, double and single precision
  std::map<std::uint64_t, double> weights;
  for (const auto& [type, config, weight] : flop_events("GenuineIntel")) {
    EXPECT_EQ(type, static_cast<std::uint32_t>(PERF_TYPE_RAW));
    weights[config] = weight;
  }
  const std::map<std::uint64_t, double> wanted{{0x01c7, 1},        {0x02c7, 1},        {0x04c7, 128 / 64},
                                               {0x08c7, 128 / 32}, {0x10c7, 256 / 64}, {0x20c7, 256 / 32},
                                               {0x40c7, 512 / 64}, {0x80c7, 512 / 32}};
  EXPECT_EQ(weights, wanted);
  ASSERT_EQ(flop_events("AuthenticAMD").size(), 1u);
  EXPECT_EQ(flop_events("AuthenticAMD")[0].weight, 1) << "it counts operations";
  EXPECT_TRUE(flop_events("").empty());
}

}  // namespace
}  // namespace ergotune
