// An energy meter in a time that the test owns: sensors whose readings a function gives, launches that pass one by one.
// No clock of the host is read, so that what the meter decides, and when, is the same on any machine.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "measure/energy/energy.hpp"

namespace ergotune::test {

/// What a test says of a sensor, and what it has seen of its use.
struct SensorScript {
  SensorInfo info;
  /// W at a time; of a counter its joules.
  std::function<double(double time)> value = [](double) { return 100.0; };
  double cost = 0;  ///< s of a read
  ReadStatus answer = ReadStatus::ok;
  int reads = 0, restarts = 0;
  std::vector<double> sleeps;  ///< of the meter's time, after each read
};

class VirtualMeter : public testing::Test {
 protected:
  VirtualMeter() {
    options.keep_trace = true;
    add(SensorKind::instantaneous_power);
  }

  SensorScript& add(SensorKind kind) {
    auto& sensor = *sensors.emplace_back(std::make_unique<SensorScript>());
    sensor.info.id = "scripted" + std::to_string(sensors.size());
    sensor.info.kind = kind;
    sensor.info.update_period = 1e-3;
    return sensor;
  }
  EnergyMeter& make() {
    std::vector<std::unique_ptr<Sensor>> handles;
    for (auto& sensor : sensors) handles.push_back(std::make_unique<Handle>(*sensor, *this));
    meter = std::make_unique<EnergyMeter>(std::move(handles), gpu ? std::make_unique<Monitor>(*this) : nullptr, options,
                                          MeterTime{[this] { return now; }, [this](double s) { sleep(s); }});
    return *meter;
  }
  void sleep(double seconds) {
    for (auto& sensor : sensors) sensor->sleeps.push_back(seconds);
    now += step > 0 ? step : seconds;
  }
  /// A mark each 5 ms, launches as `rate` says; ends when the meter has enough, or after so many seconds. Returns how
  /// long it took.
  double stream(double longest = 10) {
    launches = {};
    launches.queued_at = began = now;
    meter->before_start();
    mark();
    double seconds = 0;
    do {
      const double next = now + 0.005;
      while (now < next - 1e-9) meter->during();
      completed += rate(now - began) * 0.005;
      mark();
      seconds = now - began;
    } while (meter->wants_more(launches) && seconds < longest);
    meter->finished(launches);
    return seconds;
  }
  void mark() { launches.marks.push_back({now, 0, now - began, static_cast<std::uint64_t>(std::llround(completed))}); }
  double energy() const { return meter->result().quantities.at("energy").value; }

  double now = 1024, began = 0, completed = 0;
  double step = 0;  ///< s that every sleep takes; 0: as long as it is asked to
  std::function<double(double since)> rate = [](double) { return 1000.0; };  ///< launches per s
  std::function<DeviceState()> gpu;
  int gpu_looks = 0;
  EnergyOptions options;
  std::vector<std::unique_ptr<SensorScript>> sensors;
  std::unique_ptr<EnergyMeter> meter;
  LaunchStream launches;

 private:
  struct Handle : Sensor {
    SensorScript& script;
    VirtualMeter& of;
    Handle(SensorScript& s, VirtualMeter& m) : script(s), of(m) {}
    const SensorInfo& info() const override { return script.info; }
    void set_info(const SensorInfo& info) override { script.info = info; }
    ReadStatus read(std::vector<Reading>& out) override {
      ++script.reads;
      if (script.answer == ReadStatus::ok) out.push_back({of.now, script.value(of.now)});
      of.now += script.cost;
      return script.answer;
    }
    void restart() override { ++script.restarts; }
    std::string last_error() const override { return "it is gone"; }
  };
  struct Monitor : DeviceMonitor {
    VirtualMeter& of;
    explicit Monitor(VirtualMeter& m) : of(m) {}
    DeviceState read() override {
      ++of.gpu_looks;
      return of.gpu();
    }
  };
};

}  // namespace ergotune::test
