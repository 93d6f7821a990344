// A queue that is kept filled, mark by mark.
#include "measure/launch_streamer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/base/clock.hpp"
#include "measure/fake_device.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;

/// A device whose marks pass when its test says so; all of them at once where it says nothing.
struct PatientDevice : test::FakeDevice {
  int not_yet = 0;  ///< looks at a mark that find it not passed
  bool last_is_open = false;
  bool passed(const Marker& marker) override {
    if (last_is_open && &marker == last) return false;
    return not_yet <= 0 || --not_yet < 0;
  }
  void record(Marker& marker, Queue* queue = nullptr) override {
    FakeDevice::record(marker, queue);
    last = &marker;
  }

 private:
  const Marker* last = nullptr;
};

struct Millisecond : Workload {
  test::FakeDevice& device;
  std::size_t rounds = 0;
  explicit Millisecond(test::FakeDevice& d) : device(d) {}
  void launch(std::size_t count) override {
    rounds += count;
    device.now += 1e-3 * static_cast<double>(count);
  }
};

struct Streams : testing::Test {
  PatientDevice device;
  Millisecond workload{device};
  /// Five launches between two marks.
  LaunchStreamer streamer{device, workload, 0.005, 1e-3};
  std::vector<std::uint64_t> launches() const {
    std::vector<std::uint64_t> counts;
    for (const LaunchMark& mark : streamer.stream().marks) counts.push_back(mark.launches);
    return counts;
  }
  void drain() {
    while (streamer.next_mark()) {
    }
  }
};

TEST_F(Streams, BeginWithAMarkAndTwoChunks) {
  streamer.begin();
  EXPECT_EQ(workload.rounds, 10u);
  EXPECT_FALSE(streamer.drained());
  drain();
  EXPECT_THAT(launches(), ElementsAre(0, 5, 10));
  EXPECT_TRUE(streamer.drained());
  EXPECT_NEAR(streamer.stream().marks[2].device_seconds, 0.01, 1e-12);
}

TEST_F(Streams, HaveTwoChunksAheadAndNoMore) {
  streamer.begin();
  streamer.launch_chunk();
  EXPECT_EQ(workload.rounds, 10u);
  streamer.next_mark();
  streamer.launch_chunk();
  EXPECT_EQ(workload.rounds, 10u) << "both are under way still";
  streamer.next_mark();
  streamer.launch_chunk();
  streamer.launch_chunk();
  EXPECT_EQ(workload.rounds, 15u);
  drain();
  EXPECT_THAT(launches(), ElementsAre(0, 5, 10, 15));
}

TEST_F(Streams, HaveAPauseWithoutLaunchesWhereTheyRest) {
  streamer.begin();
  drain();
  streamer.rest(0);
  drain();
  EXPECT_THAT(launches(), ElementsAre(0, 5, 10, 10, 15, 20));
}

TEST_F(Streams, ThatRanEmptyHaveOneToo) {
  device.not_yet = 1;  // it has been seen at work
  streamer.begin();
  drain();
  streamer.launch_chunk();
  drain();
  EXPECT_THAT(launches(), ElementsAre(0, 5, 10, 10, 15));
}

TEST_F(Streams, WhoseLastChunkIsUnderWayHaveNone) {
  device.not_yet = 1;
  streamer.begin();
  streamer.next_mark();
  streamer.next_mark();
  device.last_is_open = true;
  streamer.launch_chunk();
  device.last_is_open = false;
  drain();
  EXPECT_THAT(launches(), ElementsAre(0, 5, 10, 15));
}

TEST_F(Streams, OfADeviceThatIsNeverSeenAtWorkHaveNone) {
  streamer.begin();
  drain();
  streamer.launch_chunk();
  drain();
  EXPECT_THAT(launches(), ElementsAre(0, 5, 10, 15)) << "it runs when it is looked at";
}

TEST_F(Streams, MarksAreLateByTheTimeSinceTheLastLook) {
  device.not_yet = 3;
  const double begin = host_seconds();
  streamer.begin();
  drain();
  const double end = host_seconds();
  for (const LaunchMark& mark : streamer.stream().marks) {
    EXPECT_GE(mark.host_late, 0);
    EXPECT_LE(mark.host_late, end - begin);
    EXPECT_GE(mark.host_time, begin);
    EXPECT_LE(mark.host_time, end);
  }
}

TEST_F(Streams, ChunksAreARoundAtLeastAndAMillionAtMost) {
  LaunchStreamer(device, workload, 0.005, 10).begin();
  EXPECT_EQ(workload.rounds, 2u);
  workload.rounds = 0;
  LaunchStreamer(device, workload, 1e6, 1e-3).begin();
  EXPECT_EQ(workload.rounds, 2'000'000u);
  workload.rounds = 0;
  LaunchStreamer(device, workload, 1e-3, 0).begin();
  EXPECT_EQ(workload.rounds, 2'000'000u) << "where a round takes no time";
}

}  // namespace
}  // namespace ergotune
