// The live evaluator with scripted workers.
#include "evaluate/live/live_evaluator.hpp"
#include "ergotune/problem.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>

#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "evaluate/one_processor.hpp"
#include "evaluate/scripted_workers.hpp"

namespace ergotune {
namespace {

using test::Gate;
using test::ListJournal;
using test::Script;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

struct LiveEvaluatorTest : ::testing::Test {
  Script script;
  Problem problem;
  LiveOptions options;
  ListJournal journal;  // outlives the evaluator
  std::unique_ptr<LiveEvaluator> evaluator;

  LiveEvaluatorTest() {
    Parameter tile;
    tile.name = "TILE";
    problem.parameters = {tile};
    options.jobs = 2;
    options.use_cache = false;
  }
  void start() { evaluator = std::make_unique<LiveEvaluator>(problem, options, script.starter()); }
  void ask(std::uint64_t id, int tile) { evaluator->submit({id, id, {Value(tile)}, false, 1e300, "time"}); }
  EvaluationResult next() {
    auto result = evaluator->wait(20);
    if (!result) ADD_FAILURE() << "no result came";
    return result.value_or(EvaluationResult{});
  }
  auto collect(std::size_t count) { return test::results_of(*evaluator, count); }
};

TEST_F(LiveEvaluatorTest, ResultsCarryTheirGpuAndWhatTheyCost) {
  script.compile = [](const protocol::Compile& request) {
    auto answer = Script::compiled(request);
    if (request.configuration[0] == Value(13)) answer.status = Status::compile_error;
    return answer;
  };
  start();
  ask(1, 16);
  ask(2, 13);
  EXPECT_EQ(evaluator->pending(), 2u);
  const auto results = collect(2);
  ASSERT_THAT(results, SizeIs(2));
  EXPECT_EQ(results.at(1).measurement.status, Status::ok);
  EXPECT_EQ(results.at(1).gpu, "GPU-scripted");
  EXPECT_EQ(results.at(1).measurement.compile_seconds, 0.5);
  EXPECT_EQ(results.at(2).measurement.status, Status::compile_error);
  EXPECT_EQ(results.at(2).gpu, "") << "it ran nowhere";
  EXPECT_EQ(evaluator->pending(), 0u);
  EXPECT_THAT(evaluator->notes(), ElementsAre("a note"));
}

TEST_F(LiveEvaluatorTest, EveryRunIsNotedOnceAndWhatDoesNotCompileIsNot) {
  script.compile = [](const protocol::Compile& request) {
    auto answer = Script::compiled(request);
    if (request.configuration[0] == Value(13)) answer.status = Status::compile_error;
    return answer;
  };
  start();
  evaluator->set_journal(&journal);
  EXPECT_TRUE(evaluator->establish_reference({{Value(16)}}));
  ask(1, 16);
  ask(2, 13);
  ask(3, 17);
  EXPECT_THAT(collect(3), SizeIs(3));
  evaluator->set_journal(nullptr);
  EXPECT_EQ(std::multiset<std::uint64_t>(journal.noted.begin(), journal.noted.end()),
            (std::multiset<std::uint64_t>{1, 3}));
}

// The device is not kept waiting until somebody has taken and stored what it measured.
TEST_F(LiveEvaluatorTest, TheNextRunIsNotedBeforeTheResultOfTheOneBeforeIsHandedOut) {
  // Something is always ready to run: the first run waits until all is compiled.
  Gate all_compiled;
  std::atomic<int> compiled{0};
  script.compile = [&](const protocol::Compile& request) {
    if (++compiled == 6) all_compiled.open();
    return Script::compiled(request);
  };
  script.run = [&](const protocol::Run& request) {
    EXPECT_TRUE(all_compiled.pass());
    if (request.id == 1) ::usleep(50'000);  // the last one's way to the evaluator
    return Script::ran(request);
  };
  start();
  evaluator->set_journal(&journal);
  std::vector<std::uint64_t> ended;
  std::vector<std::size_t> open;  // noted and without a result, at each note
  journal.also = [&](const EvaluationRequest&) {
    while (auto result = evaluator->wait(0)) ended.push_back(result->id);
    open.push_back(journal.noted.size() - ended.size());
  };
  for (std::uint64_t id = 1; id <= 6; ++id) ask(id, static_cast<int>(id));
  // Until the last is noted: the first four results were taken by then.
  for (int i = 0; i < 20000 && evaluator->pending() > 2; ++i) ::usleep(1000);
  evaluator->set_journal(nullptr);
  while (auto result = evaluator->wait(evaluator->pending() > 0 ? 20 : 0)) ended.push_back(result->id);
  EXPECT_THAT(ended, SizeIs(6));
  EXPECT_THAT(open, ElementsAre(1u, 2u, 2u, 2u, 2u, 2u));
}

TEST_F(LiveEvaluatorTest, OnACpuCompilingAndMeasuringNeverOverlap) {
  script.device.is_cpu = true;
  std::atomic<int> compiling{0}, running{0}, overlaps{0}, together{0};
  script.compile = [&](const protocol::Compile& request) {
    if (++compiling == 2) ++together;
    ::usleep(2000);
    if (running > 0) ++overlaps;
    --compiling;
    return Script::compiled(request);
  };
  script.run = [&](const protocol::Run& request) {
    if (++running > 1) ++overlaps;
    if (compiling > 0) ++overlaps;
    ::usleep(2000);
    if (compiling > 0) ++overlaps;
    --running;
    return Script::ran(request);
  };
  start();
  for (std::uint64_t id = 1; id <= 20; ++id) ask(id, static_cast<int>(id));
  EXPECT_THAT(collect(20), SizeIs(20));
  EXPECT_EQ(overlaps, 0);
}

TEST_F(LiveEvaluatorTest, ElsewhereCompilingRunsAheadOfWhatRuns) {
  Gate second_compiled;
  script.compile = [&](const protocol::Compile& request) {
    if (request.id == 2) second_compiled.open();
    return Script::compiled(request);
  };
  script.run = [&](const protocol::Run& request) {
    if (request.id == 1) {
      EXPECT_TRUE(second_compiled.pass());
    }
    return Script::ran(request);
  };
  start();
  ask(1, 1);
  ask(2, 2);
  EXPECT_THAT(collect(2), SizeIs(2));
}

TEST_F(LiveEvaluatorTest, TheSameCodeIsCompiledOnceAlsoWhileItIsBeingCompiled) {
  std::atomic<int> compiles{0};
  Gate all_there;
  script.compile = [&](const protocol::Compile& request) {
    ++compiles;
    EXPECT_TRUE(all_there.pass());
    return Script::compiled(request);
  };
  start();
  for (std::uint64_t id = 1; id <= 4; ++id) ask(id, 16);
  evaluator->runner_pid();  // everything before it has been taken in
  all_there.open();
  const auto results = collect(4);
  EXPECT_EQ(compiles, 1);
  EXPECT_EQ(results.at(1).measurement.compile_seconds, 0.5);
  EXPECT_EQ(results.at(2).measurement.compile_seconds, 0) << "its code was known";
}

TEST_F(LiveEvaluatorTest, EveryKernelOfAProblemIsCompiledAndAllOfThemRun) {
  problem.kernels.resize(3);
  std::vector<std::string> code;
  script.run = [&](const protocol::Run& request) {
    for (const Binary& binary : request.binaries) code.push_back(binary.bytes);
    return Script::ran(request);
  };
  start();
  ask(1, 16);
  EXPECT_EQ(next().measurement.compile_seconds, 1.5);
  EXPECT_THAT(code, ElementsAre("0", "1", "2"));
}

TEST_F(LiveEvaluatorTest, CancelDropsWhatWaitsAndTheSameRunnerGoesOn) {
  Gate running, cancelled;
  std::atomic<int> runners{0};
  script.ready = [&](const protocol::Setup& setup) {
    runners += setup.role == protocol::Role::runner;
    return protocol::Ready{script.device, "scripted compiler", true, {}};
  };
  script.run = [&](const protocol::Run& request) {
    if (request.id == 1) running.open();
    if (request.id == 1) cancelled.pass();
    return Script::ran(request);
  };
  start();
  ask(1, 1);
  ask(2, 2);
  EXPECT_TRUE(running.pass());
  evaluator->cancel();
  EXPECT_EQ(evaluator->pending(), 0u);
  EXPECT_FALSE(evaluator->wait(0));
  cancelled.open();
  ask(3, 3);
  EXPECT_EQ(next().id, 3u);
  EXPECT_EQ(runners, 1);
  evaluator.reset();  // its workers use the variables above
}

TEST_F(LiveEvaluatorTest, AWorkerThatCannotServeAnyMoreEndsTheSessionAndNothingCounts) {
  script.compile = [](const protocol::Compile& request) -> protocol::Message {
    if (request.id == 1) return Script::compiled(request);
    return protocol::Failed{true, "the disk is full; make room"};
  };
  start();
  ask(1, 1);
  EXPECT_EQ(next().id, 1u);
  ask(2, 2);
  EXPECT_EQ(error_of([&] {
              while (const auto result = evaluator->wait(20)) ADD_FAILURE() << "a result of " << result->id;
            }),
            "the disk is full; make room");
  EXPECT_EQ(evaluator->pending(), 0u);
  evaluator->cancel();  // what a session does at its end
  EXPECT_THROW(evaluator->wait(0), UserError);
}

TEST_F(LiveEvaluatorTest, AWorkerThatIsDamagedIsReplaced) {
  script.run = [](const protocol::Run& request) -> protocol::Message {
    if (request.id == 1) return protocol::Compiled{};
    return Script::ran(request);
  };
  start();
  ask(1, 1);
  const auto first = next();
  EXPECT_EQ(first.measurement.status, Status::runtime_error);
  EXPECT_THAT(first.measurement.message, HasSubstr("damaged"));
  ask(2, 2);
  EXPECT_EQ(next().measurement.status, Status::ok);
}

TEST_F(LiveEvaluatorTest, WorkersThatNeverServeEndTheSession) {
  script.run = [](const protocol::Run& request) -> protocol::Message {
    auto answer = Script::ran(request);
    answer.healthy = false;
    return answer;
  };
  start();
  script.ready = [](const protocol::Setup&) { return std::nullopt; };
  ask(1, 1);
  EXPECT_EQ(next().id, 1u);
  ask(2, 1);
  try {
    evaluator->wait(20);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const UserError&) {
    ADD_FAILURE() << "that is not the user's mistake";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("5 workers in a row"));
    EXPECT_THAT(error.what(), HasSubstr("its last words"));
  }
}

// A runner that can compile does so where there is no processor for anybody else, and is no less to be trusted for it.
TEST_F(LiveEvaluatorTest, OnOneProcessorTheRunnerCompilesAsWell) {
  const test::OnOneProcessor one;
  script.device.is_cpu = true;
  std::atomic<int> sevens{0}, thirteens{0};
  script.compile = [&](const protocol::Compile& request) {
    auto answer = Script::compiled(request);
    if (request.configuration[0] == Value(7) && ++sevens == 1) throw Disconnected();  // what ran before is to blame
    if (request.configuration[0] == Value(13) && ++thirteens > 0) throw Disconnected();
    if (request.configuration[0] == Value(17)) ::usleep(600'000);
    if (request.configuration[0] == Value(19)) {
      answer.status = Status::compile_error;
      answer.message = "no such type";
    }
    return answer;
  };
  options.jobs = 0;
  options.compile_time_limit = 0.3;
  start();
  evaluator->set_journal(&journal);
  EXPECT_EQ(script.started, 1);
  EXPECT_EQ(evaluator->compiler_identity(), "scripted compiler");
  EXPECT_EQ(evaluator->capacity(), 1u);
  std::uint64_t id = 0;
  for (const int tile : {2, 7, 13, 17, 19, 23, 2}) ask(++id, tile);
  auto results = collect(7);
  ASSERT_THAT(results, SizeIs(7));
  EXPECT_EQ(results[1].measurement.status, Status::ok);
  EXPECT_EQ(results[1].measurement.compile_seconds, 0.5);
  EXPECT_EQ(results[2].measurement.status, Status::ok) << "another runner compiled it";
  EXPECT_EQ(results[3].measurement.status, Status::compile_error);
  EXPECT_THAT(results[3].measurement.message, HasSubstr("exit code 3"));
  EXPECT_EQ(thirteens, 2);
  EXPECT_EQ(results[4].measurement.status, Status::timeout);
  EXPECT_THAT(results[4].measurement.message, HasSubstr("0.3 s"));
  EXPECT_EQ(results[5].measurement.status, Status::compile_error);
  EXPECT_EQ(results[5].measurement.message, "no such type");
  EXPECT_EQ(results[6].measurement.status, Status::ok);
  EXPECT_EQ(results[7].measurement.compile_seconds, 0) << "its code was known";
  EXPECT_EQ(script.started, 5) << "one after each that ended";
  EXPECT_THAT(journal.noted, SizeIs(4));
}

/// Four GPUs; a run takes its name from the setup, so that rows say which it was.
struct SeveralGpus : LiveEvaluatorTest {
  std::atomic<int> running{0}, most{0};

  SeveralGpus() {
    options.devices = {"scripted:0", "scripted:1", "scripted:2", "scripted:3"};
    script.ready = [this](const protocol::Setup& setup) {
      DeviceInfo device = script.device;
      device.id = setup.device_id;
      device.uuid = "GPU-" + setup.device_id.substr(setup.device_id.size() - 1);
      return protocol::Ready{device, "scripted compiler", true, {"a note"}};
    };
    script.run = [this](const protocol::Run& request) {
      most = std::max(most.load(), ++running);
      ::usleep(20'000);
      --running;
      return Script::ran(request);
    };
  }
};

TEST_F(SeveralGpus, ShareTheWorkAndOneCompileFarm) {
  start();
  EXPECT_THAT(evaluator->devices(), SizeIs(4));
  EXPECT_THAT(evaluator->notes(), ElementsAre("a note")) << "told once, not by each board";
  for (std::uint64_t id = 1; id <= 40; ++id) ask(id, static_cast<int>(id));
  std::map<std::string, int> by_gpu;
  for (const auto& [id, result] : collect(40)) ++by_gpu[result.gpu];
  EXPECT_THAT(by_gpu, SizeIs(4));
  EXPECT_GT(most, 1) << "boards measure side by side";
  EXPECT_LE(script.started, 4 + options.jobs) << "a runner for each board, and one farm";
  std::uint64_t reported = 0;
  for (const DeviceShare& gpu : evaluator->gpus()) {
    reported += gpu.results;
    EXPECT_EQ(gpu.results, static_cast<std::uint64_t>(by_gpu.at(gpu.gpu)));
    EXPECT_GT(gpu.busy_seconds, 0);
  }
  EXPECT_EQ(reported, 40u);
}

TEST_F(SeveralGpus, WhatIsRequestedOfOneGpuRunsThere) {
  start();
  for (std::uint64_t id = 1; id <= 12; ++id) {
    EvaluationRequest request{id, id, {Value(static_cast<int>(id))}, true, 1e300, "time"};
    request.gpu = id % 2 ? "GPU-2" : "GPU-3";
    evaluator->submit(request);
  }
  EvaluationRequest nowhere{13, 13, {Value(13)}, true, 1e300, "time"};
  nowhere.gpu = "GPU-9";
  evaluator->submit(nowhere);
  const auto results = collect(13);
  ASSERT_THAT(results, SizeIs(13));
  for (const auto& [id, result] : results)
    if (id < 13) {
      EXPECT_EQ(result.gpu, id % 2 ? "GPU-2" : "GPU-3");
    }
  EXPECT_THAT(results.at(13).measurement.message, HasSubstr("GPU-9"));
}

TEST_F(SeveralGpus, AQuietNodeMeasuresOnOneAtATime) {
  options.quiet_node = true;
  start();
  for (std::uint64_t id = 1; id <= 20; ++id) ask(id, static_cast<int>(id));
  EXPECT_THAT(collect(20), SizeIs(20));
  EXPECT_EQ(most, 1);
}

TEST_F(SeveralGpus, WhatRanUnderConditionsThatTheReferenceLacksIsMeasuredOnceMore) {
  std::map<std::string, int> runs;
  std::mutex mutex;
  script.run = [&](const protocol::Run& request) {
    auto answer = Script::ran(request);
    const std::lock_guard lock(mutex);
    const std::string text = request.configuration[0].to_string();
    const int before = runs[text]++;
    if (text == "7" && before == 0) answer.measurement.warnings = {"thermal"};
    if (text == "8") answer.measurement.warnings = {"hardware slowdown"};
    if (text == "9") answer.measurement.warnings = {"power cap"};
    return answer;
  };
  start();
  for (std::uint64_t id = 1; id <= 4; ++id) {  // the reference, on each GPU
    EvaluationRequest request{id, id, {Value(1)}, true, 1e300, "time"};
    request.gpu = "GPU-" + std::to_string(id - 1);
    request.reference = true;
    evaluator->submit(request);
  }
  ASSERT_THAT(collect(4), SizeIs(4));
  for (int tile = 7; tile <= 9; ++tile) ask(static_cast<std::uint64_t>(tile), tile);
  const auto results = collect(3);
  EXPECT_EQ(runs["7"], 2);
  EXPECT_THAT(results.at(7).measurement.warnings, ::testing::IsEmpty()) << "the second was undisturbed";
  EXPECT_EQ(runs["8"], 2) << "once more, not for ever";
  EXPECT_THAT(results.at(8).measurement.warnings, ::testing::Contains(HasSubstr("disturbed")));
  EXPECT_EQ(runs["9"], 1) << "a kernel that draws the board's limit meets it each time";
}

TEST_F(SeveralGpus, WhatACrashCostIsTheGpusTime) {
  script.run = [](const protocol::Run&) -> protocol::Message {
    ::usleep(20'000);
    return protocol::Stop{};
  };
  start();
  EvaluationRequest request{1, 1, {Value(1)}, false, 1e300, "time"};
  request.gpu = "GPU-2";
  evaluator->submit(request);
  const EvaluationResult result = next();
  EXPECT_EQ(result.measurement.status, Status::runtime_error);
  EXPECT_GE(result.measurement.measure_seconds, 0.02);
  const DeviceShare gpu = evaluator->gpus().at(2);
  EXPECT_EQ(gpu.results, 1u) << "it is a row like others";
  EXPECT_GE(gpu.busy_seconds, 0.02);
}

}  // namespace
}  // namespace ergotune
