// The byte streams of PowerSensor 3 and 2 turned into power samples: pure, so that lost bytes, split reads
// and wraps are tested byte by byte.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ergotune {

/// One channel as the device's memory describes it.
struct PowersensorChannel {
  float reference = 0;    ///< V
  float sensitivity = 1;  ///< V/A or V/V
  bool in_use = false;
};

/// PowerSensor 3: 8 channels in 4 pairs (even current, odd voltage), 20 000 frames a second of two-byte items
/// "1 iii hhhh" "0 m llllll": a time stamp (id 7 with m: low 10 bits of the device's microseconds), then the
/// channels.
class Powersensor3Decoder {
 public:
  using Channels = std::array<PowersensorChannel, 8>;
  struct Sample {
    double device_seconds = 0;  ///< since the first frame, on the device's clock
    double watts = 0;           ///< sum over the pairs in use
    bool marker = false;
  };
  explicit Powersensor3Decoder(const Channels& channels) : channels_(channels) {}

  /// Takes bytes as they come, in pieces of any size; appends complete samples. Gaps longer than the stamp's
  /// 1024 us are short by whole wraps: ClockAnchor makes them good.
  void feed(std::span<const unsigned char> bytes, std::vector<Sample>& out);
  /// Bytes dropped to find the stream again.
  std::size_t dropped_bytes() const { return dropped_bytes_; }

 private:
  void item(unsigned id, unsigned level, bool flag, std::vector<Sample>& out);
  void finish(std::vector<Sample>& out);

  Channels channels_;
  std::optional<unsigned char> first_;
  bool in_frame_ = false, marker_ = false;
  unsigned seen_ = 0;  ///< bit per channel
  std::array<unsigned, 8> levels_{};
  std::optional<unsigned> stamp_;
  std::int64_t microseconds_ = 0;
  std::size_t dropped_bytes_ = 0;
};

/// A device's clock on the host's axis. The device spaces its samples, the host says where they lie: bytes
/// can only arrive late, so the smallest delay seen in a while is the nearest. What the device's clock misses
/// (drift, whole wraps in a gap of lost bytes) shows as a delay that stays, and is taken up.
class ClockAnchor {
 public:
  /// The host time (s) of a sample that arrived at `arrival`.
  double host_time(double device_seconds, double arrival);

 private:
  static constexpr double kWindow = 0.25;  ///< s: many reads, so that one of them is prompt
  bool started_ = false;
  double offset_ = 0, least_ = 0, window_end_ = 0;
  bool first_window_ = true;
};

/// PowerSensor 2: 5 sensors, items "sss hhhhh" "111 lllll" without time stamps.
class Powersensor2Decoder {
 public:
  struct Sensor {
    float volt = 0, type = 1, null_level = 0;
    bool in_use() const { return volt != 0; }
    double watts(unsigned level) const {
      return (static_cast<double>(level) - 512) * (2.5 / 512 * static_cast<double>(volt) / static_cast<double>(type)) -
             static_cast<double>(null_level);
    }
  };
  using Sensors = std::array<Sensor, 5>;
  struct Sample {
    unsigned sensor = 0;
    double watts = 0;
  };
  explicit Powersensor2Decoder(const Sensors& sensors) : sensors_(sensors) {}
  void feed(std::span<const unsigned char> bytes, std::vector<Sample>& out);
  std::size_t dropped_bytes() const { return dropped_bytes_; }

 private:
  Sensors sensors_;
  std::optional<unsigned char> first_;
  std::size_t dropped_bytes_ = 0;
};

/// Watts over time to joules, by trapezoids; samples before the last one are ignored.
class EnergyIntegral {
 public:
  void add(double seconds, double watts) {
    if (started_ && seconds > seconds_) joules_ += 0.5 * (watts + watts_) * (seconds - seconds_);
    if (!started_ || seconds > seconds_) {
      seconds_ = seconds;
      watts_ = watts;
    }
    started_ = true;
  }
  double joules() const { return joules_; }

 private:
  bool started_ = false;
  double seconds_ = 0, watts_ = 0, joules_ = 0;
};

}  // namespace ergotune
