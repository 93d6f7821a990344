// Content hashes, for cache keys and session identity. Not cryptographic.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ergotune {

/// XXH3, 64 bits.
std::uint64_t hash64(std::string_view data, std::uint64_t seed = 0);
/// XXH3, 128 bits, as 32 hexadecimal digits: the form stored in files.
std::string content_hash(std::string_view data);
/// Returns content_hash() of `bytes` bytes; `read` fills a span with the bytes from an offset on.
std::string content_hash_of(std::size_t bytes, const std::function<void(std::span<std::uint8_t>, std::size_t)>& read);
/// Returns content_hash() of a file of any size; nullopt if it cannot be read.
std::optional<std::string> content_hash_of_file(const std::filesystem::path& file);

}  // namespace ergotune
