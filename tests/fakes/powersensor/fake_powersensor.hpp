// PowerSensor 3 and 2 on a pseudo-terminal: their side of the serial protocol, with a known power, and with
// the faults of a real line: lost bytes, reads split anywhere, a clock that wraps, the plug pulled.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "ergotune/random.hpp"

namespace ergotune::test {

struct FakePowersensorOptions {
  std::function<double(double)> power = [](double) { return 100.0; };  ///< W at a host time
  double loss = 0;                                                     ///< chance that a byte is lost
  double outage = 0;       ///< every half second, this many seconds of stream are lost at once
  double clock_error = 0;  ///< of the device's clock: 1e-3 runs 0.1 % fast
  bool answers = true;     ///< false: something else is on this line
  bool channels_in_use = true;
  int unscaled = -1;     ///< this channel in use has a scale of 0
  char last_word = 'D';  ///< PowerSensor 3: what ends the configuration
};

/// What both have in common: the pseudo-terminal and the thread behind it.
class FakeSerialDevice {
 public:
  explicit FakeSerialDevice(FakePowersensorOptions options) : options_(std::move(options)) {
    master_ = posix_openpt(O_RDWR | O_NOCTTY);
    grantpt(master_);
    unlockpt(master_);
    path_ = ptsname(master_);
    // raw from the beginning, and open on our side: else bytes echo, and the line hangs up between openings
    slave_ = open(path_.c_str(), O_RDWR | O_NOCTTY);
    termios line{};
    tcgetattr(slave_, &line);
    cfmakeraw(&line);
    tcsetattr(slave_, TCSANOW, &line);
    fcntl(master_, F_SETFL, O_NONBLOCK);
  }
  virtual ~FakeSerialDevice() { unplug(); }
  const std::string& path() const { return path_; }
  void unplug() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    if (master_ >= 0) close(master_);
    if (slave_ >= 0) close(slave_);
    master_ = slave_ = -1;
  }
  bool streaming() const { return streaming_; }

 protected:
  void begin() {
    thread_ = std::thread([this] { run(); });
  }
  virtual void command(char byte) = 0;
  /// The bytes of the stream that are due by `now`.
  virtual void produce(double now, std::vector<unsigned char>& out) = 0;
  void start_stream() {
    streaming_ = true;
    started_ = host_seconds();
  }
  void stop_stream() { streaming_ = false; }
  void send(const std::vector<unsigned char>& bytes) {
    for (std::size_t at = 0; at < bytes.size() && !stop_;) {
      const ssize_t n = ::write(master_, bytes.data() + at, bytes.size() - at);
      if (n > 0)
        at += static_cast<std::size_t>(n);
      else
        usleep(200);
    }
  }

  FakePowersensorOptions options_;
  double started_ = 0;

 private:
  void run() {
    Random random(5);
    std::vector<unsigned char> due, kept;
    double next_outage = 0.5, outage_end = 0;
    while (!stop_) {
      pollfd wait{master_, POLLIN, 0};
      poll(&wait, 1, 1);
      char bytes[64];
      const ssize_t n = ::read(master_, bytes, sizeof bytes);
      if (options_.answers)
        for (ssize_t i = 0; i < n; ++i) command(bytes[i]);
      if (!streaming_) continue;
      const double now = host_seconds();
      due.clear();
      produce(now, due);
      if (options_.outage > 0 && now - started_ > next_outage) {
        next_outage += 0.5;
        outage_end = now + options_.outage;
      }
      if (now < outage_end) continue;
      kept.clear();
      for (const unsigned char byte : due)
        if (!random.chance(options_.loss)) kept.push_back(byte);
      // in pieces that respect nothing
      for (std::size_t at = 0; at < kept.size();) {
        const std::size_t piece = std::min(kept.size() - at, std::size_t{1} + random.below(200));
        send({kept.begin() + static_cast<std::ptrdiff_t>(at), kept.begin() + static_cast<std::ptrdiff_t>(at + piece)});
        at += piece;
      }
    }
  }

  int master_ = -1, slave_ = -1;
  std::string path_;
  std::atomic<bool> stop_{false}, streaming_{false};
  std::thread thread_;
};

/// Two pairs in use, each with half of the power at 12 V.
class FakePowersensor3 : public FakeSerialDevice {
 public:
  explicit FakePowersensor3(FakePowersensorOptions options = {}) : FakeSerialDevice(std::move(options)) { begin(); }
  ~FakePowersensor3() override { unplug(); }

  static constexpr float kVoltReference = 0, kVoltSensitivity = 0.2f, kAmpereReference = 1.65f,
                         kAmpereSensitivity = 0.05f;

