// The serial line to a PowerSensor: exclusive, raw, with timeouts.
#pragma once

#include <cstddef>
#include <span>
#include <string>

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

}  // namespace ergotune
