// Several GPUs of one kind: how they compare, and an answer that does not depend on who measured what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "base/process/file_lock.hpp"
#include "ergotune/error.hpp"
#include "ergotune/random.hpp"
#include "temporary_folder.hpp"
#include "tune/ledger/device_factors.hpp"
#include "tune/session/device_lock.hpp"
#include "tune/session/session.hpp"

namespace ergotune {
namespace {
using ::testing::SizeIs;

Measurement reading(double time, double energy, double error = 1e-3) {
  Measurement m;
  m.quantities["time"] = {time, error * time, 7, "fake", "", Provenance::measured};
  m.quantities["energy"] = {energy, error * energy, 7, "fake", "", Provenance::measured};
  return m;
}

TEST(DeviceFactors, AreRatiosToTheMeanGpu) {
  DeviceFactors factors;
  factors.add("a", 0, reading(1.0, 2.0));
  EXPECT_FALSE(factors.several());
  EXPECT_FALSE(factors.factor("a", "time")) << "nothing to compare with";
  factors.add("b", 0, reading(1.21, 2.0));
  ASSERT_TRUE(factors.several());
  EXPECT_NEAR(factors.factor("a", "time")->value, 1 / 1.1, 1e-12);
  EXPECT_NEAR(factors.factor("b", "time")->value, 1.1, 1e-12);
  EXPECT_NEAR(factors.factor("b", "energy")->value, 1, 1e-12);
  EXPECT_FALSE(factors.factor("c", "time"));
  Measurement failed = reading(9, 9);
  failed.status = Status::runtime_error;
  factors.add("c", 0, failed);
  EXPECT_FALSE(factors.factor("c", "time"));
  Measurement level = reading(1.1, 3.0);
  ASSERT_TRUE(factors.level(level, "b"));
  EXPECT_NEAR(*level.value("time"), 1.0, 1e-12);
  EXPECT_GT(level.standard_error("time"), 1e-3);
  EXPECT_FALSE(factors.level(level, "c"));
}

// What the interval says holds: over many drawn sessions it covers the true factor about as often as it claims.
TEST(DeviceFactors, IntervalsCoverTheTruth) {
  Random random(11);
  int covered = 0, requested = 0;
  for (int trial = 0; trial < 400; ++trial) {
    DeviceFactors factors;
    const double truth[] = {0.03, -0.01, 0.02, 0.0};
    double centre = 0;
    for (const double t : truth) centre += t / 4;
    for (int b = 0; b < 4; ++b)
      for (int n = 0; n < 3; ++n)
        factors.add(std::string(1, static_cast<char>('a' + b)), 0,
                    reading(std::exp(truth[b] + 0.004 * random.normal()), 1, 0.004));
    for (int b = 0; b < 4; ++b) {
      const auto factor = factors.factor(std::string(1, static_cast<char>('a' + b)), "time");
      covered +=
          std::abs(std::log(factor->value) - (truth[b] - centre)) < 1.96 * factor->standard_error / factor->value;
      ++requested;
    }
  }
  EXPECT_GT(covered, 0.93 * requested);
  EXPECT_LT(covered, 0.995 * requested) << "an interval that always covers says nothing";
}

/// GPUs that share the work, each a factor away from what a configuration takes.
class FakeGpus : public QueuedEvaluator {
 public:
  std::map<std::string, double> factors{{"A", 0.94}, {"B", 1.0}, {"C", 1.06}};
  std::map<std::string, std::map<std::string, int>> runs;  ///< kind -> GPU -> count
  std::set<std::string> lost;
  std::function<void(FakeGpus&, const EvaluationRequest&)> before;

  std::string description() const override { return "fake boards"; }
  Provenance provenance() const override { return Provenance::measured; }
  std::size_t capacity() const override { return 3; }
  std::vector<DeviceShare> gpus() const override {
    std::vector<DeviceShare> shares;
    for (const auto& [gpu, factor] : factors)
      shares.push_back({gpu, "fake:" + gpu, "Fake", 0, 1, 0, lost.contains(gpu)});
    return shares;
  }
  EvaluationResult answer(const EvaluationRequest& request) override {
    if (before) before(*this, request);
    std::string gpu = request.gpu;
    if (gpu.empty() || lost.contains(gpu)) {
      auto next = std::next(factors.begin(), static_cast<long>(turn_++ % factors.size()));
      while (lost.contains(next->first)) next = std::next(factors.begin(), static_cast<long>(turn_++ % factors.size()));
      gpu = next->first;
    }
    ++runs[request.reference ? "reference" : request.repeat ? "confirmation" : "search"][gpu];
    const double x = request.configuration[0].as_real();
    // 7 is best, by 2 %: less than the GPUs differ
    const double time = 1e-3 * (x == 7 ? 0.98 : 1 + 0.0005 * x) * factors.at(gpu) * (1 + 2e-4 * random_.normal());
    EvaluationResult result;
    result.measurement = reading(time, time * 300, 2e-4);
    result.gpu = gpu;
    return result;
  }

 private:
  Random random_{3};
  std::size_t turn_ = 0;
};

struct GpusSession : ::testing::Test {
  FakeGpus evaluator;
  SearchSpace space = [] {
    Parameter x;
    x.name = "x";
    for (int i = 1; i <= 30; ++i) x.values.emplace_back(i);
    return SearchSpace::build({x}, {});
  }();
  Objective objective = Objective::parse({}, {});
  SessionOptions options;
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "boards.db";

