#include "power/powersensor/powersensor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "power/sensors/sensor_family.hpp"

namespace ergotune {

void Powersensor3Decoder::feed(std::span<const unsigned char> bytes, std::vector<Sample>& out) {
  for (const unsigned char byte : bytes) {
    if (!first_) {
      if (byte & 0x80) first_ = byte;  // else a second byte whose first one was lost
      continue;
    }
    if (byte & 0x80) {  // two first bytes in a row: the second byte of the first item was lost
      first_ = byte;
      continue;
    }
    const unsigned id = (*first_ >> 4) & 7, level = ((*first_ & 15u) << 6) | (byte & 63u);
    first_.reset();
    item(id, level, (byte & 0x40) != 0, out);
  }
}

void Powersensor3Decoder::item(unsigned id, unsigned level, bool flag, std::vector<Sample>& out) {
  if (id == 7 && flag) {
    if (stamp_) microseconds_ += (level - *stamp_) & 1023;
    stamp_ = level;
    in_frame_ = true;
    seen_ = 0;
    return;
  }
  if (!in_frame_) return;
  levels_[id] = level;
  seen_ |= 1u << id;
  if (id == 7) finish(out);
}

void Powersensor3Decoder::finish(std::vector<Sample>& out) {
  in_frame_ = false;
  Sample sample;
  sample.device_seconds = static_cast<double>(microseconds_) * 1e-6;
  const auto value = [&](unsigned channel) {
    const auto& c = channels_[channel];
    return (3.3 * levels_[channel] / 1023 - static_cast<double>(c.reference)) / static_cast<double>(c.sensitivity);
  };
  for (unsigned pair = 0; pair < 4; ++pair) {
    if (!channels_[2 * pair].in_use || !channels_[2 * pair + 1].in_use) continue;
    const unsigned needed = 3u << (2 * pair);
    if ((seen_ & needed) != needed) return;  // a channel is missing
    sample.watts += value(2 * pair) * value(2 * pair + 1);
  }
  out.push_back(sample);
}

double ClockAnchor::host_time(double device_seconds, double arrival) {
  const double delay = arrival - device_seconds;
  if (!started_) {
    started_ = true;
    offset_ = least_ = delay;
    window_end_ = arrival + kWindow;
  }
  least_ = std::min(least_, delay);
  if (first_window_) offset_ = least_;
  if (arrival >= window_end_) {
    offset_ = least_;
    first_window_ = false;
    least_ = delay;
    window_end_ = arrival + kWindow;
  }
  return device_seconds + offset_;
}

void Powersensor2Decoder::feed(std::span<const unsigned char> bytes, std::vector<Sample>& out) {
  for (const unsigned char byte : bytes) {
    if (!first_) {
      first_ = byte;
      continue;
    }
    const unsigned id = *first_ >> 5;
    if (id < 5 && (byte & 0xE0) == 0xE0) {
      const unsigned level = ((*first_ & 31u) << 5) | (byte & 31u);
      if (sensors_[id].in_use()) out.push_back({id, sensors_[id].watts(level)});
      first_.reset();
    } else {
      first_ = byte;
    }
  }
}

PowersensorPort::PowersensorPort(const std::string& path) : path_(path) {
  // non-blocking, since opening a line without carrier would block forever
  descriptor_ = ::open(path.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    const std::string advice = errno == EACCES ? "; be a member of its group (often \"dialout\")" : "";
    throw UserError(fmt::format("cannot open {}: {}{}", path, std::strerror(errno), advice));
  }
  const auto fail = [&](const std::string& message) {
    ::close(descriptor_);
    throw UserError(message);
  };
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) fail(fmt::format("{} is in use by another program", path));
  termios line{};
  if (tcgetattr(descriptor_, &line) != 0) fail(fmt::format("{} is not a serial line", path));
  cfmakeraw(&line);
  line.c_cflag = (line.c_cflag & ~static_cast<tcflag_t>(CSIZE | PARENB | CSTOPB | CRTSCTS)) | CS8 | CLOCAL | CREAD;
  line.c_cc[VMIN] = 1;
  line.c_cc[VTIME] = 0;
  cfsetspeed(&line, B4000000);  // USB ignores it; the bridge of older Arduinos uses its highest rate
  if (tcsetattr(descriptor_, TCSANOW, &line) != 0) fail(fmt::format("{}: {}", path, std::strerror(errno)));
  tcflush(descriptor_, TCIFLUSH);
}

