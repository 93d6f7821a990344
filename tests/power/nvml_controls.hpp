// A GPU behind the fake NVML whose settings a test changes and compares.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "fakes/control_trees/control_trees.hpp"
#include "fakes/nvml/fake_nvml.hpp"
#include "power/guardian/guardian.hpp"

namespace ergotune {

struct NvmlControls : ::testing::Test {
  control_trees::Tree state;
  // The library maps its state once per process, so one state file serves all tests and each starts it anew.
  static fake_nvml::FakeNvml& fake() {
    static fake_nvml::FakeNvml shared("generation=hopper devices=2");
    return shared;
  }
  ControlEnvironment environment;
  void SetUp() override {
    fake().use_here();
    environment.nvml_library = fake_nvml::FakeNvml::library();
    environment.sysfs_root = state.root();
    environment.state_folder = state.root() / "state";
    start("hopper");
  }
  void start(const std::string& generation) {
    fake().clear_faults();
    fake().state().permitted = 1;
    for (int i = 0; i < 2; ++i) fake_nvml::preset(fake().gpu(i), generation, i);
    fake().restart_gpus();
  }
  std::unique_ptr<ControlSession> open(bool take_over = false) {
    ControlSessionOptions options;
    options.take_over = take_over;
    return ControlSession::open(open_control("nvml:0", environment), options);
  }
  // What a client can leave set.
  static auto settings(const fake_nvml::Gpu& b) {
    return std::array<std::uint32_t, 11>{static_cast<std::uint32_t>(b.locked),
                                         b.locked_min,
                                         b.locked_max,
                                         static_cast<std::uint32_t>(b.memory_locked),
                                         b.memory_locked_min,
                                         b.memory_locked_max,
                                         static_cast<std::uint32_t>(b.application_clocks_set),
                                         b.application_graphics,
                                         b.application_memory,
                                         b.power_limit_mw,
                                         static_cast<std::uint32_t>(b.persistence)};
  }
};

}  // namespace ergotune
