// The configuration that a user names.
#pragma once

#include <string>

#include "tune/session/session_setup.hpp"

namespace ergotune {

/// The configuration in a JSON object (empty: the default); omitted parameters take their defaults. `file`: the
/// problem's file, for messages. Throws UserError for an unknown parameter, and for a configuration outside the space,
/// with the value or restriction that excludes it.
ConfigurationIndex named_configuration(const PreparedSession& prepared, const std::string& json,
                                       const std::string& file);

}  // namespace ergotune