PowersensorPort::~PowersensorPort() { ::close(descriptor_); }

std::size_t PowersensorPort::read_some(std::span<unsigned char> out, double seconds) {
  pollfd wait{descriptor_, POLLIN};
  if (poll(&wait, 1, static_cast<int>(seconds * 1000)) <= 0) return 0;
  const ssize_t n = TEMP_FAILURE_RETRY(::read(descriptor_, out.data(), out.size()));
  if (n > 0) return static_cast<std::size_t>(n);
  if (n < 0 && errno == EAGAIN) return 0;
  throw Error(fmt::format("{} was disconnected", path_));
}

bool PowersensorPort::read_exactly(std::span<unsigned char> out, double seconds) {
  const double end = host_seconds() + seconds;
  while (!out.empty()) {
    const double left = end - host_seconds();
    if (left <= 0) return false;
    out = out.subspan(read_some(out, left));
  }
  return true;
}

void PowersensorPort::write(std::span<const unsigned char> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = TEMP_FAILURE_RETRY(::write(descriptor_, bytes.data(), bytes.size()));
    if (n > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else if (n < 0 && errno == EAGAIN) {
      pollfd wait{descriptor_, POLLOUT};
      if (poll(&wait, 1, 1000) < 1) throw Error(fmt::format("{} takes no bytes", path_));
    } else {
      throw Error(fmt::format("{} was disconnected", path_));
    }
  }
}

void PowersensorPort::write(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  write(std::span(&value, 1));
}

void PowersensorPort::drain(double seconds) {
  unsigned char dropped[4096];
  const double end = host_seconds() + 10 * seconds;
  while (host_seconds() < end && read_some(dropped, seconds) > 0) {
  }
}

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
      protocol_->feed(std::span(bytes).first(n), arrival, energy);
      const std::lock_guard lock(mutex_);
      for (const auto& reading : energy) {
        if (reading.time < last_kept + kReadingInterval) continue;
        last_kept = reading.time;
        readings_.push_back(reading);
        if (readings_.size() > kMostReadings) readings_.pop_front();
      }
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
}

std::string Powersensor::last_error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

std::unique_ptr<Powersensor> open_powersensor(int version, const std::string& path,
                                              std::unique_ptr<PowersensorProtocol> protocol) {
  SensorInfo info;
  info.driver = fmt::format("powersensor{}", version);
  info.id = info.driver + ":" + path;
  info.name = fmt::format("PowerSensor {} at {}", version, path);
  info.kind = SensorKind::cumulative_energy;
  info.scope = SensorScope::gpu;
  info.update_period = kReadingInterval;
  return std::make_unique<Powersensor>(std::move(info), path, std::move(protocol));
}

namespace {

/// Serial lines are not probed: opening one resets some devices, and any device may be connected. A sensor is used only
/// if the user names it, since the measured device is unknown.
class PowersensorFamily : public SensorFamily {
 public:
  PowersensorFamily(std::string name, std::unique_ptr<Powersensor> (*open)(const std::string& path))
      : name_(std::move(name)), open_(open) {}
  std::string name() const override { return name_; }
  std::unique_ptr<Sensor> open(const std::string& id) override {
    const std::size_t colon = id.find(':');
    return open_(colon == std::string::npos ? "/dev/ttyACM0" : id.substr(colon + 1));
  }

 private:
  std::string name_;
  std::unique_ptr<Powersensor> (*open_)(const std::string& path);
};

}  // namespace

std::unique_ptr<SensorFamily> make_powersensor3_family() {
  return std::make_unique<PowersensorFamily>("powersensor3", open_powersensor3);
}
std::unique_ptr<SensorFamily> make_powersensor2_family() {
  return std::make_unique<PowersensorFamily>("powersensor2", open_powersensor2);
}

}  // namespace ergotune
