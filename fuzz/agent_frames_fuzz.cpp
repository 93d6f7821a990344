// Bytes from a node that may be cut, damaged, or another program's altogether: nothing but messages and FormatError may
// come out, and what is read must be written back the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "cluster/agent_protocol.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ergotune;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = size > 0 ? data[0] % (size + 1) : 0;
  for (const std::size_t preamble : {std::size_t{0}, agents::kPreamble}) {
    try {
      FrameCutter cutter(agents::kKind, preamble);
      cutter.append(bytes.substr(0, cut));
      while (const auto frame = cutter.next()) agents::decode(*frame);
      cutter.append(bytes.substr(cut));
      while (const auto frame = cutter.next()) agents::decode(*frame);
    } catch (const FormatError&) {
    }
  }
  if (size == 0) return 0;
  try {
    const auto type = static_cast<std::uint8_t>(data[0] % (std::variant_size_v<agents::Message> + 2));
    const agents::Message message = agents::decode({type, bytes.substr(1)});
    const std::string frame = agents::encode(message);
    if (agents::encode(agents::decode({type, std::string_view(frame).substr(kFrameHeader)})) != frame) std::abort();
  } catch (const FormatError&) {
  }
  return 0;
}
