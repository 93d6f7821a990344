// Wisdom: files with the best known configurations by device, size and source, which applications ship; and the
// selection from them.
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

/// The properties by which devices are compared. Empty or 0: unknown.
struct WisdomDevice {
  std::string name;          ///< "NVIDIA H100 80GB HBM3"
  std::string backend;       ///< "cuda", "hip", "opencl", "host"
  std::string vendor;        ///< "nvidia", "amd", "intel", "arm"; CPUs: "intel cpu"
  std::string architecture;  ///< "sm_90", "gfx90a"; CPUs: "x86_64"
  std::string uuid, driver;
  std::int64_t memory_bytes = 0, multiprocessors = 0;
  friend bool operator==(const WisdomDevice&, const WisdomDevice&) = default;
};

/// A quantity in SI units with its standard error and the number of samples.
struct WisdomQuantity {
  double value = 0, standard_error = 0;
  std::int64_t n = 0;
  friend bool operator==(const WisdomQuantity&, const WisdomQuantity&) = default;
};

/// One result: the best configuration of a kernel for an objective, a device and a problem size.
struct WisdomRecord {
  Constants configuration;  ///< code parameters by name
  Constants execution;      ///< clocks and limits at which it was measured (not set by default)
  std::vector<std::int64_t> problem_size;
  std::vector<std::string> size_names;  ///< names of the constants that give the sizes; may be empty
  std::string objective = "time";       ///< as the user wrote it
  bool maximise = false;
  std::optional<double> score;  ///< value of the objective in SI units; nullopt for a Pareto front
  bool of_round = false;        ///< score and quantities are those of a round of several kernels
  std::map<std::string, WisdomQuantity> quantities;
  WisdomDevice device;
  std::string source_hash;  ///< hash of everything that determines the code; empty: unknown, so that the record never
                            ///< becomes stale
  std::string space_hash;   ///< hash of parameters and restrictions
  std::string provenance = "measured";
  int confirmation_repeats = 0;                   ///< 0: not confirmed
  std::string version, compiler, host, tuned_at;  ///< ergotune's version; tuned_at as "2026-11-22T08:00:00Z"
  friend bool operator==(const WisdomRecord&, const WisdomRecord&) = default;
};
/// Quantity of a record: the factor by which its objective is better than that of the default configuration.
inline constexpr const char* kGainOverDefault = "gain_over_default";
/// The value of a quantity of the record; 0 if there is none.
double quantity_of(const WisdomRecord& record, const std::string& name);

/// The records of a file. Parts that could not be read cause warnings with their place, not an error.
struct Wisdom {
  std::string kernel;
  std::vector<WisdomRecord> records;
  std::vector<std::string> warnings;
  /// True if the file was written by another version of ergotune, or contains appended data of another version; such
  /// data is left out.
  bool other_version = false;
};

/// Returns FOLDER/<kernel>.wisdom; characters other than letters, digits, "_", "-" and "." become "_".
std::filesystem::path wisdom_file(const std::filesystem::path& folder, std::string_view kernel);
/// Parses ergotune's format or Kernel Launcher's 1.0, which are distinguished by content. `name` is used in warnings. A
/// last line without a line end is still being written and is ignored.
Wisdom parse_wisdom(std::string_view text, const std::string& name);
/// Returns nullopt if the file does not exist; an unreadable file yields an empty Wisdom with a warning.
std::optional<Wisdom> read_wisdom(const std::filesystem::path& file);
/// Returns all *.wisdom files of a folder, sorted, or the given file. Throws UserError if there are none.
std::vector<std::filesystem::path> wisdom_files(const std::filesystem::path& folder_or_file);
/// Makes a simulated record one of a simulated device, whose name begins with "simulated ", and the other way round:
/// formats without provenance have the name only, and an import can rename the device.
void mark_simulated(WisdomRecord& record);
/// Returns one JSON document without a line end.
std::string to_json_line(const WisdomRecord& record);
/// Returns the text of a file: a header and one line per record.
std::string to_text(const Wisdom& wisdom);
/// Converts to Kernel Launcher's format 1.0: records of one objective (time in ms), at most five per device and size,
/// best first. Records whose parameters differ from those of the first, and simulated or modelled ones, are left out,
/// with a warning in `notes`.
std::string to_kernel_launcher(Wisdom wisdom, std::vector<std::string>& notes);

/// Adds records to FOLDER/<kernel>.wisdom, which is created if necessary, except for those that it already contains.
/// One of the same device (name, UUID), size, configuration, objective and source replaces an earlier one. The file is
/// replaced atomically under a lock between processes, so that readers see the old or the new file, and concurrent
/// writers lose nothing. Damaged lines are kept. Returns the number of new records. Throws UserError if the file cannot
/// be written, or belongs to another version, in which case it is left unchanged.
std::size_t add_to_wisdom(const std::filesystem::path& folder, const std::string& kernel,
                          const std::vector<WisdomRecord>& records);

/// Similarity of a record to a request, nearest first.
enum class WisdomMatch { exact, near_size, architecture, vendor, none };
std::string to_string(WisdomMatch match);

/// Number of doublings, over all dimensions, up to which a size counts as near: a factor of 256.
inline constexpr double kMaxSizeDistance = 8;

struct WisdomRequest {
  WisdomDevice device;
  /// Missing dimensions match any size; an empty list matches all.
  std::vector<std::int64_t> problem_size;
  /// Hash of the present source; records of another source are stale. Empty: not compared.
  std::string source_hash;
  /// Preferred objective if there is a choice; empty: the objective of the newest record.
  std::string objective;
  /// Returns why a record's configuration cannot be used ("block_size_x 7 is no value of it"); empty if it can. Null:
  /// all can be used.
  std::function<std::string(const WisdomRecord&)> refuse;
  double reach = kMaxSizeDistance;
};

struct WisdomChoice {
  /// One of the given records; null: use the default configuration.
  const WisdomRecord* record = nullptr;
  WisdomMatch match = WisdomMatch::none;
  double distance = 0;  ///< number of doublings between the sizes
  std::string reason;   ///< reason for the choice, a sentence for users
  std::size_t stale = 0, refused = 0;
  std::size_t simulated = 0;  ///< records of simulated devices that are not the requested one
};

/// Returns the Euclidean length of the base-2 logarithms of the ratios of sizes; dimensions missing in `record` count
/// as 1.
double size_distance(const std::vector<std::int64_t>& request, const std::vector<std::int64_t>& record);

/// Selects a record by, in this order: the same device, then the same architecture, then the same vendor; the nearest
/// size; measured rather than modelled; the requested objective; the best score; the newest. A simulated record
/// is selected for the simulated device itself only. The result does not depend on the order of the records.
WisdomChoice select_wisdom(const std::vector<WisdomRecord>& records, const WisdomRequest& request);

}  // namespace ergotune
