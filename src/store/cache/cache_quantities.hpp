// Kernel Tuner's names and units, and ours. Its own are ms and MHz; everything is SI from here on.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ergotune/result.hpp"
#include "ergotune/space.hpp"
#include "store/formats/recording.hpp"

namespace ergotune {

/// Factor that brings a value recorded under this key to SI units.
double cache_scale(std::string_view key);

/// True for what tuners and observers record themselves; everything else is a metric of the user's.
bool is_observed(std::string_view key);

/// Status for "CompilationFailedConfig" and its like; nullopt for other text.
std::optional<Status> status_from_cache(std::string_view text);
/// The other way round: what Kernel Tuner understands.
std::string status_for_cache(Status status);

/// Gives the columns our names: core_freq -> core_clock, nvml_energy -> energy. Where several could be the
/// energy, the external meter goes before the GPU's own sensor and both before a user's metric; the others
/// keep their names. Returns remarks for the user.
std::vector<std::string> rename_columns(std::vector<RecordedColumn>& columns);

/// Our name of a recorded objective, once the columns have theirs.
std::string renamed(const std::string& key);

/// True for the names that renaming gives: "energy", "core_clock" ...
bool renamed_target(std::string_view name);

/// A parameter of which only its recorded name is known, which tells its kind: nvml_gr_clock, nvml_mem_clock,
/// nvml_pwr_limit.
Parameter recorded_parameter(const std::string& name);

/// Kernel Tuner's name of one of our quantities: core_clock -> core_freq, energy -> nvml_energy or ps_energy
/// by its sensor. Values under it are in the units that cache_scale() knows.
std::string cache_name(const std::string& name, const Quantity& quantity);

/// "2023-12-21 10:44:42.236642+00:00"
std::string cache_time_stamp(double seconds_since_epoch);

}  // namespace ergotune
