#include "api/compile_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "base/kernel_source/outline.hpp"
#include "device/backend.hpp"
#include "ergotune/error.hpp"
#include "ergotune/random.hpp"
#include "evaluate/compile/compile_step.hpp"
#include "kernel/configure.hpp"
#include "kernel/macro_clashes.hpp"
#include "kernel/occupancy.hpp"
#include "kernel/problem_notes.hpp"
#include "kernel/wisdom_key.hpp"
#include "measure/buffers/arguments.hpp"
#include "problem/draft/source_launch.hpp"
#include "problem/draft/source_text.hpp"
#include "problem/tables/device_profile.hpp"
#include "report/result_document.hpp"

namespace ergotune {
namespace {

constexpr std::string_view kSimulated = "sim:";

bool uses_device(const Expression& expression) {
  const auto& names = expression.names();
  return std::ranges::any_of(names, [](const std::string& n) { return n.starts_with("device."); });
}

/// Whether restrictions or ranges use properties of the device (device.max_threads_per_block).
bool uses_device(const Problem& problem) {
  return std::ranges::any_of(problem.restrictions, [](const Restriction& r) { return uses_device(r.expression); }) ||
         std::ranges::any_of(problem.parameters, [](const Parameter& p) {
           return p.range && (uses_device(p.range->start) || uses_device(p.range->stop) || uses_device(p.range->step));
         });
}

DeviceInfo absent_gpu(const Problem& problem, const DeviceLimits& limits) {
  DeviceInfo info;
  const std::string architecture = wisdom_device(limits.name, "", limits.properties).architecture;
  const bool nvidia = architecture.starts_with("sm_");
  if (!nvidia || !problem.kernel().source_for(Language::cuda))
    throw UserError(
        fmt::format("compiling for a GPU that is not here needs a source in CUDA C++ and an NVIDIA GPU; {}: name a "
                    "device of this machine instead",
                    nvidia ? fmt::format("the problem \"{}\" has none", problem.name) : limits.name + " is none"));
  info.backend = "cuda";
  info.id = "cuda:" + architecture;
  info.name = limits.name;
  info.properties = limits.properties;
  return info;
}

/// Returns the most threads of a block by the source's __launch_bounds__; nullopt without it, or if it is no number,
/// parameter or name of a number.
std::optional<double> launch_bound(const Kernel& kernel, const KernelSource& source, const Scope& scope) {
  std::string name = kernel.function.text().substr(0, kernel.function.text().find('<'));
  name.erase(0, name.rfind(':') + 1);
  for (const kernel_source::Function& function : kernel_source::outline_of(source.text).functions) {
    const std::string bound = function.name == name ? draft::launch_bound_in(function.head) : std::string();
    if (bound.empty()) continue;
    if (const Value* const own = scope(bound)) return own->as_real();
    return draft::named_number(source.text, bound);
  }
  return std::nullopt;
}

/// Whether the device can hold a block of the kernel, and number its blocks, as far as the launch shows.
bool fits(const Problem& problem, const Kernel& kernel, const Constants& constants, const DeviceInfo& device,
          const Configuration& configuration) {
  constexpr double kMostBlocks = 65535;  // in y and z; CUDA C++ Programming Guide, technical specifications
  try {
    const ConfigurationScope names(problem.parameters, configuration, constants, kernel.name);
    const LaunchGeometry geometry = make_geometry(kernel.launch, names.scope());
    BlockNeeds needs;
    needs.threads = static_cast<double>(geometry.block[0]) * geometry.block[1] * geometry.block[2];
    if (device.backend == "cuda" &&
        needs.threads >
            launch_bound(kernel, source_for_device(kernel, device.backend), names.scope()).value_or(needs.threads))
      return false;
    needs.shared_bytes = geometry.shared_memory_bytes;
    for (const Argument& argument : kernel.arguments)
      if (argument.kind == Argument::Kind::local_memory)
        needs.shared_bytes += static_cast<double>(local_bytes(argument, names.scope()));
    if (device.backend == "cuda" && std::max(geometry.grid[1], geometry.grid[2]) > kMostBlocks) return false;
    const auto occupancy = occupancy_of(needs, device.properties);
    return !occupancy || occupancy->need <= 1;
  } catch (const UserError&) {  // depends on a loop of the workload
    return true;
  }
}

/// Compiles the references as a session does: with the default values, or `configuration` if each has its own. Throws
/// UserError if one does not compile, as no configuration can be verified then.
void compile_references(const Problem& problem, const SearchSpace& space, const DeviceInfo& device,
                        const Constants& constants, const Configuration& configuration) {
  Configuration defaults;
  for (const Parameter& parameter : space.parameters()) defaults.push_back(*parameter.default_or_first());
  std::vector<const Verification*> verifications{&problem.verification};
  for (const Kernel& kernel : problem.kernels)
    if (kernel.verification) verifications.push_back(kernel.verification.get());
  DeviceInfo host;
  host.backend = "host";
  for (const Verification* verification : verifications) {
    if (!verification->reference) continue;
    const Kernel& reference = *verification->reference;
    const bool on_device =
        verification->kind == Verification::Kind::kernel && has_source_for(reference, device.backend);
    const Configuration values = verification->per_configuration ? configuration : defaults;
    try {
      open_compiler(on_device ? device.id : "host")
          ->compile(make_compile_job(problem, reference, on_device ? device : host, constants, values));
    } catch (const DeviceError& error) {
      throw UserError(
          fmt::format("the reference \"{}\" does not compile: {}", reference.function.text(), error.what()));
    }
  }
}

}  // namespace

DeviceLimits limits_of(const Problem& problem, const std::string& device) {
  if (device.starts_with(kSimulated)) {
    DeviceProfile profile = load_device_profile(device.substr(kSimulated.size()));
    return {std::move(profile.name), std::move(profile.properties)};
  }
  if (device.empty() && !uses_device(problem)) return {};
  const bool any = device.empty() && !problem.kernel().sources.empty();
  const auto opened = open_device(device, any ? &problem : nullptr);
  return {opened->info().name, opened->info().properties};
}

bool CompileCheck::any() const {
  return std::ranges::any_of(configurations, [](const auto& one) { return one.message.empty(); });
}

CompileCheck check_compiling(const Problem& problem, const SearchSpace& space, const std::string& device,
                             const DeviceLimits& limits, std::uint64_t count, std::uint64_t seed,
                             const std::function<void(const CompileCheck&, std::uint64_t)>& progress) {
  CompileCheck check;
  check.device = device.starts_with(kSimulated) ? absent_gpu(problem, limits) : open_device(device, &problem)->info();
  CompileStep step(open_compiler(check.device.id), check.device, {});
  const MismatchCheck check_mismatch(problem);
  const Constants constants = problem.constants_for(limits.name, limits.properties);
  const auto message_of = [&](const Configuration& configuration) {
    for (std::size_t k = 0; k < problem.kernels.size(); ++k) {
      const CompileOutcome outcome = step.run(
          [&] { return make_compile_job(problem, problem.kernels[k], check.device, constants, configuration); });
      check_mismatch(k, configuration, outcome.mismatch, outcome.message);
      if (outcome.status != Status::ok) return outcome.message.empty() ? "it does not compile" : outcome.message;
    }
    return std::string();
  };
  for (const Kernel& kernel : problem.kernels)  // a missing file would end the session on the device
    for (std::size_t i = 0; i < kernel.arguments.size(); ++i)
      if (const Argument& argument = kernel.arguments[i]; argument.fill.kind == Fill::Kind::file)
        (void)initial_contents(argument, element_count(argument, constants), i);
  check.notes = source_notes(problem, constants, check.device.backend);
  for (std::string& note : unused_parameter_notes(problem)) check.notes.push_back(std::move(note));
  if (std::string note = note_of_outputs(problem); !note.empty()) check.notes.push_back(std::move(note));
  Random random(seed);
  std::vector<ConfigurationIndex> chosen;
  if (const auto standard = space.default_configuration()) chosen.push_back(*standard);
  for (const ConfigurationIndex index : space.sample_distinct(count, random))
    if (chosen.size() < count && (chosen.empty() || index != chosen.front())) chosen.push_back(index);
  bool references_compiled = false;
  for (const ConfigurationIndex index : chosen) {
    CompiledConfiguration& result = check.configurations.emplace_back();
    result.index = index;
    const Configuration configuration = space.configuration(index);
    result.message = message_of(configuration);
    if (result.message.empty()) {
      result.fits = std::ranges::all_of(problem.kernels, [&](const Kernel& kernel) {
        return fits(problem, kernel, constants, check.device, configuration);
      });
      // after kernels that compile: errors in the arguments, which references share, are reported for the kernel
      if (!std::exchange(references_compiled, true))
        compile_references(problem, space, check.device, constants, configuration);
    }
    if (progress) progress(check, chosen.size());
  }
  return check;
}

nlohmann::ordered_json compiled_document(const SearchSpace& space, const CompileCheck& check) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const CompiledConfiguration& one : check.configurations)
    list.push_back({{"configuration", to_json(space.parameters(), space.configuration(one.index))},
                    {"compiles", one.message.empty()},
                    {"fits", one.fits},
                    {"message", one.message}});
  return list;
}

}  // namespace ergotune
