// The configuration that a user names.
#pragma once

#include <string>

#include "tune/session/session_setup.hpp"

namespace ergotune {

/// The configuration of a JSON object; parameters that it leaves out take their defaults. Throws UserError.
Configuration configuration_of_json(const std::string& text, const std::vector<Parameter>& parameters);

/// The configuration of a JSON object (empty: nothing is named); parameters that it leaves out take their defaults.
/// `file` is the problem's, for the message. Throws UserError for an unknown parameter, and for a configuration that is
/// not in the space, with the value or restriction that keeps it out.
ConfigurationIndex named_configuration(const PreparedSession& prepared, const std::string& json,
                                       const std::string& file);

}  // namespace ergotune
