#include "base/clock.hpp"

#include <ctime>

namespace ergotune {

namespace {
double seconds_of(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
}  // namespace

double host_seconds() { return seconds_of(CLOCK_MONOTONIC); }
double wall_seconds() { return seconds_of(CLOCK_REALTIME); }

std::string iso_time(double seconds_since_epoch) {
  const auto t = static_cast<std::time_t>(seconds_since_epoch);
  std::tm parts{};
  gmtime_r(&t, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace ergotune
