// What a configuration means for one kernel on one device: its scope of names, compile job, launch geometry,
// scalars.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "ergotune/problem.hpp"

namespace ergotune {

/// The variables of a workload's loops where it stands; 0 for those whose loop is elsewhere.
using LoopVariables = std::map<std::string, Value, std::less<>>;

/// Names and values for expressions: variables of loops, a configuration's parameters, constants. Inside a kernel with
/// a name, its own parameters go without it.
class ConfigurationScope {
 public:
  ConfigurationScope(const std::vector<Parameter>& parameters, const Configuration& values, const Constants& constants,
                     std::string_view kernel = {}, const LoopVariables* loops = nullptr)
      : parameters_(&parameters), values_(&values), constants_(&constants), kernel_(kernel), loops_(loops) {}
  const Value* find(std::string_view name) const;
  /// Refers to this object.
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

/// What a kernel's source sees of a parameter: the macro's name; empty for what it does not see (an execution
/// parameter, one that belongs to another kernel or to the workload).
std::string_view macro_name(const Kernel& kernel, const Parameter& parameter);
/// Positions in Problem::parameters of what `kernel`'s compiled code depends on.
std::vector<std::size_t> code_parameters(const Problem& problem, const Kernel& kernel);
/// The buffers that kernels are given for a configuration, by name.
std::set<std::string> passed_buffers(const Problem& problem, const Constants& constants,
                                     const Configuration& configuration);

/// The job that compiles `kernel` (the problem's own or a reference). Code parameters and constants become
/// macros: booleans 1 and 0, strings as they are; device properties and execution parameters do not.
CompileJob make_compile_job(const Problem& problem, const Kernel& kernel, const DeviceInfo& device,
                            const Constants& constants, const Configuration& configuration);

/// A kernel's arguments; a reference that has none takes those of the problem's one kernel.
const std::vector<Argument>& arguments_of(const Problem& problem, const Kernel& kernel);

/// Grid and block; a global size is rounded up to whole blocks. Throws UserError for a size below 1 or beyond
/// 2^32.
LaunchGeometry make_geometry(const Launch& launch, const Scope& scope);

/// Bytes of an argument of local memory; 0 is none at all. Throws UserError for a count below 0 or beyond 2^32 bytes.
std::size_t local_bytes(const Argument& argument, const Scope& scope);

/// "block=64 unroll=2": for people, and the same for the same values.
std::string values_text(const Constants& values);

/// Where every parameter takes its default, else its first value; whether that is a valid configuration is
/// not asked.
Configuration default_values(const Problem& problem);

}  // namespace ergotune