  GpusSession() { options.strategy = "brute_force"; }
  std::int64_t session(Store& store) {
    SessionKey identity;
    identity.problem = "boards";
    identity.problem_document = "p";
    return store.session(identity, {"x"}, "time", "{}", "{}");
  }
};

TEST_F(GpusSession, TheReferenceRunsOnEachAndTheAnswerIsConfirmedOnOne) {
  Store store = Store::open(file);
  const auto id = session(store);
  const SessionResult result = run_session(space, objective, evaluator, &store, id, options);
  ASSERT_FALSE(result.best.empty());
  EXPECT_EQ(space.configuration(result.best.front().index)[0], Value(7))
      << "though boards differ more than configurations";
  EXPECT_EQ(result.evaluated, 30u) << "references count for themselves";
  EXPECT_THAT(evaluator.runs["reference"], SizeIs(3));
  EXPECT_THAT(evaluator.runs["confirmation"], SizeIs(1));
  ASSERT_THAT(result.gpus, SizeIs(3));
  for (const DeviceResult& gpu : result.gpus) {
    const auto& factor = gpu.factors.at("time");
    const double centre = std::cbrt(0.94 * 1.06);
    EXPECT_NEAR(factor.value, evaluator.factors.at(gpu.gpu) / centre, 4 * factor.standard_error + 1e-4);
  }
  int references = 0;
  for (const StoredRow& row : store.rows(id)) {
    EXPECT_FALSE(row.gpu.empty()) << "every row says its board";
    references += row.kind == RowKind::reference;
  }
  EXPECT_EQ(references, 3);
  EXPECT_THAT(store.results(id), SizeIs(30)) << "a reference is no result of the search";
  EXPECT_EQ(result.best.front().gpu, evaluator.runs["confirmation"].begin()->first);
}

TEST_F(GpusSession, AResumedSessionKnowsTheFactors) {
  Store store = Store::open(file);
  const auto id = session(store);
  options.budget.evaluations = 10;
  run_session(space, objective, evaluator, &store, id, options);
  FakeGpus later;
  later.factors = {{"C", 1.06}, {"D", 0.9}};  // one GPU is the same, one is new
  options.budget.evaluations = 30;
  const SessionResult result = run_session(space, objective, later, &store, id, options);
  EXPECT_EQ(result.resumed, 10u);
  EXPECT_EQ(space.configuration(result.best.front().index)[0], Value(7));
  EXPECT_TRUE(result.gpus.at(1).factors.contains("time"));
}

TEST_F(GpusSession, ReferencesComeAgainAndOnGpusThatComeLater) {
  options.reference_every = 0.4;
  options.confirm = false;
  evaluator.before = [](FakeGpus& gpus, const EvaluationRequest& request) {
    if (request.index == 5) gpus.factors["D"] = 1.0;
    if (request.index > 5 && !request.reference) ::usleep(70'000);
  };
  run_session(space, objective, evaluator, nullptr, 0, options);
  EXPECT_GE(evaluator.runs["reference"]["A"], 2);
  EXPECT_GE(evaluator.runs["reference"]["D"], 1);
}

TEST_F(GpusSession, ABoardThatIsLostWhileItConfirmsTakesItsRoundsWithIt) {
  int rounds = 0;
  evaluator.before = [&](FakeGpus& gpus, const EvaluationRequest& request) {
    if (request.repeat && !request.reference && ++rounds == 4) gpus.lost.insert("A");
  };
  Store store = Store::open(file);
  const auto id = session(store);
  const SessionResult result = run_session(space, objective, evaluator, &store, id, options);
  EXPECT_EQ(space.configuration(result.best.front().index)[0], Value(7));
  std::set<std::string> confirmed;
  for (const StoredRow& row : store.rows(id))
    if (row.kind == RowKind::confirmed) confirmed.insert(row.gpu);
  EXPECT_THAT(confirmed, SizeIs(1)) << "a mean over rounds of one board";
  EXPECT_FALSE(confirmed.contains("A"));
}

TEST(DeviceTurns, OfTheCpuAreThoseOfAllItsDevices) {
  const TemporaryFolder folder;
  ::setenv("ERGOTUNE_DEVICE_LOCK", folder.path().c_str(), 1);
  DeviceInfo opencl;
  opencl.is_cpu = true;
  opencl.id = "opencl:0";
  const auto other = std::make_shared<FileLock>(folder.path() / "ergotune-device-processor.lock", true);
  std::error_code failure;
  ASSERT_TRUE(other->take(failure));
  try {
    wait_for_lock(opencl, {}, nullptr);
    ADD_FAILURE() << "another session holds the processor";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("CPU")) << "the other may use another device of it";
  }
  ::setenv("ERGOTUNE_DEVICE_LOCK", "off", 1);
}

TEST(DeviceTurns, OfSeveralDevicesAreTakenTogether) {
  const TemporaryFolder folder;
  ::setenv("ERGOTUNE_DEVICE_LOCK", folder.path().c_str(), 1);
  std::vector<DeviceInfo> devices(2);
  devices[0].uuid = "GPU-b";
  devices[1].uuid = "GPU-a";
  const auto turns = wait_for_locks(devices, {}, nullptr);
  EXPECT_TRUE(turns);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "ergotune-device-GPU-a.lock"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "ergotune-device-GPU-b.lock"));
  ::setenv("ERGOTUNE_DEVICE_LOCK", "off", 1);
}

}  // namespace
}  // namespace ergotune
