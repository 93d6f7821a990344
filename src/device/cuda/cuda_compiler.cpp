// Compiles CUDA C++ to device code with NVRTC.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/kernel_source/signature.hpp"
#include "device/backend.hpp"
#include "device/cuda/cuda_platform.hpp"
#include "device/cuda/instruction_mix.hpp"
#include "device/cuda/nvrtc_api.hpp"
#include "device/entries.hpp"
#include "problem/files/source_text.hpp"

namespace ergotune::cuda {
namespace {

using nvrtc::api;

/// Size in bytes of ".param .align 8 .b8 f_param_1[24]".
std::int64_t parameter_bytes(std::string_view declaration) {
  std::int64_t bytes = 0;
  for (const std::string_view type : {".u", ".s", ".b", ".f"})
    for (const int bits : {8, 16, 32, 64})
      if (declaration.find(fmt::format("{}{} ", type, bits)) != std::string_view::npos) bytes = bits / 8;
  const std::size_t open = declaration.find('[');
  return open == std::string_view::npos ? bytes : bytes * std::atoll(std::string(declaration.substr(open + 1)).c_str());
}

/// The parameters of the kernel `entry`: sizes from its PTX, types from the mangled name, or, for extern "C", from the
/// source if that defines the kernel once. nullopt if the PTX has no such kernel.
std::optional<std::vector<device::KernelParameter>> parameters_of(const CompileJob& job, const std::string& entry,
                                                                  std::string_view ptx) {
  const std::size_t at = ptx.find(fmt::format(".entry {}(", entry));
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t open = ptx.find('(', at), close = ptx.find(')', open);
  std::vector<device::KernelParameter> parameters;
  for (std::size_t next = open; (next = ptx.find(".param ", next)) < close; ++next)
    parameters.push_back({parameter_bytes(ptx.substr(next, ptx.find_first_of(",)", next) - next)), {}, {}});
  const kernel_source::Demangled name = kernel_source::demangled(entry);
  std::optional<std::vector<kernel_source::Parameter>> typed;
  if (name.whole != entry)
    typed = kernel_source::parameters_of(name.list, false);
  else if (const std::size_t first = job.source.find(entry + "("); first == job.source.rfind(entry + "("))
    typed = kernel_source::parameters_in_source(job.source, entry);
  if (!typed || typed->size() != parameters.size()) return parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i].type = (*typed)[i].type;
    parameters[i].constant = (*typed)[i].pointer && (*typed)[i].constant;
    for (const auto& [macro, value] : job.defines)
      if (macro == (*typed)[i].type) parameters[i].type = value;
    if ((*typed)[i].pointer || element_type(parameters[i].type)) parameters[i].pointer = (*typed)[i].pointer;
  }
  return parameters;
}

class CudaCompiler : public Compiler {
 public:
  /// `architecture`: 90 for sm_90; `suffix`: "a" or "f" for architecture-specific code.
  CudaCompiler(int architecture, std::string suffix) {
    if (!api().usable())
      throw UserError(
          fmt::format("CUDA kernels need NVRTC (libnvrtc, part of the CUDA toolkit and of the pip package "
                      "nvidia-cuda-nvrtc), and it cannot be opened: {}. Set ERGOTUNE_NVRTC to its path",
                      api().problem()));
    int count = 0;
    const bool tells = api().nvrtcGetNumSupportedArchs && api().nvrtcGetSupportedArchs;
    if (tells) api().nvrtcGetNumSupportedArchs(&count);
    std::vector<int> known(static_cast<std::size_t>(std::max(count, 0)));
    if (!known.empty()) api().nvrtcGetSupportedArchs(known.data());
    if (known.empty() || std::ranges::find(known, architecture) != known.end()) {
      architecture_ = fmt::format("sm_{}{}", architecture, suffix);
      return;
    }
    // If NVRTC is older than the GPU: PTX for the newest known architecture below it, which the driver compiles.
    const auto below = std::find_if(known.rbegin(), known.rend(), [&](int a) { return a < architecture; });
    if (below == known.rend())
      throw UserError(
          fmt::format("{} no longer compiles for sm_{} (it starts at sm_{}): set ERGOTUNE_NVRTC to the libnvrtc.so of "
                      "an older CUDA",
                      nvrtc::library_file(api()), architecture, known.front()));
    architecture_ = fmt::format("compute_{}", *below);
    binary_ = false;
  }

  Binary compile(const CompileJob& given) override {
    CompileJob job = given;
    const std::map<int, int> attributes = device::take_function_attributes(job.options);
    if (job.language != Language::cuda)
      throw DeviceError(DeviceFault::unsupported, "a CUDA device compiles CUDA C++ only");
    if (is_compiled_code(job.source))
      return {device::PackedCode{job.source, {}, {}, attributes}.pack(), job.function, {}};
    std::vector<std::string> options = nvrtc::options_of(job, nvrtc::include_folders());
    if (!nvrtc::names(job.options, "-arch")) options.insert(options.begin(), "--gpu-architecture=" + architecture_);
    Binary result;
    const std::unique_ptr<nvrtc::Program> compiled =
        nvrtc::compiled_program(api(), job, job.source_name.empty() ? "kernel.cu" : job.source_name,
                                nvrtc::headers_for(options), options, result.log);
    const nvrtc::Program& program = *compiled;
    result.entry = program.lowered_name(job.function);
    if (result.entry.empty())
      throw DeviceError(DeviceFault::compile,
                        fmt::format("NVRTC does not name the symbol that it compiled {} to", job.function));
    // the user's options may specify a virtual architecture, for which there is no binary
    const bool binary = binary_ && !nvrtc::names(job.options, "compute_");
    device::PackedCode packed{program.code(binary), {}, {}, attributes};
    const std::string ptx = binary ? program.code(false) : packed.code;
    if (const auto taken = parameters_of(job, result.entry, ptx); taken && !job.arguments.empty())
      device::check_arguments(job.function, *taken, job.arguments);
    device::note_instructions(packed, result.entry, ptx, job.disassemble);
    result.bytes = packed.pack();
    return result;
  }

  std::string identity() const override {
    int major = 0, minor = 0;
    api().nvrtcVersion(&major, &minor);
    return fmt::format("cuda | NVRTC {}.{} | {}", major, minor, architecture_);
  }

 private:
  std::string architecture_;
  bool binary_ = true;
};

}  // namespace
}  // namespace ergotune::cuda

namespace ergotune::device {

std::unique_ptr<Compiler> make_cuda_compiler(const std::string& architecture) {
  const std::string digits = architecture.starts_with("sm_") ? architecture.substr(3) : "";
  const std::size_t end = digits.find_first_not_of("0123456789");
  const std::string suffix = end == std::string::npos ? "" : digits.substr(end);
  if (digits.empty() || end == 0 || digits.size() > 5 || (!suffix.empty() && suffix != "a" && suffix != "f"))
    throw UserError(fmt::format("\"{}\" is not a CUDA architecture: write it as sm_90", architecture));
  return std::make_unique<cuda::CudaCompiler>(std::stoi(digits), suffix);
}

std::unique_ptr<Compiler> make_cuda_compiler_for(const std::string& id) {
  return std::make_unique<cuda::CudaCompiler>(cuda::find_device(id).architecture, "");
}

}  // namespace ergotune::device
