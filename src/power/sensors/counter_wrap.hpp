// Extends 32-bit energy counters, which wrap to 0.
#pragma once

namespace ergotune {

/// Continues a counter across wraps. A decrease is a wrap if the implied energy is possible in the time since the last
/// reading; any other decrease (restart of the driver) is passed on.
class CounterWrap {
 public:
  /// `unit`: J of one count.
  explicit CounterWrap(double unit) : range_(unit * 4294967296.0) {}

  double continued(double joules, double time) {
    const double step = joules + range_ - last_;
    if (joules < last_ && step <= kMostPower * (time - time_ + kLongestTick)) wrapped_ += range_;
    last_ = joules;
    time_ = time;
    return joules + wrapped_;
  }

 private:
  static constexpr double kMostPower = 1e4;  ///< W of one device
  static constexpr double kLongestTick = 1;  ///< s between two updates of a counter
  double range_, last_ = 0, time_ = 0, wrapped_ = 0;
};

}  // namespace ergotune
