// CUDA C++ to device code with NVRTC.
#include <fmt/format.h>

#include <algorithm>

#include "device/backend.hpp"
#include "device/cuda_platform.hpp"
#include "device/instruction_mix.hpp"
#include "device/nvrtc_api.hpp"

namespace ergotune::cuda {
namespace {

using nvrtc::api;
using nvrtc::nvrtcProgram;

/// A program under compilation; destroyed with the object.
class Program {
 public:
  Program(const std::string& source, const std::string& name) {
    check(api().nvrtcCreateProgram(&program_, source.c_str(), name.c_str(), 0, nullptr, nullptr),
          "nvrtcCreateProgram");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() { api().nvrtcDestroyProgram(&program_); }
  nvrtcProgram get() const { return program_; }

  std::string log() const {
    std::size_t size = 0;
    if (api().nvrtcGetProgramLogSize(program_, &size) != nvrtc::NVRTC_SUCCESS) return {};
    std::string text(size, '\0');
    api().nvrtcGetProgramLog(program_, text.data());
    text = text.c_str();
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }
  std::string code(bool binary) const {
    std::size_t size = 0;
    check(binary ? api().nvrtcGetCUBINSize(program_, &size) : api().nvrtcGetPTXSize(program_, &size),
          "nvrtc code size");
    std::string bytes(size, '\0');
    check(binary ? api().nvrtcGetCUBIN(program_, bytes.data()) : api().nvrtcGetPTX(program_, bytes.data()),
          "nvrtc code");
    return bytes;
  }
  static void check(int code, const char* what) {
    if (code != nvrtc::NVRTC_SUCCESS)
      throw DeviceError(DeviceFault::compile, fmt::format("{}: {}", what, api().nvrtcGetErrorString(code)),
                        code);
  }

 private:
  nvrtcProgram program_ = nullptr;
};

bool names(const std::vector<std::string>& options, std::string_view text) {
  return std::any_of(options.begin(), options.end(),
                     [&](const std::string& option) { return option.find(text) != std::string::npos; });
}

class CudaCompiler : public Compiler {
 public:
  /// `architecture`: 90 for sm_90; `suffix`: "a" or "f" of architecture-specific code.
  CudaCompiler(int architecture, std::string suffix) {
    if (!api().usable())
      throw UserError(
          fmt::format("CUDA kernels need NVRTC (libnvrtc, part of the CUDA toolkit and of the pip package "
                      "nvidia-cuda-nvrtc), and it cannot be opened: {}. Set ERGOTUNE_NVRTC to its path",
                      api().problem()));
    int count = 0;
    api().nvrtcGetNumSupportedArchs(&count);
    std::vector<int> known(static_cast<std::size_t>(std::max(count, 0)));
    if (count > 0) api().nvrtcGetSupportedArchs(known.data());
    if (known.empty() || std::find(known.begin(), known.end(), architecture) != known.end()) {
      architecture_ = fmt::format("sm_{}{}", architecture, suffix);
      return;
    }
    // An NVRTC older than the GPU: intermediate code for the newest architecture below, which the driver
    // finishes.
    const auto below = std::find_if(known.rbegin(), known.rend(), [&](int a) { return a < architecture; });
    if (below == known.rend())
      throw UserError(fmt::format(
          "this NVRTC no longer compiles for sm_{} (it starts at sm_{}): use an older CUDA toolkit",
          architecture, known.front()));
    architecture_ = fmt::format("compute_{}", *below);
    binary_ = false;
  }

  Binary compile(const CompileJob& job) override {
    if (job.language != Language::cuda)
      throw DeviceError(DeviceFault::unsupported, "a CUDA device compiles CUDA C++ only");
    std::vector<std::string> options;
    if (!names(job.options, "-arch")) options.push_back("--gpu-architecture=" + architecture_);
    if (!names(job.options, "-std")) options.emplace_back("--std=c++17");
    for (const auto& [name, value] : job.defines) options.push_back(fmt::format("-D{}={}", name, value));
    for (const auto& folder : job.include_folders) options.push_back("--include-path=" + folder);
    for (const auto& folder : nvrtc::include_folders()) options.push_back("--include-path=" + folder);
    options.insert(options.end(), job.options.begin(), job.options.end());
    std::vector<const char*> pointers;
    for (const auto& option : options) pointers.push_back(option.c_str());

    Program program(job.source, job.source_name.empty() ? "kernel.cu" : job.source_name);
    Program::check(api().nvrtcAddNameExpression(program.get(), job.function.c_str()),
                   "nvrtcAddNameExpression");
    const int code =
        api().nvrtcCompileProgram(program.get(), static_cast<int>(pointers.size()), pointers.data());
    Binary result;
    result.log = program.log();
    if (code != nvrtc::NVRTC_SUCCESS)
      throw DeviceError(
          DeviceFault::compile,
          result.log.empty() ? fmt::format("NVRTC: {}", api().nvrtcGetErrorString(code)) : result.log, code);
    const char* lowered = nullptr;
    Program::check(api().nvrtcGetLoweredName(program.get(), job.function.c_str(), &lowered),
                   "nvrtcGetLoweredName");
    result.entry = lowered;
    // a user's own architecture may be a virtual one, for which there is no binary
    const bool binary = binary_ && !names(job.options, "compute_");
    device::PackedCode packed{program.code(binary)};
    device::note_instructions(packed, result.entry, binary ? program.code(false) : packed.code);
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
  if (digits.empty() || end == 0 || digits.size() > 5 || (suffix != "" && suffix != "a" && suffix != "f"))
    throw UserError(fmt::format("\"{}\" is not a CUDA architecture: write it as sm_90", architecture));
  return std::make_unique<cuda::CudaCompiler>(std::stoi(digits), suffix);
}

std::unique_ptr<Compiler> make_cuda_compiler_for(const std::string& id) {
  return std::make_unique<cuda::CudaCompiler>(cuda::find_device(id).architecture, "");
}

}  // namespace ergotune::device
