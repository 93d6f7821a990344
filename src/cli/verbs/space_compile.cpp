#include "cli/verbs/space_compile.hpp"

#include <fmt/format.h>

#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "kernel/configure.hpp"
#include "kernel/wisdom_key.hpp"

namespace ergotune::cli {

CompileTarget compile_target(const Problem& problem, const std::string& device) {
  const DeviceInfo info = open_device(device, &problem)->info();
  return {info, open_compiler(info.id)};
}

CompileTarget compile_target_of_profile(const Problem& problem, const std::string& name, const Constants& properties) {
  const std::string architecture = wisdom_device(name, "", properties).architecture;
  if (!architecture.starts_with("sm_") || !problem.kernel().source_for(Language::cuda))
    throw UserError(
        fmt::format("--compile with --profile needs a source in CUDA C++ and an NVIDIA GPU; {}: leave --profile out to "
                    "compile for a "
                    "device of this machine",
                    architecture.starts_with("sm_") ? fmt::format("the problem \"{}\" has none", problem.name)
                                                    : name + " is none"));
  CompileTarget target;
  target.device.backend = "cuda";
  target.device.id = "cuda:" + architecture;
  target.device.name = name;
  target.device.properties = properties;
  target.compiler = open_compiler(target.device.id);
  return target;
}

std::vector<CompiledConfiguration> compile_configurations(const Problem& problem, const SearchSpace& space,
                                                          const Constants& constants, CompileTarget& target,
                                                          const std::vector<ConfigurationIndex>& configurations) {
  std::vector<CompiledConfiguration> out;
  const auto compile = [&](const Kernel& kernel, const Configuration& configuration) {
    target.compiler->compile(make_compile_job(problem, kernel, target.device, constants, configuration));
  };
  for (const ConfigurationIndex index : configurations) {
    CompiledConfiguration& result = out.emplace_back();
    result.index = index;
    const Configuration configuration = space.configuration(index);
    try {
      for (const Kernel& kernel : problem.kernels) compile(kernel, configuration);
      if (out.size() == 1 && problem.verification.reference) compile(*problem.verification.reference, configuration);
    } catch (const DeviceError& error) {
      result.message = error.what();
      if (result.message.empty()) result.message = "it does not compile";
    }
  }
  return out;
}

}  // namespace ergotune::cli
