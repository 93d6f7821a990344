// PowerSensor 3 and 2 (external power meters on a serial line) as energy sensors. A separate thread reads the stream,
// converts time stamps to the host's clock and integrates; read() returns cumulative joules.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
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
  /// Decodes bytes that arrived at the host time `arrival`; appends (host time, joules since the start) and the host
  /// times of markers.
  virtual void feed(std::span<const unsigned char> bytes, double arrival, std::vector<Reading>& energy,
                    std::vector<double>& markers) = 0;
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

  /// Makes the device mark its next frame (PowerSensor 3 only).
  void mark();
  /// Returns the host times of the frames marked since the last call.
  std::vector<double> take_markers();

 private:
  void run();

  SensorInfo info_;
  PowersensorPort port_;
  std::unique_ptr<PowersensorProtocol> protocol_;
  mutable std::mutex mutex_;  ///< protects the members up to error_
  std::deque<Reading> readings_;
  std::vector<double> markers_;
  std::string error_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

std::unique_ptr<Powersensor> open_powersensor3(const std::string& path);
std::unique_ptr<Powersensor> open_powersensor2(const std::string& path);

}  // namespace ergotune
