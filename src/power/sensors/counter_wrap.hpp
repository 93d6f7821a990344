// Energy counters of 32 bits begin again at 0.
#pragma once

namespace ergotune {

/// Continues a counter over its wraps. A step back is one where the energy that it would mean is possible in the time
/// since the last reading; another step back (the driver restarted) is left as it is.
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
