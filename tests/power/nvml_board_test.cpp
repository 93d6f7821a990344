// NVIDIA boards by name, what is known of their kind, what their monitor and sensors say at the bounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/process.hpp"
#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/power/sensor.hpp"
#include "fakes/nvml/fake_nvml.hpp"
#include "power/board_facts.hpp"
#include "power/nvml_library.hpp"
#include "power/stranger.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(NvmlValues, AreNumbersOfTheirType) {
  const auto as = [](unsigned type, auto member, auto value) {
    nvml::Value held{};
    held.*member = value;
    return nvml::number(held, type);
  };
  EXPECT_EQ(as(0, &nvml::Value::d, 1.5), 1.5);
  EXPECT_EQ(as(1, &nvml::Value::ui, 4'000'000'000u), 4e9);
  EXPECT_EQ(as(2, &nvml::Value::ul, 5ul), 5);
  EXPECT_EQ(as(3, &nvml::Value::ull, 1ull << 40), 0x1p40);
  EXPECT_EQ(as(4, &nvml::Value::sll, -7ll), -7);
  EXPECT_EQ(as(5, &nvml::Value::si, -3), -3);
  EXPECT_EQ(as(6, &nvml::Value::us, static_cast<unsigned short>(9)), 9);
  EXPECT_EQ(as(7, &nvml::Value::ui, 5u), 0) << "no type that there is";
}

/// A child's child, in a group of its own; an orphan where its parent has ended.
struct Grandchild {
  pid_t parent, pid = 0;
  explicit Grandchild(bool orphan) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    parent = ::fork();
    if (parent == 0) {
      if (::fork() == 0) {
        ::setpgid(0, 0);
        const pid_t self = ::getpid();
        (void)!::write(ends[1], &self, sizeof self);
        ::pause();
      }
      if (!orphan) ::pause();
      ::_exit(0);
    }
    EXPECT_EQ(::read(ends[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
    if (orphan) ::waitpid(parent, nullptr, 0);
    for (const int end : ends) ::close(end);
    ended = orphan;
  }
  ~Grandchild() {
    ::kill(pid, SIGKILL);
    if (ended) return;
    ::kill(parent, SIGKILL);
    ::waitpid(parent, nullptr, 0);
  }
  Grandchild(const Grandchild&) = delete;
  Grandchild& operator=(const Grandchild&) = delete;

 private:
  bool ended = false;
};

struct NvmlBoards : ::testing::Test {
  fake_nvml::FakeNvml nvml{"generation=hopper devices=2"};
  void SetUp() override {
    nvml.use_here();
    setenv("ERGOTUNE_DATA_DIR", "/nonexistent", 1);
  }
  fake_nvml::Board& become(const std::string& generation) {
    fake_nvml::preset(nvml.board(), generation, 0);
    nvml.restart_boards();
    return nvml.board();
  }
  static SensorInfo info(const std::string& role) { return open_sensor("nvml:0/" + role)->info(); }
  static std::vector<std::string> sensors_of(const std::string& uuid, bool cpu = false) {
    std::vector<std::string> ids;
    for (const auto& sensor : sensors_for_device(uuid, "", cpu)) ids.push_back(sensor->info().id);
    return ids;
  }
};

TEST_F(NvmlBoards, AreFoundByNumberAUniqueBeginningOrAddress) {
  const auto library = nvml::Library::open();
  ASSERT_TRUE(library);
  const auto index = [&](const std::string& name) {
    const auto* board = library->find(name);
    return board ? static_cast<int>(board->index) : -1;
  };
  const std::string first = nvml.board(0).uuid, second = nvml.board(1).uuid;
  EXPECT_EQ(index("0"), 0);
  EXPECT_EQ(index("1"), 1);
  EXPECT_EQ(index("2"), -1);
  EXPECT_EQ(index(""), -1);
  EXPECT_EQ(index(second), 1);
  EXPECT_EQ(index("2b:00.0"), 1);
  EXPECT_EQ(index(first.substr(0, 20)), -1) << "it is the beginning of two";
  EXPECT_EQ(library->match("", ""), nullptr);
  EXPECT_EQ(library->match("GPU-x", "0000:2B:00.0")->index, 1u);
  EXPECT_EQ(library->match(first, "0000:2B:00.0")->index, 0u) << "the UUID counts first";
}

TEST_F(NvmlBoards, ABeginningOfEightLettersIsEnough) {
  nvml.state().device_count = 1;
  const auto library = nvml::Library::open();
  ASSERT_TRUE(library);
  const std::string uuid = nvml.board().uuid;
  EXPECT_EQ(library->find(uuid.substr(0, 7)), nullptr);
  EXPECT_NE(library->find(uuid.substr(0, 8)), nullptr);
}

TEST_F(NvmlBoards, ALostOneHidesNoOther) {
  nvml.add_fault("nvmlDeviceGetHandleByIndex_v2", 15, 0, 1);
  const auto library = nvml::Library::open();
  ASSERT_TRUE(library);
  ASSERT_EQ(library->boards().size(), 1u);
  EXPECT_EQ(library->boards()[0].index, 1u);
  EXPECT_EQ(library->boards()[0].uuid, nvml.board(1).uuid);
  EXPECT_EQ(library->boards()[0].architecture, 9u);
  EXPECT_EQ(library->driver_version(), "580.159.00");
}

TEST_F(NvmlBoards, ADriverThatDoesNotBeginIsNone) {
  nvml.add_fault("nvmlInit_v2", 9);
  std::string reason;
  EXPECT_EQ(nvml::Library::open(&reason), nullptr);
  EXPECT_THAT(reason, testing::AllOf(HasSubstr("nvmlInit"), HasSubstr("NVML code 9")));
  nvml.clear_faults();
  nvml.add_fault("nvmlDeviceGetCount_v2", 999);
  EXPECT_EQ(nvml::Library::open(), nullptr);
}

TEST_F(NvmlBoards, FactsAreThoseThatTheDriverTells) {
  EXPECT_FALSE(nvml_board_facts("GPU-somebody-else"));
  EXPECT_FALSE(nvml_board_facts(""));
  EXPECT_FALSE(nvml_board_facts("00000000:1b:00.0"));
  auto facts = nvml_board_facts(nvml.board().uuid);
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->name, nvml.board().name);
  EXPECT_FALSE(facts->default_core_clock_mhz) << "it has none any more";
  auto& board = become("pascal");
  board.default_application_graphics = 1189;
  EXPECT_EQ(nvml_board_facts(board.uuid)->default_core_clock_mhz, 1189);
  board.default_application_graphics = 1;
  EXPECT_EQ(nvml_board_facts(board.uuid)->default_core_clock_mhz, 1);
  board.default_application_graphics = 0;
  EXPECT_FALSE(nvml_board_facts(board.uuid)->default_core_clock_mhz);
  nvml.add_fault("nvmlDeviceGetName", 999);
  EXPECT_EQ(nvml_board_facts(board.uuid)->name, "");
}

TEST_F(NvmlBoards, EveryGenerationStartsFromWhatIsKnownOfIt) {
  EXPECT_EQ(info("instant").window, 0.025);
  EXPECT_EQ(info("instant").repeatability, 0.009);
  EXPECT_EQ(info("energy").update_period, 0.1);
  EXPECT_TRUE(info("energy").never_still);
  for (const char* role : {"energy", "samples", "instant", "average"}) EXPECT_EQ(info(role).unit_step, 1e-3) << role;
  EXPECT_EQ(info("samples").window, 0.02);
  EXPECT_EQ(info("average").window, 1);
  become("ga100");
  EXPECT_EQ(info("instant").window, 0.025) << "it sleeps between its looks";
  EXPECT_EQ(info("instant").repeatability, 0) << "nothing is known";
  become("ampere");
  EXPECT_EQ(info("instant").window, 0.1);
  for (const char* quick : {"pascal", "volta"}) {
    become(quick);
    EXPECT_EQ(info("instant").update_period, 0.02) << quick;
    EXPECT_EQ(info("instant").window, 0.01) << quick;
    EXPECT_EQ(info("instant").kind, SensorKind::windowed_power) << quick;
  }
  EXPECT_EQ(info("energy").update_period, 0.02);
  become("turing");
  EXPECT_EQ(info("instant").update_period, 0.1);
  become("kepler");
  EXPECT_EQ(info("instant").kind, SensorKind::exponential_power);
  EXPECT_EQ(info("instant").window, 0.83);
  nvml.board().architecture = nvml::kMaxwell;
  EXPECT_EQ(info("instant").kind, SensorKind::exponential_power) << "and the one after it";
}

TEST_F(NvmlBoards, OfAnUnknownGenerationAreAskedForEverything) {
  nvml.add_fault("nvmlDeviceGetArchitecture", 3);
  EXPECT_THAT(sensors_of(nvml.board().uuid), ElementsAre("nvml:0/energy", "nvml:0/samples", "nvml:0/instant", "nvml:0/average"));
  EXPECT_EQ(info("instant").kind, SensorKind::windowed_power);
  EXPECT_EQ(info("instant").window, 0.1);
  EXPECT_THAT(sensors_of(nvml.board().uuid, true), IsEmpty()) << "a board is no CPU";
  nvml.add_fault("field:185", 3);
  std::vector<Reading> out;
  EXPECT_EQ(open_sensor("nvml:0/average")->read(out), ReadStatus::ok) << "the plain call averages too";
  nvml.add_fault("nvmlDeviceGetPowerUsage", 3);
  EXPECT_THROW(open_sensor("nvml:0/average"), UserError);
  EXPECT_NO_THROW(open_sensor("nvml:0/instant")) << "a field of its own";
}

TEST_F(NvmlBoards, WhatThereIsNotIsAnotherThingThanAFailure) {
  const auto sensor = open_sensor("nvml:0/energy");
  std::vector<Reading> out;
  for (const auto& [code, status] : {std::pair{3, ReadStatus::not_supported}, {13, ReadStatus::not_supported}, {26, ReadStatus::not_supported},
                                     {4, ReadStatus::failed}, {15, ReadStatus::failed}}) {
    nvml.add_fault("nvmlDeviceGetTotalEnergyConsumption", code);
    EXPECT_EQ(sensor->read(out), status) << code;
    nvml.clear_faults();
  }
}

TEST_F(NvmlBoards, APowerOfBeforeTheFieldsIsInWattsToo) {
  auto& board = become("volta");
  board.usage.gain = 0;
  board.usage.offset = 100;
  std::vector<Reading> out;
  ASSERT_EQ(open_sensor("nvml:0/instant")->read(out), ReadStatus::ok);
  EXPECT_NEAR(out[0].value, 100, 1e-6);
}

TEST_F(NvmlBoards, APowerIsCorrectedByItsCalibration) {
  nvml.board().instant.gain = 0;
  nvml.board().instant.offset = 100;
  const auto sensor = open_sensor("nvml:0/instant");
  SensorInfo corrected = sensor->info();
  corrected.gain = 2;
  corrected.offset = 7;
  sensor->set_info(corrected);
  std::vector<Reading> out;
  const double before = host_seconds();
  ASSERT_EQ(sensor->read(out), ReadStatus::ok);
  EXPECT_NEAR(out[0].value, 207, 1e-6);
  EXPECT_GE(out[0].time, before);
  EXPECT_LE(out[0].time, host_seconds());
}

TEST_F(NvmlBoards, NoBoardDrawsMoreThanThriceItsLimitOrNextToNothing) {
  const auto bounds = [&](std::uint32_t low, std::uint32_t high) {
    nvml.board().min_power_limit_mw = low;
    nvml.board().max_power_limit_mw = high;
    const auto found = info("instant");
    return std::pair(found.least_power, found.most_power);
  };
  const auto near = [](double low, double high) { return ::testing::Pair(::testing::DoubleNear(low, 1e-9), ::testing::DoubleNear(high, 1e-6)); };
  EXPECT_THAT(bounds(200'000, 700'000), near(2, 2100));
  EXPECT_THAT(bounds(1'001, 700'000), near(0.1, 2100)) << "never less than a tenth of a watt";
  EXPECT_THAT(bounds(1'000, 700'000), near(0.1, 5000)) << "no limits of a board";
  EXPECT_THAT(bounds(700'000, 700'000), near(0.1, 5000));
  EXPECT_THAT(bounds(200'000, 4'999'999), near(2, 3 * 4999.999));
  EXPECT_THAT(bounds(200'000, 5'000'000), near(0.1, 5000));
}

TEST_F(NvmlBoards, WhatNoBoardCanDrawIsNoReading) {
  auto& board = nvml.board();
  const auto sensor = open_sensor("nvml:0/instant");
  std::vector<Reading> out;
  const auto reading_of = [&](double watts) {
    board.instant.gain = 0;
    board.instant.offset = watts;
    return sensor->read(out);
  };
  EXPECT_EQ(reading_of(2100), ReadStatus::ok);
  EXPECT_EQ(reading_of(2), ReadStatus::ok);
  EXPECT_EQ(reading_of(2101), ReadStatus::failed);
  EXPECT_THAT(sensor->last_error(), HasSubstr("far above any limit"));
  EXPECT_EQ(reading_of(1.9), ReadStatus::failed);
  EXPECT_THAT(sensor->last_error(), HasSubstr("no powered board draws"));
  reading_of(500);
  nvml.corrupt("field:186", fake_nvml::Corruption::as_short);
  EXPECT_EQ(sensor->read(out), ReadStatus::failed);
  EXPECT_THAT(sensor->last_error(), HasSubstr("type 6"));
  board.samples.gain = 0;
  const auto samples = open_sensor("nvml:0");
  EXPECT_EQ(samples->info().id, "nvml:0/energy");
  EXPECT_THROW(open_sensor("nvml:0/samples"), UserError);
}

TEST_F(NvmlBoards, ACounterIsCorrectedByItsGainAndBetweenTheClocksLooks) {
  nvml.board().counter.period = 0;  // it stands
  nvml.board().counter_energy = 1000;
  const auto counter = open_sensor("nvml:0/energy");
  std::vector<Reading> out;
  ASSERT_EQ(counter->read(out), ReadStatus::ok);
  EXPECT_EQ(out[0].value, 1000);
  SensorInfo corrected = counter->info();
  corrected.gain = 100;
  corrected.offset = 7;
  counter->set_info(corrected);
  const double before = host_seconds();
  ASSERT_EQ(counter->read(out), ReadStatus::ok);
  EXPECT_GE(out[1].time, before);
  EXPECT_LE(out[1].time, host_seconds());
  EXPECT_EQ(out[1].value, 100'000) << "watts to add mean nothing to joules";
}

TEST_F(NvmlBoards, ACallThatLostTheProcessorIsNoReadingButASlowDriverIsRead) {
  for (const char* role : {"energy", "instant"}) {
    const auto sensor = open_sensor(std::string("nvml:0/") + role);
    std::vector<Reading> out;
    ASSERT_EQ(sensor->read(out), ReadStatus::ok) << role;
    nvml.add_fault("*", 0, 0, 1, 0.2);
    EXPECT_EQ(sensor->read(out), ReadStatus::no_new_data) << role;
    nvml.clear_faults();
    nvml.add_fault("*", 0, 0, 0, 0.02);
    const auto slow = open_sensor(std::string("nvml:0/") + role);
    EXPECT_EQ(slow->read(out), ReadStatus::ok) << role;
    nvml.clear_faults();
  }
}

TEST_F(NvmlBoards, TheBufferGivesEachSampleOnce) {
  const auto samples = open_sensor("nvml:0/samples");
  std::vector<Reading> out;
  samples->restart();
  nvml.board().samples.period = 1000;  // no other comes
  EXPECT_EQ(samples->read(out), ReadStatus::no_new_data);
  EXPECT_TRUE(out.empty());
}

TEST_F(NvmlBoards, TheMonitorsPowerIsOneOfAPoweredBoard) {
  const auto monitor = monitor_for_control("nvml");
  ASSERT_NE(monitor, nullptr);
  auto& usage = nvml.board().usage;
  usage.gain = 0;
  usage.offset = 432;
  EXPECT_NEAR(monitor->read().power_w.value_or(0), 432, 1e-6);
  usage.offset = 0.001;
  EXPECT_NEAR(monitor->read().power_w.value_or(0), 0.001, 1e-9);
  usage.offset = 0;
  EXPECT_FALSE(monitor->read().power_w);
  EXPECT_NE(monitor_for_control("nvml:1"), nullptr);
  EXPECT_EQ(monitor_for_control("nvml:9"), nullptr);
  EXPECT_EQ(monitor_for_control("nvmx:1"), nullptr);
  EXPECT_EQ(monitor_for_device("", ""), nullptr);
}

TEST_F(NvmlBoards, WorkersOfOursAreNotForeignButThoseWhoLeftOurSessionAre) {
  const auto monitor = monitor_for_control("nvml:0");
  const auto foreign = [&](const std::vector<pid_t>& pids) {
    nvml.board().process_count = static_cast<int>(pids.size());
    for (std::size_t i = 0; i < pids.size(); ++i) nvml.board().processes[i] = static_cast<std::uint32_t>(pids[i]);
    return monitor->read().foreign_processes.value_or(std::vector<int>{-1});
  };
  const auto worker = ChildProcess::start({"/bin/sleep", "100"});
  EXPECT_THAT(foreign({worker.pid()}), IsEmpty()) << "in a group of its own, but of our session";
  EXPECT_THAT(foreign({getpid(), getppid()}), IsEmpty());
  const Grandchild below(false), orphan(true);
  EXPECT_THAT(foreign({below.pid}), IsEmpty()) << "a worker's worker";
  if (getpid() != 1) {  // the first process of a container gets all orphans back
    EXPECT_THAT(foreign({orphan.pid, worker.pid()}), ElementsAre(orphan.pid)) << "of our session, but nobody's of ours any more";
  }
  const Stranger stranger;
  const pid_t other = stranger.pid();
  EXPECT_THAT(foreign({other, worker.pid()}), ElementsAre(other));
  constexpr pid_t kInvisible = 4194303;
  EXPECT_THAT(foreign({kInvisible}), ElementsAre(-1)) << "it may be ourselves";
  EXPECT_THAT(foreign({kInvisible, getpid()}), ElementsAre(kInvisible));
  EXPECT_THAT(foreign({kInvisible, other}), ElementsAre(kInvisible, other));
  EXPECT_THAT(foreign({kInvisible, kInvisible - 1}), ElementsAre(kInvisible, kInvisible - 1));
  nvml.add_fault("nvmlDeviceGetComputeRunningProcesses_v3", 3);
  EXPECT_FALSE(monitor->read().foreign_processes);
}

}  // namespace
}  // namespace ergotune
