#include "measure/verify/kernel_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/hash.hpp"
#include "device/backend.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "kernel/compare.hpp"
#include "kernel/configure.hpp"
#include "measure/buffers/arguments.hpp"

namespace ergotune {

struct KernelChecks::Checked {
  const Kernel* kernel = nullptr;
  Device* device = nullptr;  ///< where the reference runs
  std::unique_ptr<LoadedKernel> reference;
  /// Hash of the inputs from which `outputs` was computed.
  std::uint64_t made_of = 0;
  ExpectedOutputs outputs;

  const Verification& verification() const { return *kernel->verification; }
};

namespace {

std::uint64_t hash_of(const ExpectedOutputs& contents, std::uint64_t seed) {
  for (const auto& [name, bytes] : contents) {
    seed = hash64(name, seed);
    seed = hash64({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, seed);
  }
  return seed;
}

const std::vector<Argument>& arguments_of_reference(const Kernel& kernel) {
  const std::vector<Argument>& own = kernel.verification->reference->arguments;
  return own.empty() ? kernel.arguments : own;
}

}  // namespace

KernelChecks::KernelChecks(const Problem& problem, Device& device, ProblemBuffers& buffers, const Constants& constants)
    : problem_(problem), device_(device), buffers_(buffers), constants_(constants) {
  for (std::size_t k = 0; k < problem.kernels.size(); ++k) {
    const Kernel& kernel = problem.kernels[k];
    if (!kernel.verification || kernel.verification->kind == Verification::Kind::none) continue;
    if (!kernel.verification->reference) throw UserError(with_kernel_name(kernel, "its verification has no reference"));
    auto checked = std::make_unique<Checked>();
    checked->kernel = &kernel;
    const bool here = kernel.verification->kind == Verification::Kind::kernel &&
                      has_source_for(*kernel.verification->reference, device.info().backend);
    if (!here && !host_) host_ = open_device("host");
    checked->device = here ? &device : host_.get();
    kernels_[k] = std::move(checked);
  }
}

KernelChecks::~KernelChecks() = default;

bool KernelChecks::verify(LoadedIteration& round, const Configuration& configuration, Measurement& result) {
  struct PendingComparison {
    Checked* checked;
    const LoadedIteration::FirstLaunch* first;
  };
  std::map<std::size_t, PendingComparison> awaited;  // by index of the bound kernel
  for (const auto& [k, checked] : kernels_)
    if (const auto* first = round.first_launch(k)) awaited[first->bound] = {checked.get(), first};
  double error = 0;
  buffers_.restore();
  for (const WorkloadStep& step : round.steps_in_sequence()) {
    LoadedKernel& kernel = round.bound_kernel(step);
    std::size_t left = step.launches;
    if (const auto found = awaited.find(step.kernel); found != awaited.end()) {
      const auto [checked, first] = found->second;
      const ExpectedOutputs inputs = contents_of(*checked->kernel, first->names);
      device_.launch(kernel);
      device_.synchronise();
      compare_with_reference(*checked, *first, inputs, configuration, result, error);
      awaited.erase(found);
      --left;
    }
    if (left > 0) device_.launch(kernel, left);
  }
  device_.synchronise();
  if (std::isfinite(error))
    result.quantities["error"] = {error, 0, 1, "kernels compared with their references", {}, Provenance::measured};
  if (result.message.empty()) return true;
  result.status = Status::wrong_result;
  return false;
}

/// Returns the present contents of a kernel's buffers by argument.
ExpectedOutputs KernelChecks::contents_of(const Kernel& kernel, const BufferNames& names) const {
  ExpectedOutputs contents;
  for (const Argument& argument : kernel.arguments)
    if (argument.kind == Argument::Kind::buffer) buffers_.read_as(names, argument.name, contents[argument.name]);
  return contents;
}

void KernelChecks::compare_with_reference(Checked& checked, const LoadedIteration::FirstLaunch& first,
                                          const ExpectedOutputs& inputs, const Configuration& configuration,
                                          Measurement& result, double& error) {
  const Verification& verification = checked.verification();
  const ExpectedOutputs actual = contents_of(*checked.kernel, first.names);
  for (const Argument& argument : checked.kernel->arguments)
    if (argument.kind == Argument::Kind::buffer && argument.access == Access::read &&
        inputs.at(argument.name) != actual.at(argument.name))
      result.message += fmt::format("{}kernel \"{}\" changes argument \"{}\", which it declares \"read\"",
                                    result.message.empty() ? "" : "; ", checked.kernel->name, argument.name);
  for (const auto& [name, contents] : expected(checked, first, inputs, configuration)) {
    const auto& wanted = verification.outputs;
    if (!wanted.empty() && std::ranges::find(wanted, name) == wanted.end()) continue;
    const BufferComparison found =
        compare_output(verification, name, buffers_.argument(name).type, actual.at(name), contents);
    error = std::max(error, found.error);
    if (!found.equal)
      result.message += fmt::format("{}kernel \"{}\" beside its reference: output \"{}\": {}",
                                    result.message.empty() ? "" : "; ", checked.kernel->name, name, found.message);
  }
}

/// Most configurations give a kernel the same contents and scalars, so that expected outputs are cached.
const ExpectedOutputs& KernelChecks::expected(Checked& checked, const LoadedIteration::FirstLaunch& first,
                                              const ExpectedOutputs& inputs, const Configuration& configuration) {
  Constants constants = constants_;
  for (const auto& [name, value] : first.variables) constants[name] = value;
  const ConfigurationScope names(problem_.parameters, configuration, constants, checked.kernel->name);
  std::uint64_t made_of = hash_of(inputs, 1);
  for (const Argument& argument : arguments_of_reference(*checked.kernel)) {
    if (argument.kind != Argument::Kind::scalar) continue;
    const std::vector<std::byte> bytes = scalar_bytes(argument, names.scope());
    made_of = hash64({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, made_of);
  }
  const bool follows = checked.verification().per_configuration;
  if (checked.reference && !follows && checked.made_of == made_of) return checked.outputs;
  const Kernel& reference = *checked.verification().reference;
  try {
    checked.outputs = run_reference(checked, constants, inputs, configuration);
  } catch (const DeviceError& error) {
    throw UserError(with_kernel_name(
        *checked.kernel, fmt::format("the reference \"{}\" fails: {}", reference.function.text(), error.what())));
  }
  checked.made_of = made_of;
  return checked.outputs;
}

/// Runs the reference. Its code and block sizes use the defaults, or the configuration if
/// Verification::per_configuration is set; its scalars are those of the kernel.
ExpectedOutputs KernelChecks::run_reference(Checked& checked, const Constants& constants, const ExpectedOutputs& inputs,
                                            const Configuration& configuration) {
  const Verification& verification = checked.verification();
  const Kernel& reference = *verification.reference;
  Device& device = *checked.device;
  const Configuration values = verification.per_configuration ? configuration : default_values(problem_);
  if (!checked.reference || verification.per_configuration)
    checked.reference = device.load(
        device.make_compiler()->compile(make_compile_job(problem_, reference, device.info(), constants_, values)));
  const ConfigurationScope shape(problem_.parameters, values, constants, checked.kernel->name);
  const ConfigurationScope names(problem_.parameters, configuration, constants, checked.kernel->name);
  const std::vector<Argument>& arguments = arguments_of_reference(*checked.kernel);
  ProblemBuffers buffers(device, {&arguments}, constants, &buffers_);
  for (const auto& [name, contents] : inputs)
    if (buffers.contains(name)) buffers.write(name, contents);
  checked.reference->bind(make_geometry(reference.launch, shape.scope()), buffers.bind(arguments, names.scope()));
  device.launch(*checked.reference);
  device.synchronise();
  if (const std::string outside = buffers.written_outside(); !outside.empty())
    throw UserError(fmt::format("the reference \"{}\" is wrong: {}", reference.function.text(), outside));
  ExpectedOutputs outputs;
  for (const std::string& name : buffers.outputs())
    if (inputs.contains(name)) buffers.read(name, outputs[name]);
  return outputs;
}

}  // namespace ergotune
