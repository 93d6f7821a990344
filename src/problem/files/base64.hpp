// Binary data inside JSON documents (RFC 4648).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

std::string base64_encode(std::span<const std::uint8_t> bytes);
/// Throws Error on a character that does not belong there.
std::vector<std::uint8_t> base64_decode(std::string_view text);

}  // namespace ergotune
