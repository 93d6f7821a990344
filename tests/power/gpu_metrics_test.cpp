// amdgpu's gpu_metrics tables of every revision, laid out as the kernel lays them out, whole, short and damaged; and
// the energy counters that are read from them.
#include "power/sensors/amdgpu_energy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "fakes/sysfs_trees/sysfs_trees.hpp"
#include "power/sensors/sensor.hpp"

using namespace ergotune;
using namespace ergotune::test;
using testing::HasSubstr;

namespace {

/// A table whose fields nobody fills but those that are put.
class Table {
 public:
  Table(int format, int content, std::size_t bytes) : bytes_(bytes, '\xff') {
    put<std::uint16_t>(0, static_cast<std::uint16_t>(bytes));
    put<std::uint8_t>(2, static_cast<std::uint8_t>(format));
    put<std::uint8_t>(3, static_cast<std::uint8_t>(content));
  }
  template <class T>
  Table& put(std::size_t offset, T value) {
    std::memcpy(bytes_.data() + offset, &value, sizeof value);
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Offsets from the kernel's structures, field by field (drivers/gpu/drm/amd/include/kgd_pp_interface.h).
struct Revision {
  int content;
  std::size_t bytes, energy, taken, power, clock;
};
constexpr Revision kRevisions[] = {{1, 96, 24, 32, 22, 54},   {2, 104, 24, 32, 22, 54},  {3, 120, 24, 32, 22, 54},
                                   {4, 288, 24, 32, 10, 240}, {5, 360, 88, 96, 10, 312}, {6, 1664, 16, 24, 10, 264}};

Table table_of(const Revision& r, double joules) {
  Table table(1, r.content, r.bytes);
  table.put<std::uint64_t>(r.energy, static_cast<std::uint64_t>(65536 * joules));
  table.put<std::uint64_t>(r.taken, 5'000'000'000).put<std::uint16_t>(r.power, 321).put<std::uint16_t>(r.clock, 1502);
  return table;
}

TEST(GpuMetrics, EveryRevisionIsRead) {
  for (const Revision& r : kRevisions) {
    SCOPED_TRACE(r.content);
    std::string reason;
    const auto metrics = read_gpu_metrics(table_of(r, 1234.5).bytes(), reason);
    ASSERT_TRUE(metrics) << reason;
    EXPECT_EQ(metrics->revision, "1." + std::to_string(r.content));
    EXPECT_DOUBLE_EQ(metrics->energy.value_or(0), 1234.5);
    EXPECT_DOUBLE_EQ(metrics->taken.value_or(0), 5);
    EXPECT_EQ(metrics->socket_power_w, 321);
    EXPECT_EQ(metrics->core_clock_mhz, 1502);
    EXPECT_EQ(metrics->power_is_averaged, r.content < 4);
    EXPECT_FALSE(metrics->throttle_status);
    EXPECT_FALSE(metrics->residency);
  }
}

TEST(GpuMetrics, UnknownRevisionsAndWrongSizesAreRefusedWithAReason) {
  const auto why = [](const std::string& bytes) {
    std::string reason;
    const bool read = read_gpu_metrics(bytes, reason).has_value();
    EXPECT_EQ(read, reason.empty());
    return reason;
  };
  EXPECT_EQ(why(""), "it is empty");
  EXPECT_EQ(why(std::string("\x03\0\1", 3)), "it is empty");
  EXPECT_EQ(why(Table(2, 1, 4).bytes()), "revision 2.1 is none that is known to count energy") << "a header alone";
  EXPECT_EQ(why(Table(2, 1, 120).bytes()), "revision 2.1 is none that is known to count energy");
  EXPECT_EQ(why(Table(1, 9, 1664).bytes()), "revision 1.9 is none that is known to count energy");
  EXPECT_EQ(why(Table(1, 5, 288).bytes()), "a table of revision 1.5 has 360 bytes, and this one 288");
  EXPECT_EQ(why(Table(1, 3, 120).bytes().substr(0, 100)), "it has 100 bytes and its header gives 120");
  EXPECT_EQ(why(Table(1, 6, 320).bytes()), "") << "without partitions";
  EXPECT_EQ(why(Table(1, 6, 319).bytes()), "a table of revision 1.6 has 320 bytes, and this one 319");
  for (const Revision& r : kRevisions)
    for (std::size_t n = 0; n < r.bytes; n += 7) EXPECT_NE(why(table_of(r, 1).bytes().substr(0, n)), "");
}

TEST(GpuMetrics, AnyBytesAreReadOrRefused) {
  EXPECT_TRUE(rc::check([] {
    const Revision& r = kRevisions[*rc::gen::inRange(0, 6)];
    std::string bytes = table_of(r, 10).bytes();
    for (const std::size_t at :
         *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, bytes.size())))
      bytes[at] = static_cast<char>(*rc::gen::arbitrary<std::uint8_t>());
    std::string reason;
    const auto metrics = read_gpu_metrics(bytes, reason);
    RC_ASSERT(metrics.has_value() == reason.empty());
    if (metrics && metrics->energy) RC_ASSERT(*metrics->energy >= 0);
  }));
}

struct EnergyTree : AmdgpuTree {
  static constexpr const char* kCards[] = {"/sys/class/drm/card0/device/gpu_metrics",
                                           "/sys/class/drm/card1/device/gpu_metrics"};
  void energy(double joules, int card = 0, const Revision& revision = kRevisions[2]) {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    put(kCards[card], table_of(revision, joules)
                          .put<std::uint64_t>(revision.taken, static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
                                                                  static_cast<std::uint64_t>(now.tv_nsec))
                          .bytes());
  }
};

TEST(AmdgpuEnergy, CountsAsTheGpuDrawsAndComesBeforePower) {
  EnergyTree tree;
  const PowerCurve curve{200, 80, 0.3};
  const double begin = host_seconds();
  std::vector<double> late;
  tree.energy(5000);
  const auto sensors = sensors_for_device("", "0000:03:00.0", false);
  ASSERT_EQ(sensors.size(), 2u);
  Sensor& sensor = *sensors[0];
  EXPECT_EQ(sensor.info().id, "amdgpu:card0/energy");
  EXPECT_EQ(sensor.info().kind, SensorKind::cumulative_energy);
  EXPECT_EQ(sensors[1]->info().id, "amdgpu:card0");
  for (int i = 0; i < 50; ++i) {
    const double before = host_seconds();
    const double joules = 5000 + curve.energy(begin, before);
    tree.energy(joules);
    const double taken = host_seconds();
    usleep(2000);  // however late this process comes to read it
    std::vector<Reading> readings;
    ASSERT_EQ(sensor.read(readings), ReadStatus::ok) << sensor.last_error();
    ASSERT_EQ(readings.size(), 1u);
    EXPECT_NEAR(readings[0].value, joules, 0.01);
    EXPECT_LE(readings[0].time, taken + 1e-5) << "the time at which the driver took it";
    late.push_back(before - readings[0].time);
  }
  // a thread that is kept waiting between two clocks makes one time too early: not half of them
  std::nth_element(late.begin(), late.begin() + 25, late.end());
  EXPECT_LT(late[25], 1e-3);
}

TEST(AmdgpuEnergy, TheSecondDieOfABoardIsSaidNotRead) {
  EnergyTree tree;
  tree.energy(5000, 0);
  tree.energy(0, 1);
  std::vector<std::string> notes;
  const auto second = sensors_for_device("", "0000:c3:00.0", false, &notes);
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0]->info().id, "amdgpu:card1") << "its power is another matter";
  EXPECT_THAT(notes, testing::Contains(HasSubstr("first die counts for both")));
  EXPECT_THAT(sensors_for_device("", "0000:03:00.0", false).at(0)->info().name, HasSubstr("of the whole GPU"));
}

