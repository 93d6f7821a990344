// Converts names and units of Kernel Tuner, which uses ms and MHz, to ours, which are SI.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ergotune/result.hpp"
#include "ergotune/space.hpp"
#include "store/formats/recording.hpp"

namespace ergotune {

/// Factor that converts a value recorded under this key to SI units.
double cache_scale(std::string_view key);

/// Whether a tuner or observer recorded this key; all others are metrics of the user.
bool is_observed(std::string_view key);

/// Status for "CompilationFailedConfig" and similar texts; nullopt for any other text.
std::optional<Status> status_from_cache(std::string_view text);
/// The inverse: Kernel Tuner's text for a status.
std::string status_for_cache(Status status);

/// Renames columns to our names: core_freq -> core_clock, nvml_energy -> energy. If several could be the energy, an
/// external meter takes precedence over the GPU's own sensor, and both over a user's metric; the others keep their
/// names. Returns notes for the user.
std::vector<std::string> rename_columns(std::vector<RecordedColumn>& columns);

/// Our name of a recorded objective, after rename_columns().
std::string renamed(const std::string& key);

/// Whether rename_columns() can assign this name: "energy", "core_clock" ...
bool renamed_target(std::string_view name);

/// A parameter from its recorded name, which determines its kind: nvml_gr_clock, nvml_mem_clock, nvml_pwr_limit.
Parameter recorded_parameter(const std::string& name);

/// Kernel Tuner's name of one of our quantities: core_clock -> core_freq; energy -> nvml_energy or ps_energy, depending
/// on its sensor. Values under that name are in the units that cache_scale() converts.
std::string cache_name(const std::string& name, const Quantity& quantity);

/// "2023-12-21 10:44:42.236642+00:00"
std::string cache_time_stamp(double seconds_since_epoch);

}  // namespace ergotune
