// One configuration, the same way a search measures it.
#pragma once

#include "tune/session/session_setup.hpp"

namespace ergotune {

struct SingleMeasurement {
  Measurement measurement;
  bool known = false;  ///< told from the store
};

/// Measures it, or tells what the store knows. Where results are compared with the first correct configuration's, the
/// default's is the one that is trusted. Throws what evaluator and store throw.
SingleMeasurement measure_one(PreparedSession& prepared, ConfigurationIndex index);

/// Position of the configuration in which parameters have these values, and those left out their defaults. Throws
/// UserError for a parameter that there is not; nullopt for a configuration that is not in the space.
std::optional<ConfigurationIndex> index_of_values(const PreparedSession& prepared,
                                                  const std::map<std::string, Value>& values);

}  // namespace ergotune
