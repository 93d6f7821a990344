// Progress on standard error: one line that is rewritten on a terminal, plain lines otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ergotune/result.hpp"
#include "problem/tables/quantity.hpp"
#include "tune/session/session.hpp"

namespace ergotune::cli {

/// "1.82 ms", "1.85 J", "74.1 gflops": a value as a person reads it. `unit` is in SI ("s", "J", "W") or a
/// metric's.
std::string human(double value, const std::string& unit);
/// "1.82 ms ±0.4 %": a quantity or metric with the half-width of its 95 % interval; "-" where it has no
/// value.
std::string with_interval(const Measurement& measurement, const std::string& name, const std::vector<Metric>& metrics);
/// "1 h 02 min", "3 min 05 s", "12 s".
/// "1 configuration", "7 configurations".
std::string counted(std::uint64_t count, const std::string& noun);
std::string human_duration(double seconds);
/// The parts joined, without those of least worth until they fit into less than `columns`; at last they are cut.
std::string fitting(std::vector<std::pair<int, std::string>> parts, std::size_t columns);

class ProgressPrinter {
 public:
  /// `quiet` prints nothing. `objective` and `unit` name what "best" is.
  ProgressPrinter(bool quiet, std::string objective, std::string unit);
  ~ProgressPrinter();
  /// Where several sessions tell their progress: each line begins with it, and none is rewritten.
  void set_name(std::string name);
  void operator()(const SessionProgress& progress);
  /// Ends the rewritten line, so that what follows starts on its own.
  void finish();

 private:
  void line(const std::string& text, bool replace);
  bool quiet_, terminal_;
  std::string name_, objective_, unit_, phase_;
  double last_printed_ = 0;
  std::optional<double> last_best_;
  bool open_ = false;
};

}  // namespace ergotune::cli
