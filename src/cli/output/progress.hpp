// Prints progress on standard error: one line that is rewritten on a terminal, separate lines otherwise.
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

/// "1.82 ms", "1.85 J", "74.1 gflops": a value with an SI prefix. `unit`: an SI unit ("s", "J", "W") or that of a
/// metric.
std::string human(double value, const std::string& unit);
/// The device for a sentence: not all recordings name theirs.
std::string named_device(const std::string& device);
/// "1.82 ms ±0.4 %": a quantity or metric with the half-width of its 95 % interval; "-" if it has no value. `unknown`
/// is appended if the interval is wider than the value, or unknown.
std::string with_interval(const Measurement& measurement, const std::string& name, const std::vector<Metric>& metrics,
                          const std::string& unknown = " (too few samples for an interval narrower than the value)");
/// " (simulated)"; empty for measured values.
std::string mark_of(Provenance provenance);
/// "7.0 a second", "12.0 a minute"; `rate` is per second.
std::string rate_text(double rate);
/// "1 configuration", "7 configurations".
std::string counted(std::uint64_t count, const std::string& noun);
/// "1 h 02 min", "3 min 05 s", "12 s".
std::string human_duration(double seconds);
/// Joins the texts, removing those of the lowest rank until they fit into less than `columns` characters; a single text
/// is cut.
std::string fitting(std::vector<std::pair<int, std::string>> parts, std::size_t columns);

class ProgressPrinter {
 public:
  /// `quiet`: prints nothing. `objective`, `unit` and `provenance` describe the best value.
  ProgressPrinter(bool quiet, std::string objective, std::string unit, Provenance provenance = Provenance::measured);
  ~ProgressPrinter();
  /// A name for sessions that run at the same time: each line begins with it, and no line is rewritten.
  void set_name(std::string name);
  void operator()(const SessionProgress& progress);
  /// Ends the line that is being rewritten.
  void finish();

 private:
  void line(const std::string& text, bool replace);
  bool quiet_, terminal_;
  std::string name_, objective_, unit_, mark_, phase_;
  double last_printed_ = 0;
  std::optional<double> last_best_;
  bool open_ = false;
};

}  // namespace ergotune::cli
