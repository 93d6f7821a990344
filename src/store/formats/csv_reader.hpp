// Results as comma-separated values: parameters, then "status", then quantities and metrics in SI units.
#pragma once

#include <filesystem>

#include "store/formats/recording.hpp"

namespace ergotune {

/// Columns before "status" are parameters; without one, those before the first known quantity ("time",
/// "energy" ...). "X_standard_error" and "X_n" belong to X. Throws UserError with line.
Recording read_csv(const std::filesystem::path& file);

}  // namespace ergotune
