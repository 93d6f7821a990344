// Bytes from a worker that a kernel may have trampled on: nothing but messages and ProtocolError may come
// out, and what is read must be written back the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "evaluate/live/protocol.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ergotune::protocol;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    FrameReader reader;
    // The first byte says where the stream is cut in two.
    const std::size_t cut = size > 0 ? data[0] % (size + 1) : 0;
    reader.append(bytes.substr(0, cut));
    while (reader.next()) {
    }
    reader.append(bytes.substr(cut));
    while (reader.next()) {
    }
  } catch (const ProtocolError&) {
  }
  if (size > 0) {
    try {
      const auto type = static_cast<std::uint8_t>(data[0] % 9);
      const Message message = decode(type, bytes.substr(1));
      const std::string frame = encode(message);
      if (encode(decode(type, std::string_view(frame).substr(12))) != frame) std::abort();
    } catch (const ProtocolError&) {
    }
  }
  return 0;
}
