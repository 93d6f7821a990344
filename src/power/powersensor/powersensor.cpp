#include "power/powersensor/powersensor.hpp"

#include <array>
#include <utility>

#include "base/clock.hpp"
#include "ergotune/error.hpp"

namespace ergotune {
namespace {

/// Time in s between reported readings: the integral is exact, so that more readings would not add information.
constexpr double kReadingInterval = 1e-3;
/// Two minutes of readings. If read() is called less often, older readings are dropped, but no energy is lost.
constexpr std::size_t kMostReadings = 120000;
/// Time in s without data after which the stream has stopped.
constexpr double kSilence = 2;

}  // namespace

Powersensor::Powersensor(SensorInfo info, const std::string& path, std::unique_ptr<PowersensorProtocol> protocol)
    : info_(std::move(info)), port_(path), protocol_(std::move(protocol)) {
  try {
    protocol_->start(port_);
  } catch (const UserError&) {
    throw;
  } catch (const Error& error) {
    throw UserError(info_.id + ": " + error.what());
  }
  thread_ = std::thread([this] { run(); });
}

Powersensor::~Powersensor() {
  stop_ = true;
  thread_.join();
  try {
    protocol_->stop(port_);
  } catch (const Error&) {  // ignored: the device has disappeared
  }
}

void Powersensor::run() {
  std::array<unsigned char, 4096> bytes;
  std::vector<Reading> energy;
  std::vector<double> markers;
  double last_heard = host_seconds(), last_kept{};
  try {
    while (!stop_) {
      const std::size_t n = port_.read_some(bytes, 0.05);
      const double arrival = host_seconds();
      if (n == 0) {
        if (arrival - last_heard > kSilence) throw Error("the stream has stopped");
        continue;
      }
      last_heard = arrival;
      energy.clear();
      markers.clear();
      protocol_->feed(std::span(bytes).first(n), arrival, energy, markers);
      const std::lock_guard lock(mutex_);
      for (const auto& reading : energy) {
        if (reading.time < last_kept + kReadingInterval) continue;
        last_kept = reading.time;
        readings_.push_back(reading);
        if (readings_.size() > kMostReadings) readings_.pop_front();
      }
      markers_.insert(markers_.end(), markers.begin(), markers.end());
    }
  } catch (const Error& error) {
    const std::lock_guard lock(mutex_);
    error_ = error.what();
  }
}

ReadStatus Powersensor::read(std::vector<Reading>& out) {
  const std::lock_guard lock(mutex_);
  if (readings_.empty()) return error_.empty() ? ReadStatus::no_new_data : ReadStatus::failed;
  for (const auto& reading : readings_) out.push_back({reading.time, info_.gain * reading.value + info_.offset});
  readings_.clear();
  return ReadStatus::ok;
}

void Powersensor::restart() {
  const std::lock_guard lock(mutex_);
  readings_.clear();
  markers_.clear();
}

std::string Powersensor::last_error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void Powersensor::mark() { port_.write('M'); }

std::vector<double> Powersensor::take_markers() {
  const std::lock_guard lock(mutex_);
  return std::exchange(markers_, {});
}

}  // namespace ergotune
