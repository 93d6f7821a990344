// What becomes of what observers say, and when they are called beside the launches.
#include "measure/observers/observation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "base/clock.hpp"
#include "measure/runner_fixture.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;

/// Says of a configuration what a test wants.
struct Saying : Observer {
  explicit Saying(ObserverPhase phase = ObserverPhase::repetitions) : of(phase) {}
  std::string name() const override { return "saying"; }
  ObserverPhase phase() const override { return of; }
  std::map<std::string, Quantity> results() override {
    return {{std::to_string(static_cast<int>(of)), {1, 0, 1, "", "", Provenance::measured}}};
  }
  std::vector<std::string> warnings() override { return {"hot", "hot"}; }
  Status verdict(std::string& message) override {
    message = words;
    return status;
  }
  ObserverPhase of;
  Status status = Status::ok;
  std::string words;
};

Measurement after(Status measured, Status said, const std::string& words) {
  const auto observer = std::make_shared<Saying>();
  observer->status = said;
  observer->words = words;
  Observation observation;
  observation.add(observer);
  Measurement m;
  m.status = measured;
  m.message = "as it was";
  observation.collect(m);
  return m;
}

TEST(Verdicts, MakeAStatusWorseAndNeverBetter) {
  const auto expect = [](Status measured, Status said, Status status, const std::string& message) {
    const Measurement m = after(measured, said, "said");
    EXPECT_EQ(m.status, status) << to_string(measured) << ", " << to_string(said);
    EXPECT_EQ(m.message, message) << to_string(measured) << ", " << to_string(said);
  };
  expect(Status::ok, Status::ok, Status::ok, "as it was");
  expect(Status::ok, Status::not_converged, Status::not_converged, "said");
  expect(Status::ok, Status::unsupported, Status::unsupported, "said");
  expect(Status::not_converged, Status::ok, Status::not_converged, "as it was");
  expect(Status::not_converged, Status::not_converged, Status::not_converged, "as it was");
  expect(Status::not_converged, Status::unsupported, Status::unsupported, "said");
  expect(Status::unsupported, Status::not_converged, Status::unsupported, "as it was");
  EXPECT_EQ(after(Status::ok, Status::not_converged, "").message, "as it was") << "no words take none away";
}

TEST(Results, OfWhatWasNotMeasuredAfterAllAreNotTaken) {
  Observation observation;
  for (const auto phase :
       {ObserverPhase::repetitions, ObserverPhase::launches, ObserverPhase::stream, ObserverPhase::own})
    observation.add(std::make_shared<Saying>(phase));
  Measurement whole, given_up;
  observation.collect(whole);
  observation.collect(given_up, true);
  EXPECT_EQ(whole.quantities.size(), 4u);
  EXPECT_THAT(whole.warnings, ElementsAre("hot")) << "once";
  EXPECT_EQ(given_up.quantities.size(), 1u);
  EXPECT_TRUE(given_up.quantities.contains(std::to_string(static_cast<int>(ObserverPhase::repetitions))));
}

/// Whose `during` does what a test wants.
struct Beside : Observer {
  std::function<void()> work;
  std::atomic<int> calls{0};
  std::string name() const override { return "beside"; }
  void during() override {
    ++calls;
    if (work) work();
  }
  std::map<std::string, Quantity> results() override { return {}; }
};

void until(const std::function<bool()>& done) {
  while (!done()) std::this_thread::yield();
}
/// A while in which a thread that should not do anything could do it.
void a_while() {
  const double begin = host_seconds();
  until([&] { return host_seconds() - begin > 2e-3; });
}

TEST(BesideLaunches, NobodyIsCalledAfterTheirEndWhichWaitsForTheCallUnderWay) {
  const auto observer = std::make_shared<Beside>();
  std::atomic<int> ended{0};
  observer->work = [&] {
    a_while();
    ++ended;
  };
  for (const bool fault : {false, true}) {
    ObserverThread thread;
    thread.begin({observer});
    until([&, before = observer->calls.load()] { return observer->calls > before; });
    fault ? thread.cancel() : thread.end();
    EXPECT_EQ(ended, observer->calls);
    const int calls = observer->calls;
    a_while();
    EXPECT_EQ(observer->calls, calls);
    thread.begin({observer});
    until([&] { return observer->calls > calls; });
  }
}

}  // namespace
}  // namespace ergotune
