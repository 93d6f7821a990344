#include "device/opencl_program.hpp"

#include <fmt/format.h>

#include <utility>

#include "device/backend.hpp"

namespace ergotune::opencl {
namespace {

constexpr std::string_view kMagic = "ergotune-opencl-1\n";

void append(std::string& bytes, const std::string& part) {
  bytes += fmt::format("{}\n", part.size());
  bytes += part;
}

std::string take(const std::string& bytes, std::size_t& at) {
  const std::size_t end = bytes.find('\n', at);
  std::size_t size = 0;
  if (end != std::string::npos && end > at)
    for (std::size_t i = at; i < end; ++i) size = size * 10 + static_cast<std::size_t>(bytes[i] - '0');
  if (end == std::string::npos || size > bytes.size() - end - 1)
    throw DeviceError(DeviceFault::compile, "the compiled OpenCL program is cut off");
  at = end + 1 + size;
  return bytes.substr(end + 1, size);
}

}  // namespace

std::string PortableProgram::pack() const {
  std::string bytes(kMagic);
  append(bytes, source);
  append(bytes, options);
  append(bytes, code);
  return bytes;
}

PortableProgram PortableProgram::unpack(const std::string& bytes) {
  if (bytes.compare(0, kMagic.size(), kMagic) != 0)
    throw DeviceError(DeviceFault::compile, "not a compiled OpenCL program of this version of ergotune");
  PortableProgram program;
  std::size_t at = kMagic.size();
  program.source = take(bytes, at);
  program.options = take(bytes, at);
  program.code = take(bytes, at);
  return program;
}

Program Program::from_source(const Context& context, cl_device_id device, const std::string& source,
                             const std::string& options) {
  const char* text = source.c_str();
  const std::size_t length = source.size();
  cl_int code = CL_SUCCESS;
  Program program(api().clCreateProgramWithSource(context.get(), 1, &text, &length, &code));
  check(code, DeviceFault::compile, "clCreateProgramWithSource");
  code = api().clBuildProgram(program.get(), 1, &device, options.c_str(), nullptr, nullptr);
  if (code != CL_SUCCESS) {
    std::string log = program.log(device);
    if (code == CL_INVALID_BUILD_OPTIONS)
      log = fmt::format("the compiler does not take the options \"{}\"\n{}", options, log);
    throw DeviceError(DeviceFault::compile, log.empty() ? "clBuildProgram: " + error_name(code) : log, code);
  }
  return program;
}

Program Program::from_portable(const Context& context, cl_device_id device, const PortableProgram& portable) {
  if (!portable.code.empty()) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(portable.code.data());
    const std::size_t size = portable.code.size();
    cl_int status = CL_SUCCESS, code = CL_SUCCESS;
    Program program(
        api().clCreateProgramWithBinary(context.get(), 1, &device, &size, &bytes, &status, &code));
    if (code == CL_SUCCESS && status == CL_SUCCESS &&
        api().clBuildProgram(program.get(), 1, &device, portable.options.c_str(), nullptr, nullptr) ==
            CL_SUCCESS)
      return program;
  }
  return from_source(context, device, portable.source, portable.options);
}

Program::Program(Program&& other) noexcept : program_(std::exchange(other.program_, nullptr)) {}

Program::~Program() {
  if (program_) api().clReleaseProgram(program_);
}

std::string Program::binary() const {
  std::size_t size = 0;
  if (api().clGetProgramInfo(program_, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) != CL_SUCCESS)
    return {};
  std::string bytes(size, '\0');
  auto* pointer = reinterpret_cast<unsigned char*>(bytes.data());
  if (api().clGetProgramInfo(program_, CL_PROGRAM_BINARIES, sizeof pointer, &pointer, nullptr) != CL_SUCCESS)
    return {};
  return bytes;
}

std::string Program::log(cl_device_id device) const {
  std::size_t size = 0;
  if (api().clGetProgramBuildInfo(program_, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size) != CL_SUCCESS)
    return {};
  std::string text(size, '\0');
  api().clGetProgramBuildInfo(program_, device, CL_PROGRAM_BUILD_LOG, size, text.data(), nullptr);
  text = text.c_str();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::string source_of(const CompileJob& job) {
  std::string text;
  for (const auto& [name, value] : job.defines) text += fmt::format("#define {} {}\n", name, value);
  text += fmt::format("#line 1 \"{}\"\n", job.source_name.empty() ? "kernel.cl" : job.source_name);
  return text + job.source;
}

std::string options_of(const CompileJob& job) {
  std::string text;
  for (const auto& option : job.options) text += option + " ";
  for (const auto& folder : job.include_folders) {
    const bool quote = folder.find(' ') != std::string::npos;
    text += quote ? fmt::format("-I\"{}\" ", folder) : fmt::format("-I{} ", folder);
  }
  if (!text.empty()) text.pop_back();
  return text;
}

namespace {

class OpenclCompiler : public Compiler {
 public:
  explicit OpenclCompiler(DeviceEntry entry) : entry_(std::move(entry)), context_(entry_) {}

  Binary compile(const CompileJob& job) override {
    if (job.language != Language::opencl)
      throw DeviceError(DeviceFault::unsupported, "an OpenCL device compiles OpenCL C only");
    PortableProgram portable{source_of(job), options_of(job), {}};
    const Program program = Program::from_source(context_, entry_.device, portable.source, portable.options);
    cl_int code = CL_SUCCESS;
    const cl_kernel kernel = api().clCreateKernel(program.get(), job.function.c_str(), &code);
    if (code == CL_INVALID_KERNEL_NAME)
      throw DeviceError(DeviceFault::compile,
                        fmt::format("{} has no kernel \"{}\"", job.source_name, job.function), code);
    check(code, DeviceFault::compile, "clCreateKernel");
    api().clReleaseKernel(kernel);
    portable.code = program.binary();
    return {portable.pack(), job.function, program.log(entry_.device)};
  }

  std::string identity() const override {
    return fmt::format("opencl | {} | {}", entry_.info.name, entry_.versions);
  }

 private:
  DeviceEntry entry_;
  Context context_;
};

}  // namespace
}  // namespace ergotune::opencl

namespace ergotune::device {

std::unique_ptr<Compiler> make_opencl_compiler(const std::string& id) {
  return std::make_unique<opencl::OpenclCompiler>(opencl::find_device(id));
}

}  // namespace ergotune::device