TEST(AmdgpuEnergy, ResetsAndDamagedTablesAreFailuresNotNumbers) {
  EnergyTree tree;
  tree.energy(5000);
  const auto sensor = open_sensor("amdgpu:card0/energy");
  std::vector<Reading> out;
  ASSERT_EQ(sensor->read(out), ReadStatus::ok);
  tree.energy(3);
  EXPECT_EQ(sensor->read(out), ReadStatus::failed);
  EXPECT_THAT(sensor->last_error(), HasSubstr("reset"));
  tree.energy(4);
  EXPECT_EQ(sensor->read(out), ReadStatus::ok) << "it counts on from there";
  tree.put(EnergyTree::kCards[0], std::string("\x78", 2));
  EXPECT_EQ(sensor->read(out), ReadStatus::failed);
  tree.remove(EnergyTree::kCards[0]);
  EXPECT_EQ(sensor->read(out), ReadStatus::failed);
  EXPECT_THAT(sensor->last_error(), HasSubstr("cannot be read"));
  EXPECT_EQ(out.size(), 2u);
}

TEST(AmdgpuEnergy, AnUnknownTableIsNoSensorAndSaysSo) {
  EnergyTree tree;
  tree.put(EnergyTree::kCards[0], Table(1, 8, 1800).bytes());
  std::vector<std::string> notes;
  EXPECT_EQ(sensors_for_device("", "0000:03:00.0", false, &notes).at(0)->info().id, "amdgpu:card0");
  EXPECT_THAT(notes, testing::Contains(HasSubstr("1.8")));
}

