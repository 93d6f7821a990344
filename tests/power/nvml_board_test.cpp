// NVIDIA GPUs by name, what is known of their kind, what their monitor and sensors say at the bounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "ergotune/error.hpp"
#include "fakes/nvml/fake_nvml.hpp"
#include "power/nvml_library.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune {
namespace {

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
  const auto pipes = std::filesystem::temp_directory_path() / ("mps-" + std::to_string(::getpid()));
  std::filesystem::create_directories(pipes);
  std::ofstream(pipes / "control") << "";
  setenv("CUDA_MPS_PIPE_DIRECTORY", pipes.c_str(), 1);
  EXPECT_THAT(notes(0), ElementsAre(testing::HasSubstr("MIG"), testing::HasSubstr("MPS")));
  std::filesystem::remove_all(pipes);
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
