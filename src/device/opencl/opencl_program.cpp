#include "device/opencl/opencl_program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/messages/serialise.hpp"
#include "device/backend.hpp"
#include "device/entries.hpp"

namespace ergotune::opencl {
namespace {

constexpr std::string_view kMagic = "ergotune-opencl-3\n";

/// Include folders as compiler options. No way of quoting spaces works with all drivers (PoCL supports none), so that a
/// folder with unusual characters is passed as a symbolic link, which is removed with the object.
class IncludeOptions {
 public:
  explicit IncludeOptions(const std::vector<std::string>& folders) {
    for (const auto& folder : folders) text_ += " -I" + (is_plain(folder) ? folder : link_to(folder));
  }
  IncludeOptions(const IncludeOptions&) = delete;
  IncludeOptions& operator=(const IncludeOptions&) = delete;
  ~IncludeOptions() {
    std::error_code ignored;
    if (!room_.empty()) std::filesystem::remove_all(room_, ignored);
  }
  const std::string& text() const { return text_; }
  /// Replaces links by folders in a compiler's message.
  std::string named_by_folders(std::string message) const {
    for (const auto& [link, folder] : links_)
      for (std::size_t at = 0; (at = message.find(link, at)) != std::string::npos; at += folder.size())
        message.replace(at, link.size(), folder);
    return message;
  }

 private:
  static bool is_plain(const std::string& path) {
    return std::ranges::all_of(
        path, [](unsigned char c) { return std::isalnum(c) || c >= 0x80 || std::strchr("/._-+=,@%:~", c) != nullptr; });
  }
  std::string link_to(const std::string& folder) {
    if (room_.empty()) {
      const std::string usual = std::filesystem::temp_directory_path().string();
      std::string name = (is_plain(usual) ? usual : "/tmp") + "/ergotune-include-XXXXXX";
      if (!::mkdtemp(name.data())) throw ergotune::Error(fmt::format("cannot make a folder for links: {}", name));
      room_ = name;
    }
    const std::string link = fmt::format("{}/{}", room_, links_.size());
    std::filesystem::create_directory_symlink(std::filesystem::absolute(folder), link);
    links_.emplace_back(link, folder);
    return link;
  }
  std::string text_, room_;
  std::vector<std::pair<std::string, std::string>> links_;
};

}  // namespace

static auto fields(PortableProgram& program) {
  auto& [source, options, include_folders, code] = program;
  return std::tie(source, options, include_folders, code);
}

std::string PortableProgram::pack() const { return std::string(kMagic) + Writer()(*this).take(); }

PortableProgram PortableProgram::unpack(const std::string& bytes) {
  if (!bytes.starts_with(kMagic))
    throw DeviceError(DeviceFault::compile, "not a compiled OpenCL program of this version of ergotune");
  PortableProgram program;
  try {
    Reader reader(std::string_view(bytes).substr(kMagic.size()));
    reader(program).end();
  } catch (const FormatError&) {
    throw DeviceError(DeviceFault::compile, "the compiled OpenCL program is cut off");
  }
  return program;
}

Program Program::from_source(const Context& context, cl_device_id device, const PortableProgram& portable) {
  const char* text = portable.source.c_str();
  const std::size_t length = portable.source.size();
  const IncludeOptions includes(portable.include_folders);
  const std::string options = portable.options + includes.text();
  cl_int code = CL_SUCCESS;
  Program program(api().clCreateProgramWithSource(context.get(), 1, &text, &length, &code));
  check(code, DeviceFault::compile, "clCreateProgramWithSource");
  code = api().clBuildProgram(program.get(), 1, &device, options.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS) {
    std::string log = includes.named_by_folders(program.log(device));
    if (code == CL_INVALID_BUILD_OPTIONS)
      log = fmt::format("the compiler does not take the options \"{}\"\n{}", options, log);
    throw device::compile_error(log.empty() ? "clBuildProgram: " + error_name(code) : log, code);
  }
  return program;
}

Program Program::from_portable(const Context& context, cl_device_id device, const PortableProgram& portable) {
  if (!portable.code.empty()) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(portable.code.data());
    const std::size_t size = portable.code.size();
    cl_int status = CL_SUCCESS, code = CL_SUCCESS;
    Program program(api().clCreateProgramWithBinary(context.get(), 1, &device, &size, &bytes, &status, &code));
    if (code == CL_SUCCESS && status == CL_SUCCESS &&
        api().clBuildProgram(program.get(), 1, &device, portable.options.c_str(), nullptr, nullptr) == CL_SUCCESS)
      return program;
  }
  return from_source(context, device, portable);
}

Program::Program(Program&& other) noexcept : program_(std::exchange(other.program_, nullptr)) {}

Program::~Program() {
  if (program_) api().clReleaseProgram(program_);
}

std::string Program::binary() const {
  std::size_t size = 0;
  if (api().clGetProgramInfo(program_, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) != CL_SUCCESS) return {};
  std::string bytes(size, '\0');
  auto* pointer = reinterpret_cast<unsigned char*>(bytes.data());
  if (api().clGetProgramInfo(program_, CL_PROGRAM_BINARIES, sizeof pointer, &pointer, nullptr) != CL_SUCCESS) return {};
  return bytes;
}

