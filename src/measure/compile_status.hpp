// Maps a compilation error to the status of a configuration.
#pragma once

#include <exception>

#include "ergotune/result.hpp"

namespace ergotune {

/// Returns unsupported or timeout if the device reports one of these, else compile_error.
Status compile_status(const std::exception& error);

}  // namespace ergotune
