// Wisdom: what was found best, on which device, for which size and source, in files that applications carry with them;
// and the choice among it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

struct DeviceInfo;

/// What makes devices alike. Empty or 0: not known.
struct WisdomDevice {
  std::string name;          ///< "NVIDIA H100 80GB HBM3"
  std::string backend;       ///< "cuda", "hip", "opencl", "host"
  std::string vendor;        ///< "nvidia", "amd", "intel", "arm"; of a processor "intel cpu"
  std::string architecture;  ///< "sm_90", "gfx90a", of a processor "x86_64"
  std::string uuid, driver;
  std::int64_t memory_bytes = 0, multiprocessors = 0;
  friend bool operator==(const WisdomDevice&, const WisdomDevice&) = default;
};

/// A quantity in SI units, with its standard error and the number of readings.
struct WisdomQuantity {
  double value = 0, standard_error = 0;
  std::int64_t n = 0;
  friend bool operator==(const WisdomQuantity&, const WisdomQuantity&) = default;
};

/// One result: the best configuration of a kernel for an objective, on a device, for a size.
struct WisdomRecord {
  Constants configuration;  ///< code parameters by name
  Constants execution;      ///< clocks and limits it ran with: a hint, which the launcher never sets
  std::vector<std::int64_t> problem_size;
  std::vector<std::string> size_names;  ///< the constants that the sizes are; may be empty
  std::string objective = "time";       ///< as the user wrote it
  bool maximise = false;
  std::optional<double> score;  ///< of the objective, in SI units; none for a front
  std::map<std::string, WisdomQuantity> quantities;
  WisdomDevice device;
  std::string source_hash;  ///< of all that the code is made of; empty where not known: then it cannot go stale
  std::string space_hash;   ///< of parameters and restrictions
  std::string provenance = "measured";
  int confirmation_repeats = 0;                   ///< 0: not confirmed
  std::string version, compiler, host, tuned_at;  ///< ergotune's version; tuned_at as "2026-11-22T08:00:00Z"
  friend bool operator==(const WisdomRecord&, const WisdomRecord&) = default;
};

/// A file of records. What could not be read of it is a warning with its place, never an error.
struct Wisdom {
  std::string kernel;
  std::vector<WisdomRecord> records;
  std::vector<std::string> warnings;
  /// Another version of ergotune's wrote it, or the part that was put behind ours: what it holds is left out.
  bool other_version = false;
};

/// DIR/<kernel>.wisdom; characters other than letters, digits, "_", "-" and "." become "_".
std::filesystem::path wisdom_file(const std::filesystem::path& folder, std::string_view kernel);
/// Ours or Kernel Launcher's 1.0, told apart by content. `name` is for warnings. A line without an end is being
/// written: it is left out without a word.
Wisdom parse_wisdom(std::string_view text, const std::string& name);
/// nullopt where there is no such file; one that cannot be read is an empty Wisdom with a warning.
std::optional<Wisdom> read_wisdom(const std::filesystem::path& file);
/// Every *.wisdom of a folder, sorted, or the one file. Throws UserError where there is neither.
std::vector<std::filesystem::path> wisdom_files(const std::filesystem::path& folder_or_file);
/// One JSON document, without an end of line.
std::string to_json_line(const WisdomRecord& record);
/// The file's text: a header and a line per record.
std::string to_text(const Wisdom& wisdom);
/// Kernel Launcher's 1.0: records of one objective (time in ms), at most five per device and size, the best first.
/// Records with other parameters than the first's are left out, with a warning in `notes`.
std::string to_kernel_launcher(const Wisdom& wisdom, std::vector<std::string>& notes);

/// Adds records to DIR/<kernel>.wisdom, which is made where it is not there; those that it has already are not added
/// again. The file is replaced as a whole under a lock between processes, so that readers see the old one or the new,
/// and nothing is lost when several write. Damaged lines stay as they are. Returns how many were new. Throws UserError
/// where it cannot be written, and for a file of another version, which is left as it is.
std::size_t add_to_wisdom(const std::filesystem::path& folder, const std::string& kernel,
                          const std::vector<WisdomRecord>& records);

/// How near a record is to what was requested, nearest first.
enum class WisdomMatch { exact, near_size, architecture, vendor, none };
std::string to_string(WisdomMatch match);

/// Doublings, over all dimensions, within which a size counts as near: a factor of 256.
inline constexpr double kWisdomReach = 8;

struct WisdomRequest {
  WisdomDevice device;
  /// Dimensions that are not given match any; none given: any size.
  std::vector<std::int64_t> problem_size;
  /// Of the source at hand; records of another source are stale. Empty: not asked.
  std::string source_hash;
  /// Preferred where there is a choice; empty: that of the newest record.
  std::string objective;
  /// What is wrong with a configuration here ("block_size_x 7 is no value of it"); empty: nothing. Null: everything
  /// goes.
  std::function<std::string(const WisdomRecord&)> refuse;
  double reach = kWisdomReach;
};

struct WisdomChoice {
  /// Of the records that were given; null: the default configuration is to be used.
  const WisdomRecord* record = nullptr;
  WisdomMatch match = WisdomMatch::none;
  double distance = 0;  ///< doublings between the sizes
  std::string reason;   ///< a sentence for people
  std::size_t stale = 0, refused = 0;
};

/// Euclidean length of the base-2 logarithms of the sizes' ratios; a dimension that `record` does not have is 1 there.
double size_distance(const std::vector<std::int64_t>& request, const std::vector<std::int64_t>& record);

/// The one choice: this device before its architecture before its vendor; the nearest size; measured before simulated;
/// the objective requested; the best score; the newest. A function of its arguments alone, whatever the order of the
/// records.
WisdomChoice select_wisdom(const std::vector<WisdomRecord>& records, const WisdomRequest& request);

}  // namespace ergotune
