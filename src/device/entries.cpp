#include "device/entries.hpp"

namespace ergotune::device {

std::string gpu_uuid(std::span<const unsigned char, 16> bytes) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

}  // namespace ergotune::device
