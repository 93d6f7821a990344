// Bytes from a worker whose memory a kernel may have overwritten: nothing but messages and FormatError may come out,
// and what is read must be written back the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "evaluate/live/worker_protocol.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ergotune;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    FrameCutter cutter(protocol::kKind);
    // The first byte says where the stream is cut in two.
    const std::size_t cut = size > 0 ? data[0] % (size + 1) : 0;
    cutter.append(bytes.substr(0, cut));
    while (const auto frame = cutter.next()) protocol::decode(*frame);
    cutter.append(bytes.substr(cut));
    while (const auto frame = cutter.next()) protocol::decode(*frame);
  } catch (const FormatError&) {
  }
  if (size == 0) return 0;
  try {
    const auto type = static_cast<std::uint8_t>(data[0] % (std::variant_size_v<protocol::Message> + 1));
    const std::string frame = protocol::encode(protocol::decode({type, bytes.substr(1)}));
    if (protocol::encode(protocol::decode({type, std::string_view(frame).substr(kFrameHeader)})) != frame) std::abort();
  } catch (const FormatError&) {
  }
  return 0;
}
