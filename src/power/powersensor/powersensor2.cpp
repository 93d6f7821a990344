// PowerSensor 2 (Arduino): five sensors in sequence, no time stamps.
#include <fmt/format.h>

#include <cstring>

#include "ergotune/error.hpp"
#include "power/powersensor/powersensor.hpp"

namespace ergotune {
namespace {

constexpr std::size_t kRecord = 12;  ///< float volt, type, null_level
constexpr double kAnswerTime = 2;    ///< s; an Arduino restarts when its line is opened

class Powersensor2Protocol : public PowersensorProtocol {
 public:
  explicit Powersensor2Protocol(std::string path) : path_(std::move(path)) {}

  void start(PowersensorPort& port) override {
    port.write('T');
    port.drain(0.05);
    port.write('r');
    std::array<unsigned char, 5 * kRecord> memory;
    if (!port.read_exactly(memory, kAnswerTime)) refuse("sends no configuration");
    Powersensor2Decoder::Sensors sensors;
    bool any = false;
    for (std::size_t i = 0; i < sensors.size(); ++i) {
      std::memcpy(&sensors[i].volt, &memory[i * kRecord], sizeof(float));
      std::memcpy(&sensors[i].type, &memory[i * kRecord + 4], sizeof(float));
      std::memcpy(&sensors[i].null_level, &memory[i * kRecord + 8], sizeof(float));
      any |= sensors[i].in_use();
      if (sensors[i].in_use() && sensors[i].type == 0) refuse("has a sensor of type 0: configure it anew");
    }
    if (!any) refuse("has no sensor in use: configure it first");
    decoder_.emplace(sensors);
    port.write('S');
  }

  void stop(PowersensorPort& port) override { port.write('T'); }

  void feed(std::span<const unsigned char> bytes, double arrival, std::vector<Reading>& energy) override {
    samples_.clear();
    decoder_->feed(bytes, samples_);
    // Bytes arrive in bursts without time stamps; the samples of a burst are spread evenly over the time since the
    // previous one.
    const double from = last_arrival_ > 0 ? last_arrival_ : arrival;
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const double time = from + (arrival - from) * static_cast<double>(i + 1) / static_cast<double>(samples_.size());
      integrals_[samples_[i].sensor].add(time, samples_[i].watts);
      double joules = 0;
      for (const auto& integral : integrals_) joules += integral.joules();
      energy.push_back({time, joules});
    }
    if (!samples_.empty()) last_arrival_ = arrival;
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    throw UserError(fmt::format("{} {} (is it a PowerSensor 2?)", path_, what));
  }
  std::string path_;
  std::optional<Powersensor2Decoder> decoder_;
  std::vector<Powersensor2Decoder::Sample> samples_;
  std::array<EnergyIntegral, 5> integrals_;
  double last_arrival_ = 0;
};

}  // namespace

std::unique_ptr<Powersensor> open_powersensor2(const std::string& path) {
  return open_powersensor(2, path, std::make_unique<Powersensor2Protocol>(path));
}

}  // namespace ergotune
