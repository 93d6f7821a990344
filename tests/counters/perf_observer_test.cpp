#include "counters/perf_observer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "error_of.hpp"

namespace ergotune {
namespace {

using testing::HasSubstr;

DeviceInfo processor() {
  DeviceInfo device;
  device.id = device.backend = "host";
  device.is_cpu = true;
  return device;
}

std::string refusal(const std::vector<std::string>& requested, const DeviceInfo& device = processor()) {
  return error_of([&] { make_perf_observer(requested, device, nullptr); }, "none");
}

/// What every pass counts of `work`.
template <class F>
std::map<std::string, Quantity> counted(Observer& observer, F&& work) {
  observer.register_configuration({});
  for (int pass = 0; pass < observer.passes(); ++pass) {
    observer.begin_pass(pass);
    work();
    observer.end_pass(pass);
  }
  return observer.results();
}

void spin(double seconds) {
  const double begin = host_seconds();
  volatile double x = 1;
  while (host_seconds() - begin < seconds)
    for (int i = 0; i < 1000; ++i) x = x * 1.0000001;
}

class Perf : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string message = refusal({"task_clock", "page_faults"}); message != "none") GTEST_SKIP() << message;
  }
};

TEST_F(Perf, CountsPagesThatAreTouched) {
  const auto observer = make_perf_observer({"page_faults"}, processor(), nullptr);
  constexpr std::size_t kPages = 5000;
  const auto found = counted(*observer, [] {
    std::vector<char> memory(kPages * 4096);
    for (std::size_t i = 0; i < kPages; ++i) memory[i * 4096] = 1;
    volatile char kept = memory[kPages * 2048];
    (void)kept;
  });
  // huge pages make fewer of them
  EXPECT_GE(found.at("page_faults").value, 1);
  EXPECT_LE(found.at("page_faults").value, 2 * kPages);
  EXPECT_EQ(counted(*observer, [] {}).at("page_faults").value < 50, true) << "each configuration begins anew";
}

TEST_F(Perf, CountsThreadsThatWereThereAndThoseThatAreStarted) {
  std::atomic<int> stage{0};
  std::atomic<bool> end{false};
  std::thread there([&] {
    while (!end)
      if (stage == 1) {
        spin(0.03);
        stage = 2;
      } else {
        std::this_thread::yield();
      }
  });
  const auto observer = make_perf_observer({"task_clock"}, processor(), nullptr);
  const double alone = counted(*observer, [] { spin(0.03); }).at("task_clock").value;
  const double started = counted(*observer,
                                 [] {
                                   std::thread other([] { spin(0.03); });
                                   spin(0.03);
                                   other.join();
                                 })
                             .at("task_clock")
                             .value;
  stage = 1;
  const double both = counted(*observer,
                              [&] {
                                while (stage != 2) std::this_thread::yield();
                              })
                          .at("task_clock")
                          .value;
  end = true;
  there.join();
  EXPECT_GT(alone, 0) << "processor time: on a busy machine less than passed";
  EXPECT_GT(started, 0);
  EXPECT_GT(both, 0);
}

TEST_F(Perf, SaysOnceWhatIsNotToBeHad) {
  std::vector<std::string> notes;
  const auto observer = make_perf_observer({}, processor(), &notes);
  const auto found = counted(*observer, [] { spin(0.001); });
  EXPECT_TRUE(found.contains("task_clock"));
  if (found.contains("instructions")) {
    EXPECT_GT(found.at("instructions").value, 1000);
  } else {
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_THAT(notes.front(), HasSubstr("instructions"));
    EXPECT_THAT(refusal({"instructions"}), HasSubstr("instructions"));
  }
}

TEST(PerfNames, MistakesAreNamed) {
  EXPECT_THAT(refusal({"instrutions"}), HasSubstr("\"instructions\""));
  DeviceInfo gpu;
  gpu.id = "cuda:0";
  gpu.backend = "cuda";
  EXPECT_THAT(refusal({}, gpu), HasSubstr("\"counters\""));
}

}  // namespace
}  // namespace ergotune
