// Converts stored results to wisdom, for `export --format wisdom` and `tune --wisdom`.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernel/wisdom.hpp"
#include "power/controls/control.hpp"

namespace ergotune {

/// The best result of each session (`session` 0) or of one, as records by kernel name. A recording provides only the
/// fields that it contains. The records are in the order in which their sessions were worked on. Throws UserError if no
/// configuration worked.
std::map<std::string, std::vector<WisdomRecord>> wisdom_of(const std::filesystem::path& results, std::int64_t session,
                                                           const std::optional<std::string>& objective);

/// Which kernels have records of several versions of their source, for one device and size.
std::vector<std::string> notes_of_sources(const std::map<std::string, std::vector<WisdomRecord>>& wisdom);

/// Creates the folder. Throws UserError if it cannot be written to, so that this is reported before a long search.
void refuse_unwritable(const std::filesystem::path& folder);

/// A wisdom file that was written.
struct WrittenWisdom {
  std::filesystem::path file;
  std::string kernel;
  std::size_t records = 0, added = 0;
  std::string provenance;  ///< of the last record: "measured", "simulated" ...
};
/// Adds all records to the files of a folder, one file per kernel.
std::vector<WrittenWisdom> write_wisdom(const std::filesystem::path& folder,
                                        const std::map<std::string, std::vector<WisdomRecord>>& wisdom);

/// The devices whose settings the control changes: a GPU may be one of CUDA and one of OpenCL. Throws UserError for
/// none.
std::vector<WisdomDevice> devices_of(const Control& control);

}  // namespace ergotune
