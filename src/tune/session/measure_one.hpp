// Measures one configuration in the same way as a search.
#pragma once

#include "tune/session/session_setup.hpp"

namespace ergotune {

struct SingleMeasurement {
  Measurement measurement;
  bool known = false;  ///< the result is from the store
};

/// Measures a configuration, or returns its stored result. If outputs are compared with those of the first correct
/// configuration, the default's are used. Throws whatever evaluator and store throw.
SingleMeasurement measure_one(PreparedSession& prepared, ConfigurationIndex index);

/// The configuration with these parameter values; omitted parameters take their defaults. Throws UserError for an
/// unknown parameter; nullopt if the configuration is not in the space.
std::optional<ConfigurationIndex> index_of_values(const PreparedSession& prepared,
                                                  const std::map<std::string, Value>& values);

}  // namespace ergotune
