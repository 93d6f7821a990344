// Control sessions on a Jetson's tree.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "error_of.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "power/guardian/guardian.hpp"

namespace ergotune {

struct Sessions : ::testing::Test {
  control_trees::Tree tree, state;
  ControlEnvironment environment;
  std::map<std::string, std::string> before;
  void SetUp() override {
    control_trees::add_tegra(tree);
    before = tree.contents();
    environment.sysfs_root = tree.root();
    environment.state_folder = state.root() / "state";
  }
  std::unique_ptr<ControlSession> open(const ControlSessionOptions& options = {}) {
    return ControlSession::open(open_control("tegra", environment), options);
  }
  /// Why none opens; empty where one does.
  std::string refusal(const ControlSessionOptions& options = {}) {
    return error_of([&] { open(options); });
  }
  template <class Condition>
  static bool eventually(Condition condition, double seconds = 20) {
    for (const double end = host_seconds() + seconds; host_seconds() < end; usleep(2000))
      if (condition()) return true;
    return condition();
  }
};

}  // namespace ergotune
