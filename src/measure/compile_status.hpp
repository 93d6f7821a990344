// What a failure to compile means for a configuration.
#pragma once

#include <exception>

#include "ergotune/result.hpp"

namespace ergotune {

/// unsupported or timeout where the device says so, else compile_error.
Status compile_status(const std::exception& error);

}  // namespace ergotune
