// Reads and writes complete files.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

/// Maximum size in bytes of a text file from outside (problem, source, wisdom).
inline constexpr std::size_t kLargestText = std::size_t{256} << 20;

/// Returns the contents of a file; nullopt, with errno set, if it cannot be read (folders cannot) or is larger than
/// `most` (EFBIG).
std::optional<std::string> read_file(const std::filesystem::path& file, std::size_t most = kLargestText);

/// Writes a file atomically: writes a new file next to it, which then replaces it. Returns 0 or errno; on failure, the
/// previous file is unchanged. Symbolic links are kept; pipes and devices (/dev/stdout) are written to directly.
int write_file(const std::filesystem::path& file, std::string_view bytes);

/// Does the same for a file that a user has named: throws UserError with the reason on failure.
void write_named_file(const std::filesystem::path& file, std::string_view bytes);

/// Returns the folder of a file; for a symbolic link, of its target, since related files are next to the target.
std::filesystem::path folder_of(const std::filesystem::path& file);

/// Returns the name of the network file system of a folder ("NFS"); empty for local file systems, and for those that
/// cannot be recognised (FUSE).
std::string network_filesystem(const std::filesystem::path& folder);

/// Returns files and folders in `folder` whose names begin with `prefix` and that have not been modified for `age`.
/// Empty if the folder cannot be read.
std::vector<std::filesystem::path> left_behind(const std::filesystem::path& folder, std::string_view prefix,
                                               std::chrono::hours age);

}  // namespace ergotune
