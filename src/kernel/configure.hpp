// What a configuration means for one kernel on one device: its scope of names, compile job, launch geometry,
// scalars.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ergotune/device/device.hpp"
#include "ergotune/problem/problem.hpp"

namespace ergotune {

/// Names and values for expressions: a configuration's parameters before constants.
class ConfigurationScope {
 public:
  ConfigurationScope(const std::vector<Parameter>& parameters, const Configuration& values,
                     const Constants& constants)
      : parameters_(&parameters), values_(&values), constants_(&constants) {}
  const Value* find(std::string_view name) const;
  /// Refers to this object.
  Scope scope() const {
    return [this](std::string_view name) { return find(name); };
  }

 private:
  const std::vector<Parameter>* parameters_;
  const Configuration* values_;
  const Constants* constants_;
};

/// The job that compiles `kernel` (the problem's own or a reference). Code parameters and constants become
/// macros: booleans 1 and 0, strings as they are; device properties and execution parameters do not.
CompileJob make_compile_job(const Problem& problem, const Kernel& kernel, const DeviceInfo& device,
                            const Constants& constants, const Configuration& configuration);

/// Grid and block; a global size is rounded up to whole blocks. Throws UserError for a size below 1 or beyond
/// 2^32.
LaunchGeometry make_geometry(const Launch& launch, const Scope& scope);

/// Where every parameter takes its default, else its first value; whether that is a valid configuration is
/// not asked.
Configuration default_values(const Problem& problem);

}  // namespace ergotune
