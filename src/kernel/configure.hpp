// Evaluates a configuration for one kernel on one device: scope of names, compile job, launch geometry, scalars.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"

namespace ergotune {

struct Argument;
struct Kernel;
struct Launch;
struct Problem;

/// Variables of a workload's loops at one place; 0 for variables of loops that do not enclose it.
using LoopVariables = std::map<std::string, Value, std::less<>>;

/// Names and values for expressions: loop variables, parameters of a configuration, constants. Inside of a named
/// kernel, its own parameters are used without the kernel's name.
class ConfigurationScope {
 public:
  ConfigurationScope(const std::vector<Parameter>& parameters, const Configuration& values, const Constants& constants,
                     std::string_view kernel = {}, const LoopVariables* loops = nullptr)
      : parameters_(&parameters), values_(&values), constants_(&constants), kernel_(kernel), loops_(loops) {}
  const Value* find(std::string_view name) const;
  /// Returns a scope that refers to this object.
  Scope scope() const {
    return [this](std::string_view name) { return find(name); };
  }

 private:
  const std::vector<Parameter>* parameters_;
  const Configuration* values_;
  const Constants* constants_;
  std::string_view kernel_;
  const LoopVariables* loops_;
};

/// Returns the name of a parameter's macro in the kernel's source; empty for a parameter that the source does not see
/// (an execution parameter, or one of another kernel or of the workload).
std::string_view macro_name(const Kernel& kernel, const Parameter& parameter);
/// Returns the indices in Problem::parameters of the parameters on which the compiled code of `kernel` depends.
std::vector<std::size_t> code_parameters(const Problem& problem, const Kernel& kernel);
/// Returns the names of the buffers that are passed to kernels in a configuration.
std::set<std::string> passed_buffers(const Problem& problem, const Constants& constants,
                                     const Configuration& configuration);

/// Returns the job that compiles `kernel` (the problem's or a reference). Code parameters and constants become macros
/// (booleans as 1 and 0, strings unquoted); device properties and execution parameters do not.
CompileJob make_compile_job(const Problem& problem, const Kernel& kernel, const DeviceInfo& device,
                            const Constants& constants, const Configuration& configuration);

/// Returns a kernel's arguments; for a reference without arguments, those of the problem's kernel.
const std::vector<Argument>& arguments_of(const Problem& problem, const Kernel& kernel);

/// Returns grid and block; a global size is rounded up to whole blocks. Throws UserError for a size below 1 or above
/// 2^32.
LaunchGeometry make_geometry(const Launch& launch, const Scope& scope);

/// Returns the size in bytes of a local memory argument; 0 is allowed. Throws UserError for a negative count or more
/// than 2^32 bytes.
std::size_t local_bytes(const Argument& argument, const Scope& scope);

/// Returns "block=64 unroll=2" for messages; equal values give equal text.
std::string values_text(const Constants& values);

/// Returns the default of each parameter, else its first value, without checking that the configuration is valid.
Configuration default_values(const Problem& problem);

}  // namespace ergotune
