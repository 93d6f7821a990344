#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "fakes/nvml/fake_nvml.hpp"
#include "power/nvml_library.hpp"
#include "power/sensors/sensor.hpp"
#include "power/sensors/stored_calibration.hpp"
#include "power/stranger.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

using fake_nvml::FakeNvml;
using testing::ElementsAre;
using testing::HasSubstr;

void wait_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// One process holds one NVML library, so every test here runs in the process that gtest_discover_tests gives
// it; run by hand, the fake's state is chosen by the first test.
class Nvml : public testing::Test {
 protected:
  void SetUp() override { setenv("ERGOTUNE_DATA_DIR", "/nonexistent", 1); }
  static FakeNvml& fake(const std::string& description = "generation=hopper devices=2") {
    return FakeNvml::shared(description);
  }
};

TEST_F(Nvml, ListsEverySensorOfEveryGpu) {
  fake();
  std::vector<std::string> ids;
  for (const auto& info : list_sensors()) ids.push_back(info.id);
  EXPECT_THAT(ids, ElementsAre("nvml:0/energy", "nvml:0/samples", "nvml:0/instant", "nvml:0/average", "nvml:1/energy",
                               "nvml:1/samples", "nvml:1/instant", "nvml:1/average"));
}

TEST_F(Nvml, DeviceMeetsItsSensorsByUuidOrPciAddress) {
  auto& nvml = fake();
  const std::string uuid = nvml.gpu(1).uuid;
  auto by_uuid = sensors_for_device(uuid, "", false);
  ASSERT_EQ(by_uuid.size(), 4u);
  EXPECT_EQ(by_uuid[0]->info().id, "nvml:1/energy");
  EXPECT_EQ(by_uuid[0]->info().kind, SensorKind::cumulative_energy);
  auto by_pci = sensors_for_device("", "0000:2b:00.0", false);
  ASSERT_EQ(by_pci.size(), 4u);
  EXPECT_EQ(by_pci[0]->info().uuid, uuid);
  EXPECT_EQ(open_sensor("nvml:" + uuid)->info().id, "nvml:1/energy");
  EXPECT_EQ(open_sensor("nvml:" + uuid + "/instant")->info().id, "nvml:1/instant");
  EXPECT_EQ(open_sensor("nvml:0000:1B:00.0")->info().id, "nvml:0/energy");
}

TEST_F(Nvml, UnknownGpuOrSensorIsOneMessageThatNamesWhatThereIs) {
  fake();
  std::vector<std::string> notes;
  EXPECT_TRUE(sensors_for_device("GPU-somebody-else", "", false, &notes).empty());
  EXPECT_THAT(notes, testing::Contains(HasSubstr("none of its 2 GPUs")));
  EXPECT_THAT(error_of([&] { open_sensor("nvml:7/energy"); }), HasSubstr("nvml:1  NVIDIA H100"));
  EXPECT_THAT(error_of([&] { open_sensor("nvml:0/enrgy"); }), HasSubstr("did you mean \"energy\""));
  EXPECT_THROW(open_sensor("nvlm:0"), UserError);
}

TEST_F(Nvml, GenerationsOfferWhatTheyHave) {
  auto roles = [&](const char* description) {
    fake(description);
    std::vector<std::string> names;
    for (const auto& sensor : sensors_for_device(fake_nvml::FakeNvml().gpu().uuid, "", false))
      names.push_back(sensor_role(sensor->info()));
    return names;
  };
  EXPECT_THAT(roles("generation=volta"), ElementsAre("energy", "samples", "instant"));
  EXPECT_THAT(roles("generation=kepler"), ElementsAre("instant"));
  EXPECT_THAT(roles("generation=ga100"), ElementsAre("energy", "samples", "instant", "average"));
  fake("generation=kepler");
  EXPECT_EQ(open_sensor("nvml:0")->info().kind, SensorKind::exponential_power);
}