TEST(AmdgpuMonitor, FirmwareThatSaysWhyIsBelievedAndAPowerAtItsCapElse) {
  EnergyTree tree;
  const auto at_cap = [&](double watts) {
    tree.power(watts);
    return monitor_for_device("", "0000:03:00.0")->read().clock_reasons == std::vector<std::string>{"power_cap"};
  };
  EXPECT_TRUE(at_cap(291)) << "of 300 W";
  EXPECT_FALSE(at_cap(290.9));
  EXPECT_FALSE(at_cap(0));
  tree.put(EnergyTree::kCards[0], table_of(kRevisions[0], 10).bytes());
  EXPECT_TRUE(at_cap(295)) << "a table that does not say";
  tree.put(EnergyTree::kCards[0], table_of(kRevisions[2], 10).put<std::uint64_t>(112, 0).bytes());
  EXPECT_FALSE(at_cap(295)) << "it says that nothing holds it";
  tree.remove("/sys/class/drm/card0/device/hwmon/hwmon3/freq1_input");
  EXPECT_EQ(monitor_for_device("", "0000:03:00.0")->read().core_clock_mhz, 1502) << "the table's";
  tree.remove(EnergyTree::kCards[0]);
  tree.remove("/sys/class/drm/card0/device/hwmon/hwmon3/power1_cap");
  EXPECT_FALSE(at_cap(300));
}

TEST(AmdgpuMonitor, ResidencyCountersTellTheShareThatTheyAreHeldDown) {
  EnergyTree tree;
  const auto held = [&](std::uint32_t cycles, std::uint32_t power, std::uint32_t thermal) {
    Table table = table_of(kRevisions[5], 10);
    table.put<std::uint32_t>(32, cycles).put<std::uint32_t>(36, 0).put<std::uint32_t>(40, power);
    tree.put(EnergyTree::kCards[0],
             table.put<std::uint32_t>(44, thermal).put<std::uint32_t>(48, 0).put<std::uint32_t>(52, 0).bytes());
  };
  const auto monitor = monitor_for_device("", "0000:03:00.0");
  held(0xffffff00, 0xfffffff0, 50);
  EXPECT_FALSE(monitor->read().throttled_share) << "since when?";
  held(0xffffff00 + 1000, 0xfffffff0 + 400, 60);  // both wrap
  auto state = monitor->read();
  EXPECT_NEAR(state.throttled_share.value_or(-1), 0.4, 1e-12);
  EXPECT_THAT(state.clock_reasons, testing::ElementsAre("power_cap"));
  held(0xffffff00 + 2000, 0xfffffff0 + 400, 260);
  state = monitor->read();
  EXPECT_NEAR(state.throttled_share.value_or(-1), 0.2, 1e-12);
  EXPECT_THAT(state.clock_reasons, testing::ElementsAre("thermal"));
}

TEST(AmdgpuMonitor, ThrottleBitsBecomeReasons) {
  EnergyTree tree;
  Table table = table_of(kRevisions[2], 10);
  tree.put(EnergyTree::kCards[0], table.put<std::uint64_t>(112, 1ull << 1 | 1ull << 36).bytes());
  const auto state = monitor_for_device("", "0000:03:00.0")->read();
  EXPECT_THAT(state.clock_reasons, testing::ElementsAre("power_cap", "thermal"));
  EXPECT_NEAR(state.core_clock_mhz.value_or(0), 2100, 1e-9) << "hwmon's own";
}

}  // namespace
