// The observer "core_voltage", with a program in nvidia-smi's place that says what the test tells it to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "ergotune/base/clock.hpp"
#include "measure/observers.hpp"

namespace ergotune {
namespace {

class CoreVoltage : public testing::Test {
 protected:
  CoreVoltage() : folder(std::filesystem::temp_directory_path() / ("ergotune-voltage-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder);
    ::setenv("ERGOTUNE_NVIDIA_SMI", (folder / "smi").c_str(), 1);
  }
  ~CoreVoltage() override {
    ::unsetenv("ERGOTUNE_NVIDIA_SMI");
    std::filesystem::remove_all(folder);
  }
  void answer(const std::string& words) {
    std::ofstream(folder / "smi") << "#!/bin/sh\necho asked >> " << (folder / "asked").string() << "\n" << words << "\n";
    std::filesystem::permissions(folder / "smi", std::filesystem::perms::owner_all);
  }
  int times_asked() const {
    std::ifstream in(folder / "asked");
    int count = 0;
    for (std::string line; std::getline(in, line);) ++count;
    return count;
  }
  /// A stream that goes on as long as the reader wants, for how many s.
  double stream() {
    const double begin = host_seconds();
    reader->before_start();
    reader->after_start();
    while (reader->wants_more({})) std::this_thread::yield();
    const double seconds = host_seconds() - begin;
    reader->after_finish();
    return seconds;
  }
  std::filesystem::path folder;
  std::shared_ptr<Observer> reader = make_voltage_reader("GPU-fake");
};

TEST_F(CoreVoltage, IsReadOnceUnderLoadWhileTheStreamWaitsForIt) {
  answer("echo '  Graphics : 812.500 mV'");
  EXPECT_FALSE(reader->wants_more({})) << "before it has begun";
  EXPECT_GT(stream(), 0.15) << "voltage follows the load";
  const auto found = reader->results();
  ASSERT_TRUE(found.contains("core_voltage"));
  EXPECT_DOUBLE_EQ(found.at("core_voltage").value, 0.8125);
  EXPECT_EQ(found.at("core_voltage").standard_error, 0);
  EXPECT_EQ(found.at("core_voltage").n, 1);
  EXPECT_EQ(times_asked(), 1);
  reader->register_configuration({});
  EXPECT_TRUE(reader->results().empty()) << "of the next";
}

TEST_F(CoreVoltage, OfAStreamThatEndsBeforeItIsNone) {
  answer("echo '  Graphics : 812.500 mV'");
  reader->after_start();
  reader->after_finish();
  EXPECT_TRUE(reader->results().empty());
  reader->after_start();
  EXPECT_TRUE(reader->wants_more({})) << "the next may have one";
}

TEST_F(CoreVoltage, WhereNobodyTellsItIsAskedForNoMore) {
  answer("exit 1");
  stream();
  EXPECT_TRUE(reader->results().empty());
  stream();
  EXPECT_EQ(times_asked(), 1);
}

}  // namespace
}  // namespace ergotune
