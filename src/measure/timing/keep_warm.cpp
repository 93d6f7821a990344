#include "measure/timing/keep_warm.hpp"

#include "base/clock.hpp"

namespace ergotune {

std::unique_ptr<KeepWarm> KeepWarm::make(Device& device) {
  try {
    return std::unique_ptr<KeepWarm>(new KeepWarm(device));
  } catch (const std::exception&) {
    return nullptr;
  }
}

bool KeepWarm::heat(double seconds) {
  try {
    load_.work_until(host_seconds() + seconds);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace ergotune
