// Decoders that convert the byte streams of PowerSensor 3 and 2 to power samples. They are pure, so that lost bytes,
// split reads and wraps can be tested.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ergotune {

/// Configuration of a channel, as stored in the device's memory.
struct PowersensorChannel {
  float reference = 0;    ///< V
  float sensitivity = 1;  ///< V/A or V/V
  bool in_use = false;
};

/// PowerSensor 3: 8 channels in 4 pairs (even: current, odd: voltage), 20 000 frames per second of two-byte items "1
/// iii hhhh" "0 m llllll". A frame is a time stamp (id 7 with m: low 10 bits of the device's microseconds), followed by
/// the channels.
class Powersensor3Decoder {
 public:
  using Channels = std::array<PowersensorChannel, 8>;
  struct Sample {
    double device_seconds = 0;  ///< time on the device's clock since the first frame
    double watts = 0;           ///< sum over the pairs that are in use
    bool marker = false;
  };
  explicit Powersensor3Decoder(const Channels& channels) : channels_(channels) {}

  /// Decodes bytes in pieces of any size; appends complete samples. After a gap longer than the 1024 us of a time
  /// stamp, device time is too short by whole wraps; ClockAnchor corrects this.
  void feed(std::span<const unsigned char> bytes, std::vector<Sample>& out);
  /// Number of bytes dropped for resynchronisation.
  std::size_t dropped_bytes() const { return dropped_bytes_; }

 private:
  void item(unsigned id, unsigned level, bool flag, std::vector<Sample>& out);
  void finish(std::vector<Sample>& out);

  Channels channels_;
  std::optional<unsigned char> first_;
  bool in_frame_ = false, marker_ = false;
  unsigned seen_ = 0;  ///< one bit per channel
  std::array<unsigned, 8> levels_{};
  std::optional<unsigned> stamp_;
  std::int64_t microseconds_ = 0;
  std::size_t dropped_bytes_ = 0;
};

/// Converts a device's clock to the host's time axis. The device determines the distances of samples, the host their
/// position: bytes can only arrive late, so the smallest delay within a window is the best estimate. Errors of the
/// device's clock (drift, whole wraps during a gap) appear as a persistent delay, which is corrected.
class ClockAnchor {
 public:
  /// Returns the host time in s of a sample that arrived at `arrival`.
  double host_time(double device_seconds, double arrival);

 private:
  static constexpr double kWindow = 0.25;  ///< s; includes many reads, one of which is likely prompt
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

/// Integrates power to energy in J by the trapezoidal rule; samples older than the latest one are ignored.
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
