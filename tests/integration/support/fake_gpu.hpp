// A fake GPU for what a test starts, and a folder for its settings' state.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "fakes/nvml/fake_nvml.hpp"
#include "temporary_folder.hpp"

namespace ergotune::test {

struct OnFakeGpu : ::testing::Test {
  fake_nvml::FakeNvml nvml;
  TemporaryFolder folder;
  std::map<std::string, std::string> environment = nvml.environment();  ///< during the test

  explicit OnFakeGpu(const std::string& gpus) : nvml(gpus) {
    environment["ERGOTUNE_STATE_DIR"] = (folder.path() / "state").string();
    environment["ERGOTUNE_HELPER_SOCKET"] = "/nowhere";
  }
  void SetUp() override {
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  }
  void TearDown() override {
    for (const auto& [name, value] : environment) ::unsetenv(name.c_str());
  }
};

}  // namespace ergotune::test
