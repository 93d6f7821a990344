// What becomes of what observers say, and when they are called beside the launches.
#include "measure/observation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>

#include "ergotune/base/clock.hpp"
#include "measure/observers.hpp"
#include "measure/runner_fixture.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;

/// Says of a configuration what a test wants.
struct Saying : Observer {
  explicit Saying(ObserverPhase phase = ObserverPhase::repetitions) : of(phase) {}
  std::string name() const override { return "saying"; }
  ObserverPhase phase() const override { return of; }
  std::map<std::string, Quantity> results() override { return {{to_string(of), {1, 0, 1, "", "", Provenance::measured}}}; }
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
  for (const auto phase : {ObserverPhase::repetitions, ObserverPhase::launches, ObserverPhase::stream, ObserverPhase::own})
    observation.add(std::make_shared<Saying>(phase));
  Measurement whole, given_up;
  observation.collect(whole);
  observation.collect(given_up, true);
  EXPECT_EQ(whole.quantities.size(), 4u);
  EXPECT_THAT(whole.warnings, ElementsAre("hot")) << "once";
  EXPECT_EQ(given_up.quantities.size(), 1u);
  EXPECT_TRUE(given_up.quantities.contains("repetitions"));
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
    DuringThread thread;
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

TEST(BesideLaunches, WhatACallThrowsEndsTheCallsAndIsThrownAtTheirEnd) {
  const auto observer = std::make_shared<Beside>();
  observer->work = [] { throw std::runtime_error("broken"); };
  DuringThread thread;
  thread.begin({observer});
  until([&] { return observer->calls > 0; });
  a_while();
  EXPECT_EQ(observer->calls, 1);
  try {
    thread.end();
    ADD_FAILURE() << "it was broken";
  } catch (const ObserverError& error) {
    EXPECT_STREQ(error.what(), "observer beside: broken");
  }
  observer->work = nullptr;
  thread.begin({observer});
  until([&] { return observer->calls > 1; });
  EXPECT_NO_THROW(thread.end()) << "of the configuration before";
}

/// Of a stream of `most` marks with pauses, if it wants any.
struct Watching : Observer {
  std::string name() const override { return "watching"; }
  ObserverPhase phase() const override { return ObserverPhase::stream; }
  double wanted_mark_period() const override { return mark_period; }
  bool wants_more(const LaunchStream& so_far) override {
    seen.push_back(so_far.marks.size());
    return seen.size() < most;
  }
  double wanted_pause() override { return pauses > 0 && pauses-- > 0 ? 1e-4 : 0; }
  void finished(const LaunchStream& stream) override { marks = stream.marks; }
  std::map<std::string, Quantity> results() override { return {}; }
  double mark_period = 0;
  std::size_t most = 20;
  int pauses = 0;
  std::vector<std::size_t> seen;
  std::vector<LaunchMark> marks;
};

class ObservedStreams : public test::RunnerTest {
 protected:
  std::vector<std::shared_ptr<Watching>> watched(std::vector<Watching> wishes) {
    Runner runner(device, problem, options);
    std::vector<std::shared_ptr<Watching>> observers;
    for (Watching& one : wishes) runner.add_observer(observers.emplace_back(std::make_shared<Watching>(std::move(one))));
    EXPECT_EQ(measure(runner, 32).status, Status::ok);
    return observers;
  }
  static Watching wish(double mark_period) {
    Watching one;
    one.mark_period = mark_period;
    return one;
  }
};

TEST_F(ObservedStreams, HaveTheMarksThatTheMostCuriousWants) {
  const auto launches_between_marks = [&](std::vector<Watching> wishes) {
    const auto marks = watched(std::move(wishes)).front()->marks;
    return marks.at(1).launches - marks.at(0).launches;  // of 1 ms each
  };
  EXPECT_EQ(launches_between_marks({wish(0)}), 10u) << "no wish";
  EXPECT_EQ(launches_between_marks({wish(5e-3), wish(2e-3), wish(0)}), 2u);
  EXPECT_EQ(launches_between_marks({wish(2e-3), wish(5e-3)}), 2u);
}

TEST_F(ObservedStreams, GoOnWhileSomebodyWantsMore) {
  Watching content;
  content.most = 1;
  const auto found = watched({content, Watching(), content});
  EXPECT_EQ(found[1]->seen.size(), 20u) << "asked no more once nobody wanted more";
  EXPECT_EQ(found[1]->seen.front(), 2u) << "there is something to judge from the second mark on";
  EXPECT_EQ(found[0]->seen.size(), 20u) << "all are asked each time";
  EXPECT_GE(found[1]->marks.size(), 21u);
  options.stream_seconds_limit = 0;
  EXPECT_TRUE(watched({Watching()}).front()->seen.empty()) << "its time is up";
}

TEST_F(ObservedStreams, RestAsOftenAsSomebodyWishesAndTwoMarksOfTheSameLaunchesTellIt) {
  Watching restless;
  restless.pauses = 2;
  for (auto wishes : {std::vector<Watching>{restless, Watching()}, std::vector<Watching>{Watching(), restless}}) {
    const auto marks = watched(wishes).front()->marks;
    int pauses = 0;
    for (std::size_t i = 1; i < marks.size(); ++i) pauses += marks[i].launches == marks[i - 1].launches;
    EXPECT_EQ(pauses, 2);
  }
}

TEST(LaunchCounter, CountsExactly) {
  const auto counter = make_launch_counter();
  counter->after_finish();
  counter->after_finish();
  EXPECT_EQ(counter->results().at("launches").value, 2);
  EXPECT_EQ(counter->results().at("launches").standard_error, 0);
  counter->register_configuration({});
  EXPECT_EQ(counter->results().at("launches").value, 0);
}

TEST(HostTimer, TimesWhatPassesOnTheHost) {
  const auto timer = make_host_timer(2);
  timer->register_configuration({});
  const double begin = host_seconds();
  timer->begin_pass(0);
  a_while();
  timer->end_pass(0);
  const double most = host_seconds() - begin, found = timer->results().at("host_time").value;
  EXPECT_GT(found, 2e-3);
  EXPECT_LE(found, most);
}

}  // namespace
}  // namespace ergotune
