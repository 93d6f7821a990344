// Whole files, read and written in one go.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ergotune {

/// The most that a file of text from elsewhere may have (a problem, a source, wisdom).
inline constexpr std::size_t kLargestText = std::size_t{256} << 20;

/// The file's bytes; nullopt, with errno saying why, when it cannot be read (a folder cannot) or has more than `most`
/// (EFBIG).
std::optional<std::string> read_file(const std::filesystem::path& file, std::size_t most = kLargestText);

/// Written whole or not at all: into a file of its own beside it, which then takes its place. Returns 0 or
/// errno; what stood there before is left as it was when it fails. A symbolic link stays one; what is no file (a pipe,
/// /dev/stdout) is written to.
int write_file(const std::filesystem::path& file, std::string_view bytes);

/// The same for a file that a user has named: throws UserError that says what is wrong with it.
void write_named_file(const std::filesystem::path& file, std::string_view bytes);

/// The folder of a file; of a link, of what it leads to: what stands beside a file stands there.
std::filesystem::path folder_of(const std::filesystem::path& file);

/// The name of the network filesystem that a folder is on ("NFS"); empty for a local one and for those that cannot be
/// recognised (FUSE).
std::string network_filesystem(const std::filesystem::path& folder);

/// Files and folders of `folder` whose names begin with `prefix` and that were not written to for `age`. None where the
/// folder cannot be read.
std::vector<std::filesystem::path> left_behind(const std::filesystem::path& folder, std::string_view prefix,
                                               std::chrono::hours age);

}  // namespace ergotune