 protected:
  void command(char byte) override {
    if (configuring_ >= 0) {  // the device waits for 's' after each record
      if (byte != 's') return;
      if (++configuring_ == 8) {
        configuring_ = -1;
        send({static_cast<unsigned char>(options_.last_word)});
      } else {
        send(record(configuring_));
      }
      return;
    }
    if (byte == 'R') {
      configuring_ = 0;
      send(record(0));
    } else if (byte == 'S') {
      frames_ = 0;
      start_stream();
    } else if (byte == 'T') {
      stop_stream();
    }
  }
  void produce(double now, std::vector<unsigned char>& out) override {
    for (; started_ + static_cast<double>(frames_) * 50e-6 <= now; ++frames_) {
      const double t = started_ + static_cast<double>(frames_) * 50e-6;
      const double stamp = static_cast<double>(frames_) * 50 * (1 + options_.clock_error);
      item(7, static_cast<unsigned>(stamp) & 1023, true, out);
      const double amperes = options_.power(t) / 2 / 12;
      for (unsigned channel = 0; channel < 8; ++channel) {
        const double volts = channel % 2 == 0 ? kAmpereReference + kAmpereSensitivity * amperes : kVoltSensitivity * 12;
        // rounded with dither, as noise does it
        const double level = channel < 4 ? volts / 3.3 * 1023 + dither_.uniform() : 512;
        item(channel, static_cast<unsigned>(level), false, out);
      }
    }
  }

 private:
  static void item(unsigned id, unsigned level, bool flag, std::vector<unsigned char>& out) {
    out.push_back(static_cast<unsigned char>(0x80 | id << 4 | (level >> 6 & 15)));
    out.push_back(static_cast<unsigned char>((flag ? 0x40 : 0) | (level & 63)));
  }
  std::vector<unsigned char> record(int channel) const {
    std::vector<unsigned char> bytes(41, 0);
    const bool current = channel % 2 == 0;
    const float reference = current ? kAmpereReference : kVoltReference;
    const float sensitivity = channel == options_.unscaled ? 0 : current ? kAmpereSensitivity : kVoltSensitivity;
    std::memcpy(&bytes[32], &reference, 4);
    std::memcpy(&bytes[36], &sensitivity, 4);
    bytes[40] = channel < 4 && options_.channels_in_use;
    return bytes;
  }
  int configuring_ = -1;
  std::uint64_t frames_ = 0;
  Random dither_{9};
};

/// Two sensors in use of five, each with half of the power, though not of the same kind.
class FakePowersensor2 : public FakeSerialDevice {
 public:
  explicit FakePowersensor2(FakePowersensorOptions options = {}) : FakeSerialDevice(std::move(options)) { begin(); }
  ~FakePowersensor2() override { unplug(); }

 protected:
  void command(char byte) override {
    if (byte == 'r') {
      std::vector<unsigned char> memory(60, 0);
      for (int sensor = 0; sensor < 2 && options_.channels_in_use; ++sensor) {
        const float type = sensor == options_.unscaled ? 0 : kRecords[sensor][1];
        const float record[] = {kRecords[sensor][0], type, kRecords[sensor][2]};
        std::memcpy(&memory[static_cast<std::size_t>(sensor) * 12], record, 12);
      }
      send(memory);
    } else if (byte == 'S') {
      sets_ = 0;
      start_stream();
    } else if (byte == 'T') {
      stop_stream();
    }
  }
  void produce(double now, std::vector<unsigned char>& out) override {
    constexpr double kPeriod = 1.0 / 2900;
    for (; started_ + static_cast<double>(sets_) * kPeriod <= now; ++sets_) {
      const double t = started_ + static_cast<double>(sets_) * kPeriod;
      for (unsigned sensor = 0; sensor < 5; ++sensor) {
        const double watts = options_.power(t) / 2;
        const auto& [volt, type, null_level] = kRecords[sensor % 2];
        const double exact =
            sensor < 2 ? (watts + null_level) / (2.5 / 512 * volt / type) + 512 + dither_.uniform() : 512;
        const auto level = static_cast<unsigned>(exact);
        out.push_back(static_cast<unsigned char>(sensor << 5 | (level >> 5 & 31)));
        out.push_back(static_cast<unsigned char>(0xE0 | (level & 31)));
      }
    }
  }

 private:
  /// Volt, type, level at no power.
  static constexpr float kRecords[2][3] = {{12, 0.06f, 1.5f}, {24, 0.15f, -2}};
  std::uint64_t sets_ = 0;
  Random dither_{11};
};

}  // namespace ergotune::test
