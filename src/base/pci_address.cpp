#include "base/pci_address.hpp"

#include <fmt/format.h>

#include <charconv>
#include <vector>

namespace ergotune {

std::string normalise_pci_address(std::string_view address) {
  // Split at ':' and '.': [domain:]bus:device[.function]
  unsigned function = 0;
  if (const auto dot = address.rfind('.'); dot != std::string_view::npos) {
    const auto digits = address.substr(dot + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), function, 16);
    if (error != std::errc{} || end != digits.data() + digits.size()) return {};
    address = address.substr(0, dot);
  }
  std::vector<unsigned> parts;
  while (true) {
    const auto colon = address.find(':');
    const auto digits = address.substr(0, colon);
    unsigned value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) return {};
    parts.push_back(value);
    if (colon == std::string_view::npos) break;
    address = address.substr(colon + 1);
  }
  if (parts.size() == 2) parts.insert(parts.begin(), 0u);
  if (parts.size() != 3) return {};
  return fmt::format("{:08x}:{:02x}:{:02x}.{:x}", parts[0], parts[1], parts[2], function);
}

}  // namespace ergotune
