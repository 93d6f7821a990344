// Base64 (RFC 4648) for binary data in JSON documents.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

std::string base64_encode(std::span<const std::uint8_t> bytes);
/// Throws Error for an invalid character.
std::vector<std::uint8_t> base64_decode(std::string_view text);

}  // namespace ergotune
