// Messages between a supervisor and whoever asks it: 8 bytes of length, then the bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ergotune::supervising {

inline constexpr std::uint64_t kLargestFrame = 1ull << 30;
/// s that ending all processes may take.
inline constexpr double kLongestEnd = 10;

/// False when the other end is closed.
bool send_frame(int socket, const std::string& payload);
std::optional<std::string> receive_frame(int socket);

}  // namespace ergotune::supervising
