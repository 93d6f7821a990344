// Messages about settings, and the order in which settings are visited.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "ergotune/error.hpp"
#include "power/controls/control.hpp"
#include "power/effective_user.hpp"

namespace ergotune {
namespace {

TEST(ClockOutcome, SaysWhatRanInstead) {
  EXPECT_EQ(describe_clock_outcome(1410, 1275, {"power_cap"}), "asked 1410 MHz, ran 1275 MHz, power cap");
  EXPECT_EQ(describe_clock_outcome(1410, 1275, {}), "asked 1410 MHz, ran 1275 MHz");
  EXPECT_EQ(describe_clock_outcome(1410, 1400, {"power_cap"}), "") << "within 1 %";
  EXPECT_EQ(describe_clock_outcome(300, 293, {}), "") << "within half a step";
  EXPECT_NE(describe_clock_outcome(300, 315, {}), "");
}

/// Variables that are others while it lives.
class Variables {
 public:
  explicit Variables(std::map<std::string, const char*> values) {
    for (const auto& [name, value] : values) {
      const char* before = std::getenv(name.c_str());
      before_[name] = before ? std::optional<std::string>(before) : std::nullopt;
      if (value)
        ::setenv(name.c_str(), value, 1);
      else
        ::unsetenv(name.c_str());
    }
  }
  ~Variables() {
    for (const auto& [name, value] : before_)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST(ControlNames, AreThoseOfProblemFilesAndOfTheProtocol) {
  EXPECT_EQ(to_string(ControlQuantity::core_clock_mhz), "core_clock_mhz");
  EXPECT_EQ(to_string(ControlQuantity::memory_clock_mhz), "memory_clock_mhz");
  EXPECT_EQ(control_quantity_from("power_limit_w"), ControlQuantity::power_limit_w);
  EXPECT_EQ(to_string(ControlStatus::device_lost), "device_lost");
  EXPECT_EQ(to_string(ControlStatus::failed), "failed");
}

TEST(ControlEnvironments, AreTheUsersAndWholePaths) {
  const auto here = std::filesystem::current_path();
  {
    const Variables set({{"ERGOTUNE_NVML", "lib/nvml.so"},
                         {"ERGOTUNE_SYSFS_ROOT", "tree"},
                         {"ERGOTUNE_STATE_DIR", "state"},
                         {"ERGOTUNE_HELPER_SOCKET", "/tmp/socket"}});
    const auto environment = ControlEnvironment::from_environment();
    EXPECT_EQ(environment.nvml_library, here / "lib/nvml.so");
    EXPECT_EQ(environment.sysfs_root, here / "tree");
    EXPECT_EQ(environment.state_folder, here / "state");
    EXPECT_EQ(environment.helper_socket, "/tmp/socket");
  }
  const Variables none({{"ERGOTUNE_NVML", "libnvml.so"},
                        {"ERGOTUNE_SYSFS_ROOT", nullptr},
                        {"ERGOTUNE_STATE_DIR", nullptr},
                        {"ERGOTUNE_HELPER_SOCKET", nullptr},
                        {"XDG_STATE_HOME", "/home/x/state"}});
  const auto environment = ControlEnvironment::from_environment();
  EXPECT_EQ(environment.nvml_library, "libnvml.so") << "a name that the loader looks for";
  EXPECT_EQ(environment.sysfs_root, "/");
  EXPECT_EQ(environment.helper_socket, "/run/ergotune/ergotuned.sock");
  if (::geteuid() == 0) {
    EXPECT_EQ(environment.state_folder, "/var/lib/ergotune");
  }
  const EffectiveUser nobody;
  EXPECT_EQ(ControlEnvironment::from_environment().state_folder, "/home/x/state/ergotune");
  const Variables homeless({{"XDG_STATE_HOME", nullptr}, {"HOME", nullptr}});
  EXPECT_EQ(ControlEnvironment::from_environment().state_folder, here / ".local/state/ergotune");
}

// Whatever comes in, each setting is visited in one go, and the slow quantity changes only as often as it must.
TEST(ControlOrder, ChangesAsSeldomAsPossible) {
  EXPECT_TRUE(rc::check([] {
    const auto cores = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 4));
    std::vector<ControlSetting> settings;
    std::set<double> memories;
    std::set<ControlSetting> distinct;
    for (const int core : cores) {
      const double memory = *rc::gen::inRange(0, 3);
      settings.push_back({{ControlQuantity::core_clock_mhz, core}, {ControlQuantity::memory_clock_mhz, memory}});
      memories.insert(memory);
      distinct.insert(settings.back());
    }
    const ControlSetting current = {{ControlQuantity::core_clock_mhz, 1}, {ControlQuantity::memory_clock_mhz, 1}};
    const auto order = order_by_setting(settings, current);
    RC_ASSERT(std::set<std::size_t>(order.begin(), order.end()).size() == settings.size());
    std::size_t runs = 0, memory_runs = 0, core_runs = 0;
    const ControlSetting* last = nullptr;
    for (const auto i : order) {
      runs += !last || *last != settings[i];
      memory_runs +=
          !last || last->at(ControlQuantity::memory_clock_mhz) != settings[i].at(ControlQuantity::memory_clock_mhz);
      core_runs += last && last->at(ControlQuantity::core_clock_mhz) != settings[i].at(ControlQuantity::core_clock_mhz);
      last = &settings[i];
    }
    RC_ASSERT(runs == distinct.size());
    RC_ASSERT(memory_runs == memories.size());
    if (!settings.empty() && distinct.contains(current)) RC_ASSERT(settings[order[0]] == current);
    // Where the memory clock changes, the core clock stays if it can: at most one core change per further setting.
    RC_ASSERT(core_runs <= (distinct.empty() ? 0 : distinct.size() - 1));
  }));
}

}  // namespace
}  // namespace ergotune
