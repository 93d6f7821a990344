// What a round asks of the device; the fake one logs it.
#include "ergotune/measure/workload.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "ergotune/base/error.hpp"
#include "measure/fake_device.hpp"
#include "measure/timing.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;

/// Counts how often a round is to be taken down; takes it down where its test wants that.
class RecordingDevice : public test::FakeDevice {
 public:
  struct Graph : LaunchGraph {
    std::vector<LoadedKernel*> kernels;
  };
  std::unique_ptr<LaunchGraph> record_graph(const std::function<void()>& work) override {
    ++asked;
    if (!takes_down) return nullptr;
    auto graph = std::make_unique<Graph>();
    recording = graph.get();
    work();
    recording = nullptr;
    return graph;
  }
  void launch_graph(LaunchGraph& graph) override {
    const auto& kernels = static_cast<Graph&>(graph).kernels;
    graphs.push_back(kernels.size());
    for (LoadedKernel* kernel : kernels) FakeDevice::launch(*kernel);
  }
  void launch(LoadedKernel& kernel, std::size_t count = 1, Queue* queue = nullptr) override {
    if (recording) return static_cast<void>(recording->kernels.insert(recording->kernels.end(), count, &kernel));
    counts.push_back(count);
    FakeDevice::launch(kernel, count, queue);
  }
  void hold() override { log.emplace_back("hold"); }
  void release() override { log.emplace_back("release"); }
  int asked = 0;
  bool takes_down = false;
  std::vector<std::size_t> graphs;  ///< kernels of each that was launched
  std::vector<std::size_t> counts;  ///< of every launch that was queued by itself

 private:
  Graph* recording = nullptr;
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
  // the first waits until all of it is queued
  std::vector<std::string> expected{"hold"};
  expected.insert(expected.end(), round.begin(), round.end());
  expected.emplace_back("release");
  expected.insert(expected.end(), round.begin(), round.end());
  EXPECT_EQ(device.log, expected);
}

TEST_F(WorkloadTest, AStepOfAKernelThatIsNotThereIsRefused) {
  EXPECT_THROW(KernelWorkload(device, kernels, {{.kernel = 3}}), Error);
}

