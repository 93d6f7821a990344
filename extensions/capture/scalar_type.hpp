// Types of kernel arguments as the source writes them, and values as a problem file writes them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ergotune::capture {

/// "float4" -> "float32"; "unsigned int" -> "uint32"; empty for what is no number or vector of numbers.
std::string_view element_of(std::string_view source_type);
std::size_t bytes_of(std::string_view element);

/// One number of an element type, so that reading it gives the same bits; empty where TOML has no such number (a NaN,
/// what lies beyond 64-bit signed integers).
std::string number_text(std::string_view element, std::span<const std::byte> bytes);

/// Text in TOML's quotes.
std::string toml_text(std::string_view text);

}  // namespace ergotune::capture
