// tegra, amdgpu and cpufreq controls on trees of plain files.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ergotune/error.hpp"
#include "error_of.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "power/controls/control.hpp"
#include "power/controls/control_backends.hpp"
#include "power/effective_user.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune {
namespace {

using control_trees::kAmdCard;
using control_trees::kInstinctCard;
using control_trees::kTegraGpu;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct SysfsControls : ::testing::Test {
  control_trees::Tree tree;
  ControlEnvironment environment;
  void SetUp() override {
    environment.sysfs_root = tree.root();
    environment.nvml_library = "/nowhere/libnvidia-ml.so.1";
  }
  void restore_all(Control& control, const std::vector<RestoreStep>& steps) {
    for (const auto& step : steps) EXPECT_TRUE(control.restore(step).ok()) << step.kind << " " << step.target;
  }
};

TEST_F(SysfsControls, AreListedWhereTheyAre) {
  EXPECT_THAT(list_controls(environment), ElementsAre());
  control_trees::add_tegra(tree);
  control_trees::add_amdgpu(tree);
  control_trees::add_cpufreq(tree);
  EXPECT_THAT(list_controls(environment), ElementsAre("tegra", "amdgpu:card0", "cpufreq"));
  EXPECT_EQ(find_amdgpu_control("00000000:c1:00.0", environment), "amdgpu:card0");
  EXPECT_EQ(find_amdgpu_control("00000000:c2:00.0", environment), "");
  EXPECT_EQ(find_amdgpu_control("C1:00", environment), "amdgpu:card0") << "however it is written";
}

TEST_F(SysfsControls, AnUnknownIdNamesWhatThereIs) {
  control_trees::add_tegra(tree);
  EXPECT_THAT(error_of([&] { open_control("tegre", environment); }), HasSubstr("tegra"));
}

TEST_F(SysfsControls, TegraPinsTheClockAndPutsItBack) {
  control_trees::add_tegra(tree);
  const auto before = tree.contents();
  auto control = open_control("tegra", environment);
  const auto range = control->range(ControlQuantity::core_clock_mhz);
  EXPECT_EQ(range.values.size(), 11u);
  EXPECT_DOUBLE_EQ(range.high, 1300.5);
  EXPECT_FALSE(range.current.has_value()) << "min and max differ: no clock is set";
  const auto steps = control->snapshot();

  ASSERT_TRUE(control->set(ControlQuantity::core_clock_mhz, 1300.5).ok());
  EXPECT_EQ(tree.get(std::string(kTegraGpu) + "/min_freq"), "1300500000");
  EXPECT_EQ(tree.get(std::string(kTegraGpu) + "/max_freq"), "1300500000");
  EXPECT_EQ(tree.get(std::string(kTegraGpu) + "/device/railgate_enable"), "0");
  ASSERT_TRUE(control->set(ControlQuantity::core_clock_mhz, 306).ok());
  EXPECT_EQ(control->range(ControlQuantity::core_clock_mhz).current, 306);
  EXPECT_EQ(control->set(ControlQuantity::core_clock_mhz, 1000).status, ControlStatus::invalid_value);
  EXPECT_EQ(control->set(ControlQuantity::power_limit_w, 15).status, ControlStatus::not_supported);

  restore_all(*control, steps);
  EXPECT_EQ(tree.contents(), before);
}

TEST_F(SysfsControls, TegraLocksTheMemoryClockAndFreesIt) {
  control_trees::add_tegra(tree);
  control_trees::add_tegra_memory_and_modes(tree);
  const std::string emc = control_trees::kTegraEmc;
  auto control = open_control("tegra", environment);
  EXPECT_THAT(control->range(ControlQuantity::memory_clock_mhz).values, ElementsAre(204, 665.6, 2133));
  EXPECT_FALSE(control->range(ControlQuantity::memory_clock_mhz).current) << "it changes with the load";
  const auto steps = control->snapshot();

  ASSERT_TRUE(control->set(ControlQuantity::memory_clock_mhz, 665.6).ok());
  EXPECT_EQ(tree.get(emc + "/rate"), "665600000");
  EXPECT_EQ(tree.get(emc + "/mrq_rate_locked"), "1");
  EXPECT_TRUE(control->check(ControlQuantity::memory_clock_mhz, 665.6).ok());
  tree.put(emc + "/rate", "2133000000");
  EXPECT_FALSE(control->check(ControlQuantity::memory_clock_mhz, 665.6).ok()) << "another process changed it";

  restore_all(*control, steps);
  EXPECT_EQ(tree.get(emc + "/mrq_rate_locked"), "0");

  tree.put(emc + "/mrq_rate_locked", "1");
  const auto locked = control->snapshot();
  ASSERT_TRUE(control->set(ControlQuantity::memory_clock_mhz, 204).ok());
  restore_all(*control, locked);
  EXPECT_EQ(tree.get(emc + "/rate"), "2133000000") << "a rate that was locked before is put back";
}

TEST_F(SysfsControls, TegraSetsPowerModesBelowTheClocksThatAreSet) {
  control_trees::add_tegra(tree);
  control_trees::add_tegra_memory_and_modes(tree);
  const auto before = tree.contents();
  auto control = open_control("tegra", environment);
  const auto range = control->range(ControlQuantity::power_limit_w);
  EXPECT_THAT(range.values, ElementsAre(10, 15, 20));
  EXPECT_EQ(range.current, 15);
  const auto steps = control->snapshot();

  ASSERT_TRUE(control->set(ControlQuantity::core_clock_mhz, 510).ok());
  ASSERT_TRUE(control->set(ControlQuantity::power_limit_w, 10).ok());
  EXPECT_EQ(tree.get("/var/lib/nvpmodel/status"), "pmode:0003");
  EXPECT_EQ(tree.get(std::string(kTegraGpu) + "/max_freq"), "510000000")
      << "the mode's own limits of clocks came before";
  EXPECT_TRUE(control->check(ControlQuantity::power_limit_w, 10).ok());
  EXPECT_TRUE(control->check(ControlQuantity::core_clock_mhz, 510).ok());
  EXPECT_EQ(control->set(ControlQuantity::power_limit_w, 20).status, ControlStatus::failed) << "it needs a reboot";
  EXPECT_EQ(control->set(ControlQuantity::power_limit_w, 12).status, ControlStatus::invalid_value);

  restore_all(*control, steps);
  EXPECT_EQ(tree.contents(), before) << "of the three modes with 15 W the one that was in force";
}

TEST_F(SysfsControls, AmdgpuSetsLevelsInManualModeAndTheCap) {
  control_trees::add_amdgpu(tree);
  const std::string card = kAmdCard;
  const auto before = control_trees::amdgpu_state(tree);
  auto control = open_control("amdgpu:card0", environment);
  EXPECT_THAT(control->range(ControlQuantity::core_clock_mhz).values, ElementsAre(500, 800, 1200, 1700));
  EXPECT_THAT(control->range(ControlQuantity::memory_clock_mhz).values, ElementsAre(400, 1600));
  const auto power = control->range(ControlQuantity::power_limit_w);
  EXPECT_EQ(power.current, 250);
  EXPECT_EQ(power.high, 300);
  EXPECT_EQ(power.default_value, 300);
  const auto steps = control->snapshot();

  ASSERT_TRUE(control->set(ControlQuantity::core_clock_mhz, 1200).ok());
  EXPECT_EQ(tree.get(card + "/power_dpm_force_performance_level"), "manual");
  EXPECT_EQ(tree.get(card + "/pp_dpm_sclk"), "2");
  ASSERT_TRUE(control->set(ControlQuantity::memory_clock_mhz, 400).ok());
  EXPECT_EQ(tree.get(card + "/pp_dpm_mclk"), "0");
  ASSERT_TRUE(control->set(ControlQuantity::power_limit_w, 180).ok());
  EXPECT_EQ(tree.get(card + "/hwmon/hwmon3/power1_cap"), "180000000");
  EXPECT_EQ(control->set(ControlQuantity::power_limit_w, 400).status, ControlStatus::invalid_value);

  restore_all(*control, steps);
  EXPECT_EQ(control_trees::amdgpu_state(tree), before);
}

TEST_F(SysfsControls, AmdgpuReportsLevelsChosenByHand) {
  control_trees::add_amdgpu(tree);
  EXPECT_EQ(open_control("amdgpu", environment)->external_lock_sign(), "");
  tree.put(std::string(kAmdCard) + "/power_dpm_force_performance_level", "manual");
  EXPECT_THAT(open_control("amdgpu", environment)->external_lock_sign(), HasSubstr("manual"));
}

TEST_F(SysfsControls, InstinctTakesACeilingAndGivesItBack) {
  control_trees::add_instinct(tree);
  const std::string card = kInstinctCard;
  const auto before = control_trees::amdgpu_state(tree);
  auto control = open_control("amdgpu:card1", environment);
  const auto range = control->range(ControlQuantity::core_clock_mhz);
  EXPECT_EQ(range.values.size(), 25u) << "every 50 MHz, not the three levels";
  EXPECT_EQ(range.low, 500);
  EXPECT_EQ(range.high, 1700);
  EXPECT_FALSE(control->range(ControlQuantity::memory_clock_mhz).supported);
  EXPECT_THAT(control->range(ControlQuantity::memory_clock_mhz).why_not, HasSubstr("not both"));
  const auto steps = control->snapshot();

  ASSERT_TRUE(control->set(ControlQuantity::core_clock_mhz, 1200).ok());
  EXPECT_EQ(tree.get(card + "/power_dpm_force_performance_level"), "perf_determinism");
  EXPECT_EQ(tree.get(card + "/pp_od_clk_voltage"), "c") << "committed";
  EXPECT_TRUE(control->check(ControlQuantity::core_clock_mhz, 1200).ok());
  tree.put(card + "/pp_od_clk_voltage", "OD_SCLK:\n0: 500Mhz\n1: 1300Mhz\nOD_MCLK:\n1: 1600Mhz");
  EXPECT_FALSE(control->check(ControlQuantity::core_clock_mhz, 1200).ok()) << "somebody else's";
  EXPECT_EQ(control->set(ControlQuantity::core_clock_mhz, 2000).status, ControlStatus::invalid_value);
  ASSERT_TRUE(control->set(ControlQuantity::power_limit_w, 300).ok());

  restore_all(*control, steps);
  EXPECT_EQ(control_trees::amdgpu_state(tree), before);
}

/// What is written to a file, all of it.
class Pipe {
 public:
  explicit Pipe(const std::filesystem::path& path) {
    std::filesystem::remove(path);
    ::mkfifo(path.c_str(), 0600);
    file_ = ::open(path.c_str(), O_RDWR | O_NONBLOCK);
  }
  ~Pipe() { ::close(file_); }
  std::string text() const {
    char buffer[256];
    const ssize_t n = ::read(file_, buffer, sizeof buffer);
    return std::string(buffer, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  }

 private:
  int file_ = -1;
};

TEST_F(SysfsControls, InstinctsOwnCeilingOfTheUsersComesBack) {
  control_trees::add_instinct(tree);
  const std::string card = kInstinctCard;
  tree.put(card + "/power_dpm_force_performance_level", "perf_determinism");
  tree.put(card + "/pp_od_clk_voltage", "OD_SCLK:\n0: 500Mhz\n1: 1350Mhz\nOD_MCLK:\n1: 1600Mhz");
  auto control = open_control("amdgpu:card1", environment);
  EXPECT_EQ(control->external_lock_sign(), "") << "it can be read, so it can be restored";
  EXPECT_EQ(control->range(ControlQuantity::core_clock_mhz).current, 1350);
  EXPECT_EQ(control->range(ControlQuantity::core_clock_mhz).high, 1700) << "not the ceiling";
  const auto steps = control->snapshot();
  {
    const Pipe pipe(tree.real(card + "/pp_od_clk_voltage"));
    for (const auto& step : steps)
      if (step.kind == "amdgpu-ceiling") {
        EXPECT_TRUE(control->restore(step).ok());
      }
    EXPECT_EQ(pipe.text(), "s 1 1350c");
  }
  EXPECT_FALSE(control->restore({"amdgpu-ceiling", card + "/pp_od_clk_voltage", "many", std::nullopt}).ok());
  EXPECT_FALSE(control->restore({"amdgpu-ceiling", "/etc/passwd", "1350", std::nullopt}).ok());
}

TEST_F(SysfsControls, CpufreqPinsEveryPolicy) {
  control_trees::add_cpufreq(tree);
  const auto before = tree.contents();
  auto control = open_control("cpufreq", environment);
  EXPECT_THAT(control->range(ControlQuantity::core_clock_mhz).values, ElementsAre(800, 1400, 2000, 2800, 3600));
  const auto steps = control->snapshot();
  EXPECT_EQ(steps.size(), 4u);
  ASSERT_TRUE(control->set(ControlQuantity::core_clock_mhz, 2000).ok());
  for (const char* policy : {"policy0", "policy4"}) {
    const std::string folder = std::string("/sys/devices/system/cpu/cpufreq/") + policy;
    EXPECT_EQ(tree.get(folder + "/scaling_min_freq"), "2000000");
    EXPECT_EQ(tree.get(folder + "/scaling_max_freq"), "2000000");
    EXPECT_EQ(tree.get(folder + "/scaling_governor"), "performance");
  }
  restore_all(*control, steps);
  EXPECT_EQ(tree.contents(), before);
}

TEST_F(SysfsControls, CpufreqWithoutAListIsContinuous) {
  control_trees::add_cpufreq(tree, false);
  auto control = open_control("cpufreq", environment);
  const auto range = control->range(ControlQuantity::core_clock_mhz);
  EXPECT_TRUE(range.supported);
  EXPECT_TRUE(range.values.empty());
  EXPECT_EQ(range.low, 800);
  EXPECT_EQ(range.high, 3600);
  EXPECT_TRUE(control->set(ControlQuantity::core_clock_mhz, 1234).ok());
}

// A journal is a file, and a forged one must not make root write elsewhere.
TEST_F(SysfsControls, ForgedStepsAreRefused) {
  control_trees::add_tegra(tree);
  control_trees::add_amdgpu(tree);
  control_trees::add_cpufreq(tree);
  tree.put("/etc/passwd", "untouched");
  for (const char* id : {"tegra", "amdgpu:card0", "cpufreq"}) {
    auto control = open_control(id, environment);
    for (const char* kind : {"sysfs", "frequency-range", "amdgpu-levels", "nvml-power-limit"})
      for (const char* target : {"/etc/passwd", "/sys/class/devfreq/17000000.ga10b/../../../../etc/passwd", ""})
        EXPECT_FALSE(control->restore({kind, target, "1 2"}).ok()) << id << " " << kind << " " << target;
  }
  EXPECT_EQ(tree.get("/etc/passwd"), "untouched");
}

TEST_F(SysfsControls, AMissingFileIsAStatusAndNotACrash) {
  control_trees::add_tegra(tree);
  auto control = open_control("tegra", environment);
  const auto steps = control->snapshot();
  std::filesystem::remove_all(tree.real(kTegraGpu));
  EXPECT_FALSE(control->set(ControlQuantity::core_clock_mhz, 306).ok());
  for (const auto& step : steps) EXPECT_EQ(control->restore(step).status, ControlStatus::not_supported);
}

constexpr auto kCore = ControlQuantity::core_clock_mhz;
constexpr auto kPower = ControlQuantity::power_limit_w;

struct AmdgpuControls : ::testing::Test {
  control_trees::Tree tree;
  ControlEnvironment environment;
  const std::string card = kAmdCard, instinct = kInstinctCard;
  const std::string level = "/power_dpm_force_performance_level", cap = "/hwmon/hwmon3/power1_cap";
  void SetUp() override {
    environment.sysfs_root = tree.root();
    environment.nvml_library = "/nowhere/libnvidia-ml.so.1";
    control_trees::add_amdgpu(tree);
    control_trees::add_instinct(tree);
  }
  std::unique_ptr<Control> open(const std::string& id = "amdgpu:card0") const { return open_control(id, environment); }
  void remove(const std::string& path) const { std::filesystem::remove_all(tree.real(path)); }
};

TEST_F(AmdgpuControls, ReadTheCapBack) {
  auto control = open();
  ASSERT_TRUE(control->set(kPower, 200).ok());
  EXPECT_TRUE(control->check(kPower, 200).ok());
  tree.put(card + cap, "200900000");
  EXPECT_TRUE(control->check(kPower, 200).ok()) << "the driver counts whole watts";
  tree.put(card + cap, "201000000");
  EXPECT_TRUE(control->check(kPower, 200).ok()) << "one more or less";
  for (const auto& [text, words] : {std::pair{"201500000", "201.5 W"}, std::pair{"198500000", "198.5 W"}}) {
    tree.put(card + cap, text);
    EXPECT_EQ(control->check(kPower, 200).status, ControlStatus::failed);
    EXPECT_THAT(control->check(kPower, 200).message, HasSubstr(words));
  }
  remove(card + cap);
  EXPECT_TRUE(control->check(kPower, 200).ok()) << "nobody can tell";
}

TEST_F(AmdgpuControls, ReadTheClocksBackAsFarAsTheyTell) {
  auto control = open();
  ASSERT_TRUE(control->set(kCore, 1200).ok());
  EXPECT_TRUE(control->check(kCore, 1200).ok());
  tree.put(card + level, "auto");
  EXPECT_EQ(control->check(kCore, 1200).status, ControlStatus::failed);
  EXPECT_THAT(control->check(kCore, 1200).message, HasSubstr("\"auto\" and no more \"manual\""));
  remove(card + level);
  EXPECT_TRUE(control->check(kCore, 1200).ok()) << "nobody can tell";
  auto with_ceiling = open("amdgpu:card1");
  tree.put(instinct + level, "perf_determinism");
  const auto check = [&](const std::string& mhz) {
    tree.put(instinct + "/pp_od_clk_voltage", "OD_SCLK:\n0: 500Mhz\n1: " + mhz + "Mhz");
    return with_ceiling->check(kCore, 1200).ok();
  };
  EXPECT_TRUE(check("1201") && check("1199")) << "rounded";
  EXPECT_FALSE(check("1202"));
  EXPECT_FALSE(check("1198"));
  tree.put(instinct + "/pp_od_clk_voltage", "c");
  EXPECT_TRUE(with_ceiling->check(kCore, 1200).ok());
  tree.put(instinct + level, "auto");
  EXPECT_THAT(with_ceiling->check(kCore, 1200).message, HasSubstr("perf_determinism"));
}

struct CpuClocks : ::testing::Test {
  control_trees::Tree tree;
  ControlEnvironment environment;
  const std::string policies = "/sys/devices/system/cpu/cpufreq/";
  void SetUp() override {
    environment.sysfs_root = tree.root();
    environment.nvml_library = "/nowhere/libnvidia-ml.so.1";
  }
  std::unique_ptr<Control> open(bool listed = true) const {
    control_trees::add_cpufreq(tree, listed);
    return open_control("cpufreq", environment);
  }
  ControlRange range() const { return open_control("cpufreq", environment)->range(kCore); }
  void put(const std::string& file, const std::string& text) const { tree.put(policies + file, text); }
};

TEST_F(CpuClocks, UnlikeCoresKeepWhatTheyShare) {
  open();
  put("policy4/cpuinfo_min_freq", "1000000");
  put("policy4/cpuinfo_max_freq", "2500000");
  put("policy4/scaling_available_frequencies", "2400000 2000000 1400000");
  EXPECT_THAT(range().values, ElementsAre(1400, 2000));
  EXPECT_EQ(range().low, 1000);
  EXPECT_EQ(range().high, 2500);
  EXPECT_EQ(range().default_value, 2500);
  put("policy4/cpuinfo_min_freq", "3600000");
  put("policy4/cpuinfo_max_freq", "4000000");
  EXPECT_TRUE(range().supported) << "one clock";
  put("policy4/cpuinfo_min_freq", "3700000");
  EXPECT_FALSE(range().supported) << "none";
}

TEST_F(CpuClocks, OldKernelsHaveAFolderForEachCpu) {
  for (const char* cpu : {"cpu0", "cpu1"}) {
    const std::string folder = std::string("/sys/devices/system/cpu/") + cpu + "/cpufreq/";
    tree.put(folder + "cpuinfo_min_freq", "800000");
    tree.put(folder + "cpuinfo_max_freq", "2000000");
    tree.put(folder + "scaling_min_freq", "800000");
    tree.put(folder + "scaling_max_freq", "2000000");
  }
  tree.put("/sys/devices/system/cpu/cpu2/online", "0");
  tree.put("/sys/devices/system/cpu/power/cpufreq/scaling_min_freq", "1");
  auto control = open_control("cpufreq", environment);
  EXPECT_EQ(control->snapshot().size(), 2u);
  ASSERT_TRUE(control->set(kCore, 1500).ok());
  EXPECT_EQ(tree.get("/sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq"), "1500000");
}

TEST_F(CpuClocks, AreReadBack) {
  auto control = open();
  ASSERT_TRUE(control->set(kCore, 2000).ok());
  EXPECT_TRUE(control->check(kCore, 2000).ok());
  put("policy4/scaling_min_freq", "2000500");
  EXPECT_TRUE(control->check(kCore, 2000).ok()) << "rounded";
  put("policy4/scaling_min_freq", "1999000");
  EXPECT_THAT(control->check(kCore, 2000).message, HasSubstr("but it is 1999 MHz"));
  put("policy4/scaling_min_freq", "2000000");
  put("policy0/scaling_max_freq", "2001000");
  EXPECT_THAT(control->check(kCore, 2000).message, HasSubstr("but it is 2001 MHz"));
  EXPECT_TRUE(control->check(ControlQuantity::memory_clock_mhz, 2000).ok()) << "nothing of this control";
  std::filesystem::remove(tree.real(policies + "policy0/scaling_max_freq"));
  EXPECT_TRUE(control->check(kCore, 2000).ok()) << "nobody can tell";
}

TEST_F(CpuClocks, AreForWhoMayWriteThem) {
  auto control = open();
  EXPECT_TRUE(control->permitted());
  const auto file = tree.real(policies + "policy4/scaling_max_freq");
  std::filesystem::permissions(tree.root(), std::filesystem::perms(0755));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(tree.root()))
    if (entry.is_regular_file()) std::filesystem::permissions(entry.path(), std::filesystem::perms(0666));
  std::filesystem::permissions(file, std::filesystem::perms(0444));
  const EffectiveUser nobody;
  EXPECT_FALSE(control->permitted());
  EXPECT_EQ(control->set(kCore, 2000).status, ControlStatus::no_permission);
}

}  // namespace
}  // namespace ergotune
