// PowerSensor 3 (astron.nl): 20 kHz, time stamps.
#include <fmt/format.h>

#include <cstring>

#include "ergotune/error.hpp"
#include "power/powersensor/powersensor.hpp"

namespace ergotune {
namespace {

/// A channel in the device's memory: char type[16], char pair_name[16], float vref, float sensitivity, bool in_use,
/// packed.
constexpr std::size_t kRecord = 41;
constexpr double kAnswerTime = 1;  ///< s; the device gives up after 2

class Powersensor3Protocol : public PowersensorProtocol {
 public:
  explicit Powersensor3Protocol(std::string path) : path_(std::move(path)) {}

  void start(PowersensorPort& port) override {
    port.write('T');  // it may still be streaming
    port.drain(0.05);
    port.write('R');
    Powersensor3Decoder::Channels channels;
    bool any = false;
    for (auto& channel : channels) {
      std::array<unsigned char, kRecord> record;
      if (!port.read_exactly(record, kAnswerTime)) refuse("sends no configuration");
      port.write('s');
      std::memcpy(&channel.reference, &record[32], sizeof(float));
      std::memcpy(&channel.sensitivity, &record[36], sizeof(float));
      channel.in_use = record[40] != 0;
      any |= channel.in_use;
      if (channel.in_use && channel.sensitivity == 0) refuse("has a channel with sensitivity 0: configure it anew");
    }
    std::array<unsigned char, 1> done{};
    if (!port.read_exactly(done, kAnswerTime) || done[0] != 'D') refuse("does not end its configuration");
    if (!any) refuse("has no channel in use: configure it first");
    decoder_.emplace(channels);
    port.write('S');
  }

  void stop(PowersensorPort& port) override { port.write('T'); }

  void feed(std::span<const unsigned char> bytes, double arrival, std::vector<Reading>& energy) override {
    samples_.clear();
    decoder_->feed(bytes, samples_);
    for (const auto& sample : samples_) {
      const double time = anchor_.host_time(sample.device_seconds, arrival);
      integral_.add(time, sample.watts);
      energy.push_back({time, integral_.joules()});
    }
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    throw UserError(fmt::format("{} {} (is it a PowerSensor 3?)", path_, what));
  }
  std::string path_;
  std::optional<Powersensor3Decoder> decoder_;
  std::vector<Powersensor3Decoder::Sample> samples_;
  ClockAnchor anchor_;
  EnergyIntegral integral_;
};

}  // namespace

std::unique_ptr<Powersensor> open_powersensor3(const std::string& path) {
  return open_powersensor(3, path, std::make_unique<Powersensor3Protocol>(path));
}

}  // namespace ergotune
