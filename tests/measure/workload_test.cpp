// What a round asks of the device; the fake one logs it.
#include "ergotune/measure/workload.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/base/error.hpp"
#include "measure/fake_device.hpp"
#include "measure/timing.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;

/// Counts how often a round is to be taken down, and takes none.
class RecordingDevice : public test::FakeDevice {
 public:
  std::unique_ptr<LaunchGraph> record_graph(const std::function<void()>&) override {
    ++asked;
    return nullptr;
  }
  int asked = 0;
};

class WorkloadTest : public ::testing::Test {
 protected:
  WorkloadTest() {
    for (const char* name : {"a", "b", "c"}) {
      device.kernels[name] = [this, name](const test::FakeLaunch&) {
        ran += name;
        return 1e-3;
      };
      loaded.push_back(device.load({"", name, ""}));
      kernels.push_back(loaded.back().get());
    }
  }
  RecordingDevice device;
  std::string ran;
  std::vector<std::unique_ptr<LoadedKernel>> loaded;
  std::vector<LoadedKernel*> kernels;
};

TEST_F(WorkloadTest, OfOneKernelIsItsLaunches) {
  KernelWorkload workload(device, *kernels[1]);
  workload.launch(3);
  EXPECT_EQ(ran, "bbb");
  KernelWorkload twice(device, kernels, {{.kernel = 2, .launches = 2}});
  twice.launch(2);
  EXPECT_EQ(ran, "bbbcccc");
  EXPECT_EQ(device.queues, 0u);
}

TEST_F(WorkloadTest, RoundsOnPartsOfADeviceAreQueuedLaunchByLaunch) {
  KernelWorkload anywhere(device, kernels, {{.kernel = 0}, {.kernel = 1, .queue = 1}});
  anywhere.launch(3);
  anywhere.launch(3);
  EXPECT_EQ(device.asked, 1);
  KernelWorkload parts(device, kernels, {{.kernel = 0}, {.kernel = 1, .queue = 1}}, {QueueOptions{.multiprocessors = 8}});
  parts.launch(3);
  parts.launch(3);
  EXPECT_EQ(device.asked, 1);
}

TEST_F(WorkloadTest, StepsRunInTheirOrderRoundByRound) {
  KernelWorkload workload(device, kernels, {{.kernel = 0}, {.kernel = 2, .launches = 2}, {.kernel = 1}});
  workload.launch(2);
  EXPECT_EQ(ran, "accbaccb");
}

TEST_F(WorkloadTest, QueuesForkFromTheMainOneAndJoinItInEveryRound) {
  KernelWorkload workload(
      device, kernels,
      {{.kernel = 0}, {.kernel = 1, .queue = 1}, {.kernel = 2, .queue = 2}, {.kernel = 2, .queue = 1}});
  workload.launch(2);
  const std::vector<std::string> round{
      "q1 waits for main", "q2 waits for main", "main: a", "q1: b", "q1: c", "q2: c",
      "main waits for q1", "main waits for q2"};
  auto expected = round;
  expected.insert(expected.end(), round.begin(), round.end());
  EXPECT_EQ(device.log, expected);
}

TEST_F(WorkloadTest, AStepOfAKernelThatIsNotThereIsRefused) {
  EXPECT_THROW(KernelWorkload(device, kernels, {{.kernel = 3}}), Error);
}

TEST_F(WorkloadTest, TheTimerKnowsRoundsOnly) {
  struct Anything : Workload {
    test::FakeDevice& device;
    explicit Anything(test::FakeDevice& d) : device(d) {}
    void launch(std::size_t rounds) override { device.now += 2e-3 * static_cast<double>(rounds); }
  } workload(device);
  const MeasureOptions options;
  Timer timer(device, options);
  EXPECT_DOUBLE_EQ(timer.once(workload), 2e-3);
  EXPECT_NEAR(timer.measure(workload, 2e-3, 1e300, {}, nullptr).estimate.value, 2e-3, 1e-12);
}

}  // namespace
}  // namespace ergotune
