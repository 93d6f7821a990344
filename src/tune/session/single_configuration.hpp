// One configuration of a prepared session: named by a user, and measured in the same way as by a search.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tune/session/session_setup.hpp"

namespace ergotune {

/// The configuration with these parameter values; parameters left out take their defaults. Throws UserError for an
/// unknown parameter.
Configuration configuration_of(const std::map<std::string, Value>& values, const std::vector<Parameter>& parameters);

/// configuration_of() with the values of a text such as "BLOCK=64, TILE=2" or of a JSON object (empty: none).
Configuration configuration_of_text(const std::string& text, const std::vector<Parameter>& parameters);

/// Throws UserError for a configuration that is not in the space, with the value or restriction that keeps it out.
ConfigurationIndex index_in_space(const PreparedSession& prepared, const Configuration& configuration);

/// The index of configuration_of_text(). Throws UserError as both do.
ConfigurationIndex named_configuration(const PreparedSession& prepared, const std::string& text);

struct SingleMeasurement {
  Measurement measurement;
  bool known = false;  ///< the result is from the store
};

/// Measures a configuration, or returns its stored result. If outputs are compared with those of the first correct
/// configuration, the default's are used. Throws whatever evaluator and store throw.
SingleMeasurement measure_one(PreparedSession& prepared, ConfigurationIndex index);

}  // namespace ergotune