std::string Program::log(cl_device_id device) const {
  std::size_t size = 0;
  if (api().clGetProgramBuildInfo(program_, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) != CL_SUCCESS) return {};
  std::string text(size, '\0');
  api().clGetProgramBuildInfo(program_, device, CL_PROGRAM_BUILD_LOG, size, text.data(), nullptr);
  text = text.c_str();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

void BuiltPrograms::keep(const std::string& bytes, Program program) {
  if (programs_.size() >= kMost) programs_.clear();
  programs_[bytes] = std::make_shared<const Program>(std::move(program));
}

std::shared_ptr<const Program> BuiltPrograms::take(const std::string& bytes) {
  const auto node = programs_.extract(bytes);
  return node ? node.mapped() : nullptr;
}

PortableProgram program_of(const CompileJob& job) {
  PortableProgram program;
  for (const auto& [name, value] : job.defines) program.source += fmt::format("#define {} {}\n", name, value);
  program.source += fmt::format("#line 1 \"{}\"\n", job.source_name.empty() ? "kernel.cl" : job.source_name);
  program.source += job.source;
  program.options = fmt::format("{}", fmt::join(job.options, " "));
  program.include_folders = job.include_folders;
  return program;
}

namespace {

/// The kernel's parameters, with their types if the program reports them.
std::vector<device::KernelParameter> parameters_of(cl_kernel kernel) {
  cl_uint count = 0;
  check(api().clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr), DeviceFault::compile,
        "clGetKernelInfo");
  std::vector<device::KernelParameter> parameters(count);
  for (cl_uint i = 0; i < count && api().clGetKernelArgInfo; ++i) {
    char type[64] = {};
    if (api().clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_NAME, sizeof type - 1, type, nullptr) != CL_SUCCESS)
      continue;
    std::string& name = parameters[i].type = type;
    const std::size_t star = name.find('*');
    name.resize(std::min(star, name.size()));
    if (star != std::string::npos || element_type(name)) parameters[i].pointer = star != std::string::npos;
    cl_ulong qualifiers = 0;
    if (api().clGetKernelArgInfo(kernel, i, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof qualifiers, &qualifiers, nullptr) ==
        CL_SUCCESS)
      parameters[i].constant = star != std::string::npos && (qualifiers & CL_KERNEL_ARG_TYPE_CONST) != 0;
  }
  return parameters;
}

/// Some drivers accept a buffer in place of an image, and crash.
void refuse_images(const std::vector<device::KernelParameter>& parameters) {
  for (const device::KernelParameter& parameter : parameters)
    if (parameter.type.starts_with("image") || parameter.type == "sampler_t" || parameter.type == "pipe")
      throw DeviceError(DeviceFault::unsupported,
                        fmt::format("the kernel takes an argument of type {}; kernels are given buffers, scalars and "
                                    "local memory, no images, samplers or pipes",
                                    parameter.type));
}

class OpenclCompiler : public Compiler {
 public:
  explicit OpenclCompiler(DeviceEntry entry) : entry_(std::move(entry)), context_(entry_) {}
  OpenclCompiler(DeviceEntry entry, cl_context context, std::shared_ptr<BuiltPrograms> built)
      : entry_(std::move(entry)), context_(context), built_(std::move(built)) {}

  Binary compile(const CompileJob& job) override {
    if (job.language != Language::opencl)
      throw DeviceError(DeviceFault::unsupported, "an OpenCL device compiles OpenCL C only");
    PortableProgram portable = program_of(job);
    portable.options += " -cl-kernel-arg-info";
    Program program = Program::from_source(context_, entry_.device, portable);
    cl_int code = CL_SUCCESS;
    const cl_kernel kernel = api().clCreateKernel(program.get(), job.function.c_str(), &code);
    if (code == CL_INVALID_KERNEL_NAME)
      throw device::Mismatch(fmt::format("{} has no kernel \"{}\"", job.source_name, job.function), 0, code);
    check(code, DeviceFault::compile, "clCreateKernel");
    const std::vector<device::KernelParameter> parameters = parameters_of(kernel);
    api().clReleaseKernel(kernel);
    refuse_images(parameters);
    if (!job.arguments.empty()) device::check_arguments(job.function, parameters, job.arguments, true);
    if (!generates_code_at_launch()) portable.code = program.binary();
    Binary binary{portable.pack(), job.function, program.log(entry_.device)};
    if (built_) built_->keep(binary.bytes, std::move(program));
    return binary;
  }

  std::string identity() const override { return fmt::format("opencl | {} | {}", entry_.info.name, entry_.versions); }

 private:
  /// True for PoCL on CPUs, whose binary would contain generic code although specialised code is generated at the first
  /// launch. Building from source fills PoCL's cache, which is all that the runner needs.
  bool generates_code_at_launch() const {
    return entry_.info.is_cpu && entry_.platform_name == "Portable Computing Language";
  }

  DeviceEntry entry_;
  Context context_;
  std::shared_ptr<BuiltPrograms> built_;
};

}  // namespace

std::unique_ptr<Compiler> make_compiler_beside(const DeviceEntry& entry, const Context& context,
                                               std::shared_ptr<BuiltPrograms> built) {
  return std::make_unique<OpenclCompiler>(entry, context.get(), std::move(built));
}

}  // namespace ergotune::opencl

namespace ergotune::device {

std::unique_ptr<Compiler> make_opencl_compiler(const std::string& id) {
  return std::make_unique<opencl::OpenclCompiler>(opencl::find_device(id));
}

}  // namespace ergotune::device
