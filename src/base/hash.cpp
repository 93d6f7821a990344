#include "base/hash.hpp"

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <vector>

namespace ergotune {

std::uint64_t hash64(std::string_view data, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data.data(), data.size(), seed);
}

namespace {

std::string digits(XXH128_hash_t hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }

}  // namespace

std::string content_hash(std::string_view data) { return digits(XXH3_128bits(data.data(), data.size())); }

std::string content_hash_of(std::size_t bytes, const std::function<void(std::span<std::uint8_t>, std::size_t)>& read) {
  constexpr std::size_t kPart = std::size_t{16} << 20;
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::vector<std::uint8_t> part(std::min(bytes, kPart));
  for (std::size_t at = 0; at < bytes; at += part.size()) {
    part.resize(std::min(kPart, bytes - at));
    read(part, at);
    XXH3_128bits_update(state.get(), part.data(), part.size());
  }
  return digits(XXH3_128bits_digest(state.get()));
}

std::optional<std::string> content_hash_of_file(const std::filesystem::path& file) {
  std::error_code failed;
  std::ifstream in(file, std::ios::binary);
  if (!in || std::filesystem::is_directory(file, failed)) return std::nullopt;
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::vector<char> part(1 << 20);
  while (in) {
    in.read(part.data(), static_cast<std::streamsize>(part.size()));
    XXH3_128bits_update(state.get(), part.data(), static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) return std::nullopt;
  return digits(XXH3_128bits_digest(state.get()));
}

}  // namespace ergotune
