// The serial line to a PowerSensor: exclusive, raw, with time-outs.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ergotune {

class PowersensorPort {
 public:
  /// Opens, locks and configures. Throws UserError when it is missing, not permitted or in use.
  explicit PowersensorPort(const std::string& path);
  PowersensorPort(const PowersensorPort&) = delete;
  PowersensorPort& operator=(const PowersensorPort&) = delete;
  ~PowersensorPort();

  /// Reads what is there, waiting at most `seconds` for the first byte. 0: nothing came. Throws Error when
  /// the device has gone.
  std::size_t read_some(std::span<unsigned char> out, double seconds);
  /// Reads exactly; false after `seconds` without all of it.
  bool read_exactly(std::span<unsigned char> out, double seconds);
  void write(std::span<const unsigned char> bytes);
  void write(char byte);
  /// Reads and drops until the line is quiet for `seconds`.
  void drain(double seconds);

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace ergotune