TEST_F(Nvml, ACounterOf32BitsGoesOnWhenItWraps) {
  auto& nvml = fake("generation=hopper seed=3");
  nvml.set_activity(0.5);
  nvml.corrupt("nvmlDeviceGetTotalEnergyConsumption", fake_nvml::Corruption::wraps, 40'000);
  auto counter = open_sensor("nvml:0/energy");
  std::vector<Reading> joules;
  const double start = host_seconds(), truth = nvml.true_energy();
  while (host_seconds() < start + 0.6) {
    ASSERT_NE(counter->read(joules), ReadStatus::failed);  // a read that was kept waiting gives nothing
    wait_for(0.005);
  }
  const double used = nvml.true_energy() - truth;
  ASSERT_GT(used, 80) << "the counter has wrapped by then";
  for (std::size_t i = 1; i < joules.size(); ++i) EXPECT_GE(joules[i].value, joules[i - 1].value);
  EXPECT_NEAR(joules.back().value - joules.front().value, used, 0.25 * used) << "but for a tick";

  nvml.clear_faults();
  nvml.corrupt("nvmlDeviceGetTotalEnergyConsumption", fake_nvml::Corruption::backwards);
  joules.clear();
  for (int i = 0; i < 3; ++i) counter->read(joules);
  EXPECT_LT(joules.back().value, joules.front().value) << "a counter that goes back is no counter that wraps";
}

TEST_F(Nvml, CounterAndBufferAgreeWithTheTruth) {
  auto& nvml = fake("generation=hopper seed=3");
  nvml.set_activity(0.5);
  auto counter = open_sensor("nvml:0/energy");
  auto samples = open_sensor("nvml:0/samples");
  wait_for(0.3);
  samples->restart();
  std::vector<Reading> joules, watts;
  const double start = host_seconds();
  while (host_seconds() < start + 0.6) {
    ASSERT_NE(counter->read(joules), ReadStatus::failed);
    const auto had = watts.size();
    const auto status = samples->read(watts);
    EXPECT_EQ(status, watts.size() > had ? ReadStatus::ok : ReadStatus::no_new_data);
    wait_for(0.002);
  }
  EXPECT_GT(joules.back().value, joules.front().value);
  ASSERT_GT(watts.size(), 20u);
  double sum = 0;
  for (const auto& reading : watts) {
    EXPECT_GT(reading.time, start - 0.05);
    EXPECT_LT(reading.time, host_seconds());
    sum += reading.value;
  }
  const double truth = (nvml.true_energy_at(watts.back().time) - nvml.true_energy_at(watts.front().time - 0.02)) /
                       (watts.back().time - watts.front().time + 0.02);
  EXPECT_NEAR(sum / static_cast<double>(watts.size()), truth, 0.01 * truth);
  // Time stamps are those of the updates, 20 ms apart.
  for (std::size_t i = 1; i < watts.size(); ++i) EXPECT_NEAR(watts[i].time - watts[i - 1].time, 0.02, 1e-3);
}

TEST_F(Nvml, FailuresAreNeverANumber) {
  auto& nvml = fake();
  auto instant = open_sensor("nvml:0/instant");
  auto counter = open_sensor("nvml:0/energy");
  auto samples = open_sensor("nvml:0/samples");
  std::vector<Reading> out;
  nvml.add_fault("field:186", 3);  // the call itself still succeeds
  EXPECT_EQ(instant->read(out), ReadStatus::not_supported);
  EXPECT_THAT(instant->last_error(), HasSubstr("field 186"));
  nvml.add_fault("nvmlDeviceGetTotalEnergyConsumption", 15);
  EXPECT_EQ(counter->read(out), ReadStatus::failed);
  EXPECT_THAT(counter->last_error(), HasSubstr("GPU is lost"));
  nvml.add_fault("nvmlDeviceGetSamples", 999);
  EXPECT_EQ(samples->read(out), ReadStatus::failed);
  EXPECT_TRUE(out.empty());
  nvml.clear_faults();
  EXPECT_EQ(instant->read(out), ReadStatus::ok);
}

TEST_F(Nvml, AZeroReadingIsAFailure) {
  auto& nvml = fake("generation=ampere");
  nvml.gpu().instant.gain = 0;
  std::vector<Reading> out;
  std::vector<std::string> notes;
  for (const auto& sensor : sensors_for_device(nvml.gpu().uuid, "", false, &notes))
    EXPECT_NE(sensor_role(sensor->info()), "instant");
  EXPECT_THAT(notes, ElementsAre(HasSubstr("0 W")));
}

TEST_F(Nvml, MonitorReadsTheGpu) {
  auto& nvml = fake("generation=hopper");
  nvml.set_activity(1.0);
  wait_for(0.3);
  auto monitor = monitor_for_device(nvml.gpu().uuid, "");
  ASSERT_TRUE(monitor);
  auto state = monitor->read();
  EXPECT_NEAR(*state.core_clock_mhz, 1740, 60);  // the power cap holds it below 1980
  EXPECT_EQ(*state.memory_clock_mhz, 2619);
  EXPECT_GT(*state.temperature_c, 30);
  EXPECT_EQ(*state.power_limit_w, 700);
  EXPECT_FALSE(state.core_voltage_v);
  EXPECT_THAT(state.clock_reasons, testing::Contains("power_cap"));
  ASSERT_TRUE(state.foreign_processes);
  EXPECT_TRUE(state.foreign_processes->empty());
  // Either temperature call will do.
  nvml.add_fault("nvmlDeviceGetTemperatureV", 13);
  EXPECT_TRUE(monitor->read().temperature_c);
  nvml.add_fault("nvmlDeviceGetTemperature", 26);
  EXPECT_FALSE(monitor->read().temperature_c);
}

TEST_F(Nvml, ForeignProcessesAreSeenAndOurOwnAreNot) {
  auto& nvml = fake();
  auto monitor = monitor_for_device(nvml.gpu().uuid, "");
  nvml.gpu().process_count = 2;
  nvml.gpu().processes[0] = static_cast<std::uint32_t>(getpid());
  const Stranger stranger;
  nvml.gpu().processes[1] = static_cast<std::uint32_t>(stranger.pid());
  EXPECT_THAT(*monitor->read().foreign_processes, ElementsAre(stranger.pid()));
  nvml.gpu().process_count = 1;
  nvml.gpu().processes[0] = 4194303;  // a number of the host's that means nothing here: may be ourselves
  EXPECT_FALSE(monitor->read().foreign_processes);
}

TEST_F(Nvml, MissingDriverIsANoteNotAnError) {
  setenv("ERGOTUNE_NVML", "/nonexistent/libnvidia-ml.so.1", 1);
  std::vector<std::string> notes;
  EXPECT_TRUE(list_sensors().empty());
  EXPECT_TRUE(sensors_for_device("GPU-1", "", false, &notes).empty());
  ASSERT_FALSE(notes.empty());
  EXPECT_THAT(notes[0], HasSubstr("/nonexistent/libnvidia-ml.so.1"));
  EXPECT_EQ(monitor_for_device("GPU-1", ""), nullptr);
  EXPECT_THROW(open_sensor("nvml:0"), UserError);
  setenv("ERGOTUNE_NVML", FakeNvml::library().c_str(), 1);
}

TEST_F(Nvml, StoredCalibrationHoldsForItsGpuAndDriver) {
  fake();
  const TemporaryFolder folder;
  setenv("ERGOTUNE_DATA_DIR", folder.path().c_str(), 1);
  std::filesystem::create_directories(folder.path() / "calibration");
  auto counter = open_sensor("nvml:0/energy");
  EXPECT_FALSE(counter->info().calibrated);
  const auto file = calibration_file(counter->info());
  auto write = [&](const std::string& driver) {
    std::ofstream(file)
        << R"({"driver":")" << driver
        << R"(","sensors":{"energy":{"update_period":{"value":0.0987},"lag":{"value":0.03},"meter":{"gain":1.05,"offset":2}}}})";
  };
  write("580.159.00");
  counter = open_sensor("nvml:0/energy");
  EXPECT_TRUE(counter->info().calibrated);
  EXPECT_EQ(counter->info().update_period, 0.0987);
  EXPECT_EQ(counter->info().lag, 0.03);
  EXPECT_EQ(counter->info().gain, 1.05);
  EXPECT_FALSE(open_sensor("nvml:0/instant")->info().calibrated);
  write("535.1");
  EXPECT_FALSE(open_sensor("nvml:0/energy")->info().calibrated);
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct NvmlGpus : ::testing::Test {
  fake_nvml::FakeNvml nvml{"generation=hopper devices=2"};
  void SetUp() override {
    nvml.use_here();
    setenv("ERGOTUNE_DATA_DIR", "/nonexistent", 1);
  }
  static SensorInfo info(const std::string& role) { return open_sensor("nvml:0/" + role)->info(); }
  static std::vector<std::string> sensors_of(const std::string& uuid, bool cpu = false) {
    std::vector<std::string> ids;
    for (const auto& sensor : sensors_for_device(uuid, "", cpu)) ids.push_back(sensor->info().id);
    return ids;
  }
};