TEST_F(WorkloadTest, AStepOfAKernelThatIsNotThereIsNamed) {
  try {
    KernelWorkload(device, kernels, {{.kernel = 3}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a step of the workload asks for kernel 4 of 3");
  }
}

TEST_F(WorkloadTest, OneKernelIsOneCallWhateverTheRounds) {
  KernelWorkload twice(device, kernels, {{.kernel = 2, .launches = 2}});
  twice.launch(5);
  EXPECT_THAT(device.counts, ElementsAre(10));
  twice.launch(0);
  EXPECT_EQ(device.counts.size(), 1u);
}

TEST_F(WorkloadTest, OneKernelOnAnotherQueueStaysThere) {
  KernelWorkload beside(device, kernels, {{.kernel = 0, .queue = 1}});
  beside.launch(1);
  EXPECT_THAT(device.log, ElementsAre("hold", "q1 waits for main", "q1: a", "main waits for q1", "release"));
}

TEST_F(WorkloadTest, QueuesAreMadeAsTheyAreAskedFor) {
  const std::vector<WorkloadStep> steps{{.kernel = 0, .queue = 1}, {.kernel = 1, .queue = 2}, {.kernel = 2, .queue = 3}};
  KernelWorkload workload(device, kernels, steps, {QueueOptions{.multiprocessors = 8}, QueueOptions{.multiprocessors = 4}});
  ASSERT_EQ(device.queue_options.size(), 3u);
  EXPECT_EQ(device.queue_options[0].multiprocessors, 8);
  EXPECT_EQ(device.queue_options[1].multiprocessors, 4);
  EXPECT_EQ(device.queue_options[2].multiprocessors, QueueOptions().multiprocessors);
}

struct TakenDown : WorkloadTest {
  TakenDown() { device.takes_down = true; }
  /// So many steps, a and b by turns.
  KernelWorkload make(std::size_t steps, const std::vector<QueueOptions>& queues = {}) {
    std::vector<WorkloadStep> all(steps);
    for (std::size_t i = 0; i < steps; ++i) all[i].kernel = i % 2;
    return KernelWorkload(device, kernels, all, queues);
  }
  /// Of the calls since the last.
  std::vector<std::size_t> graphs() { return std::exchange(device.graphs, {}); }
};

TEST_F(TakenDown, IsEachRoundButTheFirst) {
  KernelWorkload workload = make(2);
  workload.launch(1);
  EXPECT_THAT(graphs(), ElementsAre());
  EXPECT_EQ(device.asked, 0) << "drivers load code with its first launch";
  workload.launch(3);
  EXPECT_THAT(graphs(), ElementsAre(2, 2, 2));
  workload.launch(1);
  EXPECT_THAT(graphs(), ElementsAre(2));
  EXPECT_EQ(device.asked, 1);
  EXPECT_EQ(ran, "ababababab");
}

TEST_F(TakenDown, ManyRoundsGoSixtyFourStepsAtATime) {
  KernelWorkload workload = make(2);  // 32 rounds are 64 steps
  workload.launch(1);
  workload.launch(4 * 32 - 1);
  EXPECT_EQ(graphs(), std::vector<std::size_t>(127, 2)) << "too few of them";
  EXPECT_EQ(device.asked, 1);
  workload.launch(4 * 32);
  EXPECT_EQ(graphs(), std::vector<std::size_t>(4, 64));
  EXPECT_EQ(device.asked, 2);
  workload.launch(4 * 32 + 2);
  EXPECT_THAT(graphs(), ElementsAre(64, 64, 64, 64, 2, 2));
  workload.launch(32);
  EXPECT_THAT(graphs(), ElementsAre(64)) << "it is there";
  EXPECT_EQ(device.asked, 2);
  EXPECT_EQ(ran.size(), 2u * (1 + 127 + 128 + 130 + 32));
  KernelWorkload long_rounds = make(33);  // two of them would be more
  long_rounds.launch(1);
  long_rounds.launch(100);
  EXPECT_EQ(graphs(), std::vector<std::size_t>(100, 33));
  EXPECT_EQ(device.asked, 3);
  KernelWorkload half = make(32);
  half.launch(1);
  half.launch(8);
  EXPECT_EQ(graphs(), std::vector<std::size_t>(4, 64)) << "two of these are as many";
}

TEST_F(TakenDown, OfSeveralQueuesIsAllThatIsAskedFor) {
  KernelWorkload workload(device, kernels, {{.kernel = 0}, {.kernel = 1, .queue = 1}});
  workload.launch(1);
  workload.launch(2);
  EXPECT_THAT(graphs(), ElementsAre(2, 2));
  EXPECT_EQ(ran, "ababab");
}

TEST_F(TakenDown, IsNoRoundOfMoreThanTwentyThousandSteps) {
  KernelWorkload most = make(20'000), more = make(20'001);
  for (KernelWorkload* one : {&most, &more})
    for (int i = 0; i < 2; ++i) one->launch(1);
  EXPECT_THAT(graphs(), ElementsAre(20'000));
  EXPECT_EQ(device.asked, 1);
}

TEST_F(TakenDown, IsAskedForOnce) {
  device.takes_down = false;
  KernelWorkload workload = make(2);
  for (int i = 0; i < 4; ++i) workload.launch(2);
  EXPECT_EQ(device.asked, 1);
  EXPECT_EQ(ran, "abababababababab");
}

TEST_F(TakenDown, AreQueuesOfAllMultiprocessorsOnly) {
  KernelWorkload all = make(2, {QueueOptions{}}), one = make(2, {QueueOptions{.multiprocessors = 1}});
  for (KernelWorkload* workload : {&all, &one})
    for (int i = 0; i < 2; ++i) workload->launch(1);
  EXPECT_EQ(device.asked, 1);
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
