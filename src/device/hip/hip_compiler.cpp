// Compiles HIP C++, and CUDA C++ as HIP, to device code with hiprtc.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "base/kernel_source/signature.hpp"
#include "device/backend.hpp"
#include "device/code_object.hpp"
#include "device/cuda/nvrtc_api.hpp"
#include "device/entries.hpp"
#include "device/hip/hip_api.hpp"
#include "problem/files/source_text.hpp"

namespace ergotune::hip {
namespace {

using hiprtc::api;

[[noreturn]] void fail(const std::string& message) { throw device::compile_error(message); }

/// Replaces the name of the compiler's temporary copy, which changes each time, by the name of the source in its
/// messages.
std::string with_source_name(std::string log, const std::string& name) {
  for (std::size_t at = 0; (at = log.find("comgr-", at)) != std::string::npos;) {
    const std::size_t begin = log.find_last_of(" \t\n'\"", at) + 1;  // npos + 1 is 0
    const std::size_t folder = log.find("/input/", at);
    if (folder == std::string::npos) break;
    const std::size_t file = folder + 7, end = std::min(log.find_first_of(": \n'\"", file), log.size());
    log.replace(begin, end - begin, name);
    at = begin + name.size();
  }
  return log;
}

/// "n::f<4,float>" for "&n::f<4, float>".
std::string plain(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c); });
  text.erase(0, text.find_first_not_of("&:"));
  return text;
}

std::string demangled(const std::string& name) {
  return plain(kernel_source::display_name(kernel_source::demangled(name)));
}

/// Returns the kernel that `function` names, for versions of hiprtc (5.2) that do not report the lowered name of a name
/// expression.
const KernelMetadata& kernel_named(const CodeObject& code, const std::string& function) {
  const std::string wanted = plain(function);
  std::vector<const KernelMetadata*> same, of_template;
  std::vector<std::string> all;
  for (const KernelMetadata& kernel : code.kernels) {
    const std::string name = demangled(kernel.name);
    all.push_back(name);
    if (name == wanted) same.push_back(&kernel);
    // its template arguments may be written differently: "4" instead of "2 * 2"
    if (name.substr(0, name.find('<')) == wanted.substr(0, wanted.find('<'))) of_template.push_back(&kernel);
  }
  if (same.size() == 1) return *same.front();
  if (of_template.size() == 1) return *of_template.front();
  fail(fmt::format("\"{}\" cannot be found among the kernels of the compiled code; it has {}", function,
                   all.empty() ? "none" : fmt::format("{}", fmt::join(all, ", "))));
}

class HipCompiler : public Compiler {
 public:
  /// `architecture`: "gfx90a", optionally with features ("gfx90a:sramecc+:xnack-").
  explicit HipCompiler(std::string architecture) : architecture_(std::move(architecture)) {
    // They may share libLLVM, and registering the same options in it twice ends the process.
    if (DynamicLibrary::is_loaded("libpocl") && !DynamicLibrary::is_loaded("libamd_comgr"))
      throw UserError(
          "PoCL's compiler is in this process, and hiprtc may not be beside it: name the device (--device hip:0), so "
          "that no other driver is opened");
    if (!api().usable())
      throw UserError(
          fmt::format("HIP kernels need hiprtc (libhiprtc of ROCm, or Debian's libamdhip64), and it cannot be opened: "
                      "{}. Set ERGOTUNE_HIPRTC to its path",
                      api().problem()));
    check_architecture(architecture_);
  }

  Binary compile(const CompileJob& job) override {
    if (job.language != Language::hip)
      throw DeviceError(DeviceFault::unsupported, "a HIP device compiles HIP and CUDA C++ only");
    Binary result;
    if (is_compiled_code(job.source)) {
      result.bytes = job.source;
      result.entry = job.function;
    } else {
      compile_source(job, result);
    }
    std::string reason;
    if (const auto code = read_code_object(result.bytes, &reason)) {
      const auto named = std::ranges::find_if(
          code->kernels, [&](const KernelMetadata& kernel) { return kernel.name == result.entry; });
      const KernelMetadata& kernel = named != code->kernels.end() ? *named : kernel_named(*code, job.function);
      result.entry = kernel.name;
      std::vector<device::KernelParameter> taken;
      for (const KernelMetadata::Argument& argument : kernel.arguments)
        taken.push_back({argument.bytes, argument.is_pointer, {}});
      if (!job.arguments.empty()) device::check_arguments(demangled(kernel.name), taken, job.arguments);
    } else if (result.entry.empty()) {
      fail(fmt::format("hiprtc does not name the symbol that it compiled {} to, and of its code: {}", job.function,
                       reason));
    }
    return result;
  }

  std::string identity() const override { return fmt::format("hip | {} | {}", hiprtc::version(), architecture_); }

 private:
  void compile_source(const CompileJob& job, Binary& result) const {
    for (const char* option : {"--offload-arch=", "--gpu-architecture="})
      for (const std::string& text : job.options)
        if (text.starts_with(option)) check_architecture(text.substr(text.find('=') + 1));
    std::vector<std::string> options = nvrtc::options_of(job);
    if (!nvrtc::names(job.options, "-arch")) options.insert(options.begin(), "--offload-arch=" + architecture_);
    const std::string name = job.source_name.empty() ? "kernel.hip" : job.source_name;
    std::unique_ptr<nvrtc::Program> program;
    try {
      program = nvrtc::compiled_program(api(), job, name, {}, options, result.log);
    } catch (const device::Mismatch&) {
      throw;
    } catch (const DeviceError& error) {
      throw DeviceError(error.fault(), with_source_name(error.what(), name), error.native_code());
    }
    result.log = with_source_name(std::move(result.log), name);
    result.bytes = program->code(true);
    result.entry = program->lowered_name(job.function);
  }

  /// hiprtc may end the process if it is given an unknown architecture.
  static void check_architecture(const std::string& architecture) {
    const std::string name = architecture.substr(0, architecture.find(':'));
    const auto known = hiprtc::architectures();
    if (!known || std::ranges::find(*known, name) != known->end()) return;
    throw UserError(fmt::format(
        "the hiprtc here does not know {}: it compiles for {}. A newer ROCm may; ERGOTUNE_HIPRTC names its libhiprtc",
        name, fmt::join(*known, ", ")));
  }

  std::string architecture_;
};

}  // namespace
}  // namespace ergotune::hip

namespace ergotune::device {

std::unique_ptr<Compiler> make_hip_compiler(const std::string& architecture) {
  const std::string name = architecture.substr(0, architecture.find(':'));
  const bool sound = name.starts_with("gfx") && name.size() > 5 && name.size() < 12 &&
                     name.find_first_not_of("0123456789abcdef-", 3) == std::string::npos &&
                     architecture.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789:+-") == std::string::npos;
  if (!sound)
    throw UserError(
        fmt::format("\"{}\" is not an architecture of AMD's: write it as gfx90a, or gfx90a:xnack-", architecture));
  return std::make_unique<hip::HipCompiler>(architecture);
}

std::unique_ptr<Compiler> make_hip_compiler_for(const std::string& id) {
  return std::make_unique<hip::HipCompiler>(hip::find_device(id).target);
}

}  // namespace ergotune::device