TEST_F(NvmlGpus, ALostOneHidesNoOther) {
  nvml.add_fault("nvmlDeviceGetHandleByIndex_v2", 15, 0, 1);
  const auto library = nvml::Library::open();
  ASSERT_TRUE(library);
  ASSERT_EQ(library->gpus().size(), 1u);
  EXPECT_EQ(library->gpus()[0].index, 1u);
  EXPECT_EQ(library->gpus()[0].uuid, nvml.gpu(1).uuid);
  EXPECT_EQ(library->gpus()[0].architecture, 9u);
  EXPECT_EQ(library->driver_version(), "580.159.00");
}

TEST_F(NvmlGpus, ThatAreSharedAreReported) {
  const auto notes = [&](int gpu) { return nvml_sharing_notes(nvml.gpu(gpu).uuid, ""); };
  setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
  EXPECT_THAT(notes(0), IsEmpty());
  nvml.gpu(0).mig_mode = 1;
  EXPECT_THAT(notes(0), ElementsAre(testing::HasSubstr("MIG")));
  EXPECT_THAT(notes(1), IsEmpty());
  nvml.gpu(1).compute_mode = 3;
  EXPECT_THAT(notes(1), ElementsAre(testing::HasSubstr("exclusive")));
  const TemporaryFolder pipes;
  pipes.write("control", "");
  setenv("CUDA_MPS_PIPE_DIRECTORY", pipes.path().c_str(), 1);
  EXPECT_THAT(notes(0), ElementsAre(testing::HasSubstr("MIG"), testing::HasSubstr("MPS")));
  unsetenv("CUDA_MPS_PIPE_DIRECTORY");
}

TEST_F(NvmlGpus, OfAnUnknownGenerationAreRequestedForEverything) {
  nvml.add_fault("nvmlDeviceGetArchitecture", 3);
  EXPECT_THAT(sensors_of(nvml.gpu().uuid),
              ElementsAre("nvml:0/energy", "nvml:0/samples", "nvml:0/instant", "nvml:0/average"));
  EXPECT_EQ(info("instant").kind, SensorKind::windowed_power);
  EXPECT_EQ(info("instant").window, 0.1);
  EXPECT_THAT(sensors_of(nvml.gpu().uuid, true), IsEmpty()) << "a board is no CPU";
  nvml.add_fault("field:185", 3);
  std::vector<Reading> out;
  EXPECT_EQ(open_sensor("nvml:0/average")->read(out), ReadStatus::ok) << "the plain call averages too";
  nvml.add_fault("nvmlDeviceGetPowerUsage", 3);
  EXPECT_THROW(open_sensor("nvml:0/average"), UserError);
  EXPECT_NO_THROW(open_sensor("nvml:0/instant")) << "a field of its own";
}

TEST_F(NvmlGpus, ACallThatLostTheProcessorIsNoReadingButASlowDriverIsRead) {
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

}  // namespace
}  // namespace ergotune
