// The evaluator that sets clocks: over a recorded inner evaluator and a Tegra tree, so nothing here needs
// hardware.
#include "ergotune/evaluate/controlled.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "fakes/control_trees/control_trees.hpp"
#include "power/guardian_host.hpp"

namespace ergotune {
namespace {

const guardian_host::Host kHost;

using control_trees::kTegraGpu;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Answers in order and notes the clock that was set while each request was measured.
class RecordingEvaluator : public Evaluator {
 public:
  RecordingEvaluator(const control_trees::Tree& tree, std::vector<std::string>& log)
      : tree_(tree), log_(log) {}
  std::string description() const override { return "recording"; }
  Provenance provenance() const override { return Provenance::measured; }
  std::size_t capacity() const override { return 3; }
  std::size_t pending() const override { return queue_.size(); }
  void submit(EvaluationRequest request) override { queue_.push_back(std::move(request)); }
  void cancel() override { queue_.clear(); }
  std::optional<EvaluationResult> wait(double) override {
    if (queue_.empty()) return std::nullopt;
    auto request = std::move(queue_.front());
    queue_.pop_front();
    const std::string clock = tree_.get(std::string(kTegraGpu) + "/max_freq");
    for (const auto& waiting : queue_) EXPECT_EQ(waiting.configuration[0], request.configuration[0]);
    log_.push_back(request.configuration[0].to_string() + " at " + clock);
    EvaluationResult result{request.id, request.index, {}};
    result.measurement.quantities["core_clock"] = {
        ran_hz ? ran_hz : std::stod(clock), 0, 1, "", "", Provenance::measured};
    if (ran_hz) result.measurement.warnings.push_back("power cap");
    return result;
  }
  double ran_hz = 0;

 private:
  const control_trees::Tree& tree_;
  std::vector<std::string>& log_;
  std::deque<EvaluationRequest> queue_;
};

struct Controlled : ::testing::Test {
  control_trees::Tree tree, state;
  ControlEnvironment environment;
  std::vector<std::string> log;
  RecordingEvaluator* inner = nullptr;
  std::unique_ptr<Evaluator> evaluator;

  void SetUp() override {
    control_trees::add_tegra(tree);
    environment.sysfs_root = tree.root();
    environment.state_folder = state.root() / "state";
    auto recording = std::make_unique<RecordingEvaluator>(tree, log);
    inner = recording.get();
    Parameter clock, tile;
    clock.name = "core_clock_mhz";
    clock.kind = ParameterKind::core_clock_mhz;
    tile.name = "TILE";
    evaluator = make_controlled_evaluator(
        std::move(recording), ControlSession::open(open_control("tegra", environment)), {clock, tile});
  }
  void ask(std::uint64_t id, double mhz) {
    evaluator->submit({id, id, {Value(mhz), Value(16)}, false, 1e300, "time"});
  }
  std::map<std::uint64_t, Measurement> drain() {
    std::map<std::uint64_t, Measurement> results;
    while (auto result = evaluator->wait(0)) results[result->id] = result->measurement;
    return results;
  }
};

TEST_F(Controlled, SetsTheClockBeforeTheMeasurementAndBatchesByClock) {
  const double clocks[] = {306, 1020, 306, 1020, 306, 1300.5};
  for (std::uint64_t id = 0; id < 6; ++id) ask(id, clocks[id]);
  EXPECT_EQ(evaluator->pending(), 6u);
  EXPECT_THAT(drain(), SizeIs(6));
  EXPECT_EQ(evaluator->pending(), 0u);
  EXPECT_THAT(log, ElementsAre("306.0 at 306000000", "306.0 at 306000000", "306.0 at 306000000",
                               "1020.0 at 1020000000", "1020.0 at 1020000000", "1300.5 at 1300500000"));
}

TEST_F(Controlled, PutsEverythingBackAtTheEnd) {
  control_trees::Tree untouched;
  control_trees::add_tegra(untouched);
  ask(1, 1020);
  drain();
  EXPECT_NE(tree.contents(), untouched.contents());
  evaluator.reset();
  EXPECT_EQ(tree.contents(), untouched.contents());
}

TEST_F(Controlled, ARefusedClockIsThatConfigurationsStatus) {
  ask(1, 1020);
  ask(2, 999);
  ask(3, 1020);
  const auto results = drain();
  ASSERT_THAT(results, SizeIs(3));
  EXPECT_EQ(results.at(1).status, Status::ok);
  EXPECT_EQ(results.at(2).status, Status::unsupported);
  EXPECT_THAT(results.at(2).message, HasSubstr("999"));
  EXPECT_EQ(results.at(3).status, Status::ok);
  EXPECT_THAT(log, SizeIs(2)) << "nothing is measured at a clock that was refused";
}

TEST_F(Controlled, AFailingDriverIsALaunchError) {
  std::filesystem::remove(tree.real(std::string(kTegraGpu) + "/max_freq"));
  std::filesystem::create_directory(tree.real(std::string(kTegraGpu) + "/max_freq"));
  ask(1, 1020);
  const auto results = drain();
  EXPECT_EQ(results.at(1).status, Status::launch_error);
  EXPECT_THAT(results.at(1).message, HasSubstr("max_freq"));
}

TEST_F(Controlled, TheClockThatRanIsCompared) {
  inner->ran_hz = 900e6;
  ask(1, 1020);
  EXPECT_THAT(drain().at(1).warnings, Contains("asked 1020 MHz, ran 900 MHz, power cap"));
  inner->ran_hz = 0;
  ask(2, 1020);
  EXPECT_THAT(drain().at(2).warnings, SizeIs(0));
}

TEST_F(Controlled, CancelDropsWhatHasNotStarted) {
  ask(1, 306);
  ask(2, 1020);
  evaluator->cancel();
  EXPECT_EQ(evaluator->pending(), 0u);
  EXPECT_THAT(drain(), SizeIs(0));
}

}  // namespace
}  // namespace ergotune
