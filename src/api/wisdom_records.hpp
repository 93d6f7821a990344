// Stored results as wisdom: what `export --format wisdom` and `tune --wisdom` write.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernel/wisdom.hpp"

namespace ergotune {

/// The best of every session (0) or of one, by the kernels' names; of a recording what it knows. Throws UserError where
/// nothing has worked.
std::map<std::string, std::vector<WisdomRecord>> wisdom_of(const std::filesystem::path& results, std::int64_t session,
                                                           const std::optional<std::string>& objective);

/// Makes the folder, and throws UserError where nothing can be written to it: before hours are spent on what goes
/// there.
void refuse_unwritable(const std::filesystem::path& folder);

/// One file that was written.
struct WrittenWisdom {
  std::filesystem::path file;
  std::string kernel;
  std::size_t records = 0, added = 0;
  std::string provenance;  ///< of the last record: "measured", "simulated" ...
};
/// Adds all of it to the files of a folder.
std::vector<WrittenWisdom> write_wisdom(const std::filesystem::path& folder,
                                        const std::map<std::string, std::vector<WisdomRecord>>& wisdom);

}  // namespace ergotune
