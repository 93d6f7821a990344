// What a round asks of the device; the fake one logs it.
#include "measure/timing/workload.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "ergotune/error.hpp"
#include "measure/fake_device.hpp"
#include "measure/timing/timing.hpp"

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
    ++requested;
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
  int requested = 0;
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
  const std::vector<std::string> round{"q1 waits for main", "q2 waits for main", "main: a", "q1: b", "q1: c", "q2: c",
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
  EXPECT_EQ(device.requested, 0) << "drivers load code with its first launch";
  workload.launch(3);
  EXPECT_THAT(graphs(), ElementsAre(2, 2, 2));
  workload.launch(1);
  EXPECT_THAT(graphs(), ElementsAre(2));
  EXPECT_EQ(device.requested, 1);
  EXPECT_EQ(ran, "ababababab");
}

}  // namespace
}  // namespace ergotune
