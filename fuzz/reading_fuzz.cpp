// What sensors and programs put out: gpu_metrics, the streams of both PowerSensors, a command sensor's lines, a
// guardian's messages, what a binary was packed with. The first byte says which; whatever the rest is, it is read or
// refused, and numbers are numbers.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "device/entries.hpp"
#include "power/guardian/guardian_process.hpp"
#include "power/powersensor/powersensor.hpp"
#include "power/sensors/amdgpu_energy.hpp"
#include "power/sensors/sensor_family.hpp"

namespace {

using namespace ergotune;

/// In two pieces: a stream is cut anywhere.
template <class Decoder, class Sample>
void feed(Decoder decoder, const std::string& bytes) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const std::size_t cut = bytes.empty() ? 0 : data[0] % (bytes.size() + 1);
  std::vector<Sample> samples;
  decoder.feed({data, cut}, samples);
  decoder.feed({data + cut, bytes.size() - cut}, samples);
  if (samples.size() > bytes.size()) std::abort();
  for (const auto& sample : samples)
    if (!std::isfinite(sample.watts)) std::abort();
}

void metrics(const std::string& bytes) {
  std::string reason;
  if (!read_gpu_metrics(bytes, reason) && reason.empty()) std::abort();
  std::string sized = bytes;  // behind the size that it must begin with
  if (sized.size() < 4) return;
  const auto size = static_cast<std::uint16_t>(sized.size());
  std::memcpy(sized.data(), &size, 2);
  read_gpu_metrics(sized, reason);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      metrics(bytes);
      break;
    case 1: {
      Powersensor3Decoder::Channels channels;
      for (auto& channel : channels) channel = {1.65f, 0.06f, true};
      feed<Powersensor3Decoder, Powersensor3Decoder::Sample>(Powersensor3Decoder(channels), bytes);
      break;
    }
    case 2: {
      Powersensor2Decoder::Sensors sensors;
      sensors[0] = {12, 0.1f, 0};
      sensors[3] = {3.3f, 0.05f, 1};
      feed<Powersensor2Decoder, Powersensor2Decoder::Sample>(Powersensor2Decoder(sensors), bytes);
      break;
    }
    case 3:
      if (const auto line = parse_command_line(bytes); line && !std::isfinite(line->watts)) std::abort();
      break;
    case 4: {
      try {
        FrameCutter cutter(guardian::kKind);
        cutter.append(bytes);
        while (const auto frame = cutter.next())
          if (guardian::encode(guardian::decode(*frame)).substr(kFrameHeader) != frame->payload) std::abort();
      } catch (const FormatError&) {
      }
      break;
    }
    default:
      device::PackedCode::unpack(bytes);
  }
  return 0;
}
