// PowerSensor 3 and 2 (external power meters on a serial line) as energy sensors. A separate thread reads the stream,
// converts time stamps to the host's clock and integrates; read() returns cumulative joules.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "power/sensors/sensor.hpp"

namespace ergotune {

class PowersensorPort {
 public:
  /// Opens, locks and configures the line. Throws UserError if it does not exist, is not permitted or is in use.
  explicit PowersensorPort(const std::string& path);
  PowersensorPort(const PowersensorPort&) = delete;
  PowersensorPort& operator=(const PowersensorPort&) = delete;
  ~PowersensorPort();

  /// Reads the available bytes, and waits at most `seconds` for the first one. Returns 0 on timeout. Throws Error if
  /// the device has disappeared.
  std::size_t read_some(std::span<unsigned char> out, double seconds);
  /// Fills `out`; returns false if that takes longer than `seconds`.
  bool read_exactly(std::span<unsigned char> out, double seconds);
  void write(std::span<const unsigned char> bytes);
  void write(char byte);
  /// Discards input until none has arrived for `seconds`.
  void drain(double seconds);

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// The differences between the two devices: handshake and stream.
class PowersensorProtocol {
 public:
  virtual ~PowersensorProtocol() = default;
  /// Reads the configuration and starts the stream. Throws UserError if the device does not answer correctly.
  virtual void start(PowersensorPort& port) = 0;
  virtual void stop(PowersensorPort& port) = 0;
  /// Decodes bytes that arrived at the host time `arrival`; appends (host time, joules since the start).
  virtual void feed(std::span<const unsigned char> bytes, double arrival, std::vector<Reading>& energy) = 0;
};

class Powersensor : public Sensor {
 public:
  Powersensor(SensorInfo info, const std::string& path, std::unique_ptr<PowersensorProtocol> protocol);
  Powersensor(const Powersensor&) = delete;
  Powersensor& operator=(const Powersensor&) = delete;
  ~Powersensor() override;

  const SensorInfo& info() const override { return info_; }
  void set_info(const SensorInfo& info) override { info_ = info; }
  ReadStatus read(std::vector<Reading>& out) override;
  void restart() override;
  std::string last_error() const override;

 private:
  void run();

  SensorInfo info_;
  PowersensorPort port_;
  std::unique_ptr<PowersensorProtocol> protocol_;
  mutable std::mutex mutex_;  ///< protects the members up to error_
  std::deque<Reading> readings_;
  std::string error_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Opens a device of PowerSensor's version 2 or 3, whose protocol this is.
std::unique_ptr<Powersensor> open_powersensor(int version, const std::string& path,
                                              std::unique_ptr<PowersensorProtocol> protocol);
std::unique_ptr<Powersensor> open_powersensor3(const std::string& path);
std::unique_ptr<Powersensor> open_powersensor2(const std::string& path);

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
  };
  explicit Powersensor3Decoder(const Channels& channels) : channels_(channels) {}

  /// Decodes bytes in pieces of any size; appends complete samples. After a gap longer than the 1024 us of a time
  /// stamp, device time is too short by whole wraps; ClockAnchor corrects this.
  void feed(std::span<const unsigned char> bytes, std::vector<Sample>& out);

 private:
  void item(unsigned id, unsigned level, bool flag, std::vector<Sample>& out);
  void finish(std::vector<Sample>& out);

  Channels channels_;
  std::optional<unsigned char> first_;
  bool in_frame_ = false;
  unsigned seen_ = 0;  ///< one bit per channel
  std::array<unsigned, 8> levels_{};
  std::optional<unsigned> stamp_;
  std::int64_t microseconds_ = 0;
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

 private:
  Sensors sensors_;
  std::optional<unsigned char> first_;
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
