// The observer "core_voltage". nvidia-smi takes tens of milliseconds, so it runs once, in a separate thread, while the
// launches continue.
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "measure/observers/observer_registry.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune {
namespace {

/// s of load before the voltage is read, since clocks and voltage follow the load.
constexpr double kRampUp = 0.15;
/// Longest time in s for which the stream is prolonged.
constexpr double kPatience = 3;

/// Measures the core voltage under load of the GPU with this UUID; prolongs the stream until a value was read. Without
/// a source of the voltage it reports no quantity and stops trying.
class VoltageReader : public Observer {
 public:
  explicit VoltageReader(std::string uuid) : uuid_(std::move(uuid)) {}
  ~VoltageReader() override { join(); }
  std::string name() const override { return "core_voltage"; }
  ObserverPhase phase() const override { return ObserverPhase::stream; }
  void register_configuration(const ObservedConfiguration&) override { voltage_.reset(); }

  void after_start() override {
    join();
    voltage_.reset();
    if (unavailable_) return;
    began_ = host_seconds();
    answered_ = ended_ = false;
    thread_ = std::thread([this] {
      while (!ended_ && host_seconds() - began_ < kRampUp) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const auto volts = read_core_voltage(uuid_);
      // Only valid if it was read under load.
      if (!ended_) voltage_ = volts;
      unavailable_ = !volts;
      answered_ = true;
    });
  }
  void after_finish() override {
    ended_ = true;
    join();
  }
  bool wants_more(const LaunchStream&) override {
    return thread_.joinable() && !answered_ && host_seconds() - began_ < kPatience;
  }
  std::map<std::string, Quantity> results() override {
    if (!voltage_) return {};
    return {{"core_voltage", {*voltage_, 0, 1, "read once under load", {}, Provenance::measured}}};
  }

 private:
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  std::string uuid_;
  std::thread thread_;
  std::atomic<bool> answered_, ended_, unavailable_;
  std::optional<double> voltage_;  ///< owned by the thread until it is joined
  double began_ = 0;
};

}  // namespace

void add_voltage_reader(std::vector<ObserverEntry>& list) {
  list.push_back(
      {{"core_voltage",
        "Core voltage under load, where the driver's library does not report it (nvidia-smi, a Tegra's regulator)",
        ObserverPhase::stream,
        {"core_voltage"},
        {{"gpu", ObserverOption::Type::text, false, "UUID of the GPU; empty: the device's own", {""}}}},
       [](const ObserverOptions& options, const ObserverContext& context) {
         const std::string gpu = options.at("gpu").front().as_string();
         return std::make_shared<VoltageReader>(gpu.empty() ? context.device.uuid : gpu);
       }});
}

}  // namespace ergotune
