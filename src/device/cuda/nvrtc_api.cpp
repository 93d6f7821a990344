#include "device/cuda/nvrtc_api.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/kernel_source/device_code.hpp"
#include "base/kernel_source/outline.hpp"
#include "base/process/environment.hpp"
#include "base/text.hpp"
#include "device/entries.hpp"
#include "problem/files/includes.hpp"

namespace ergotune::cuda {
namespace {

namespace fs = std::filesystem;

/// Sub-folders of `parent` whose name starts with `prefix`, newest (largest name) first.
std::vector<fs::path> folders_like(const fs::path& parent, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(parent, ignored))
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  std::sort(found.rbegin(), found.rend());
  return found;
}

std::vector<fs::path> python_folders() {
  std::vector<fs::path> pythons;
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const auto environment = environment_variable(variable); !environment.empty())
      for (auto& folder : folders_like(fs::path(environment) / "lib", "python3"))
        pythons.push_back(folder / "site-packages");
  for (const fs::path parent : {"/usr/local/lib", "/usr/lib", "/opt/conda/lib"})
    for (auto& folder : folders_like(parent, "python3")) {
      pythons.push_back(folder / "site-packages");
      pythons.push_back(folder / "dist-packages");
    }
  return pythons;
}

}  // namespace

std::vector<fs::path> toolkit_folders(std::span<const char* const> python_packages) {
  std::vector<fs::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"})
    if (const auto folder = environment_variable(variable); !folder.empty()) folders.emplace_back(folder);
  folders.emplace_back("/usr/local/cuda");
  for (auto& folder : folders_like("/usr/local", "cuda-")) folders.push_back(folder);
  for (const fs::path base : {"/opt/cuda", "/usr/lib/cuda"}) folders.push_back(base);
  for (const auto& python : python_folders())
    for (const char* package : python_packages) folders.push_back(python / package);
  return folders;
}

std::vector<std::string> toolkit_libraries(std::span<const char* const> python_packages,
                                           std::span<const char* const> names) {
  std::vector<std::string> found;
  for (const auto& folder : toolkit_folders(python_packages))
    for (const char* sub : {"lib64", "lib", "extras/CUPTI/lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"})
      for (const char* name : names) {
        std::error_code ignored;
        if (fs::exists(folder / sub / name, ignored)) found.push_back((folder / sub / name).string());
      }
  return found;
}

}  // namespace ergotune::cuda

namespace ergotune::nvrtc {
namespace {

namespace fs = std::filesystem;

constexpr std::array kNames = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"};

// pip packages: nvidia-cuda-nvrtc of CUDA 13 (merged folder) and of CUDA 12
constexpr std::array kPackages = {"nvidia/cu13", "nvidia/cuda_nvrtc"};

std::vector<std::string> usual_names() {
  std::vector<std::string> names(kNames.begin(), kNames.end());
  for (std::string& file : cuda::toolkit_libraries(kPackages, kNames)) names.push_back(std::move(file));
  return names;
}

}  // namespace

const Api& api() {
  static const Api& table =
      *new Api(library_names("ERGOTUNE_NVRTC", usual_names()));  // never closed (driver_table.hpp)
  return table;
}

std::string library_file(const Api& api) {
  Dl_info info{};
  void* function = api.find("nvrtcCompileProgram");
  if (!function || ::dladdr(function, &info) == 0 || !info.dli_fname) return api.library_name();
  std::error_code error;
  const auto path = fs::canonical(info.dli_fname, error);
  return error ? info.dli_fname : path.string();
}

std::vector<std::string> include_folders() {
  std::vector<fs::path> candidates;
  if (const fs::path library(api().library_name()); library.has_parent_path()) {
    candidates.push_back(library.parent_path().parent_path() / "include");
    // nvidia/cuda_nvrtc/lib -> nvidia/cuda_runtime/include
    candidates.push_back(library.parent_path().parent_path().parent_path() / "cuda_runtime" / "include");
  }
  for (const auto& folder : cuda::toolkit_folders(kPackages)) candidates.push_back(folder / "include");
  for (const auto& folder : candidates) {
    std::error_code ignored;
    if (!fs::exists(folder / "cuda_fp16.h", ignored)) continue;
    if (fs::exists(folder / "cccl", ignored)) return {folder.string(), (folder / "cccl").string()};  // since CUDA 13
    return {folder.string()};
  }
  return {};
}

Program::Program(const Api& api, const std::string& source, const std::string& name, const std::vector<Header>& headers)
    : api_(api) {
  std::vector<const char*> names, texts;
  for (const Header& header : headers) names.push_back(header.name.c_str()), texts.push_back(header.text.c_str());
  check(api_.nvrtcCreateProgram(&program_, source.c_str(), name.c_str(), static_cast<int>(headers.size()), texts.data(),
                                names.data()),
        "the program cannot be made");
}

Program::~Program() { api_.nvrtcDestroyProgram(&program_); }

void Program::check(nvrtcResult result, const char* what) const {
  if (result == NVRTC_SUCCESS) return;
  throw DeviceError(DeviceFault::compile, fmt::format("{}: {}", what, api_.nvrtcGetErrorString(result)), result);
}

std::string Program::log() const {
  std::size_t size = 0;
  if (api_.nvrtcGetProgramLogSize(program_, &size) != NVRTC_SUCCESS) return {};
  std::string text(size, '\0');
  if (size > 0 && api_.nvrtcGetProgramLog(program_, text.data()) != NVRTC_SUCCESS) return {};
  text = text.c_str();
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void Program::compile(const std::string& function, const std::vector<std::string>& options, std::string& log) {
  check(api_.nvrtcAddNameExpression(program_, function.c_str()), "the function's name is refused");
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  const nvrtcResult result = api_.nvrtcCompileProgram(program_, static_cast<int>(pointers.size()), pointers.data());
  log = this->log();
  if (result != NVRTC_SUCCESS && !log.empty()) throw device::compile_error(log, result);
  check(result, "the compiler failed");
}

namespace {

/// The header that was not found; empty: all were.
std::string missing_header(std::string_view log) {
  constexpr std::string_view kNvrtc = "open source file \"", kClang = "' file not found";
  if (const std::size_t at = log.find(kNvrtc); at != std::string_view::npos) {
    const std::string_view name = log.substr(at + kNvrtc.size());
    return std::string(name.substr(0, name.find('"')));
  }
  const std::size_t end = log.find(kClang);
  if (end == std::string_view::npos) return {};
  return std::string(log.substr(0, end).substr(log.rfind('\'', end - 1) + 1));
}

bool refuses_host_code(std::string_view log) {
  for (const char* sign : {"considered a host function", "marked as a __host__ function", "namespace \"std\" has no",
                           "in namespace 'std'", "undeclared identifier 'hip", "unknown type name 'hip"})
    if (log.find(sign) != std::string_view::npos) return true;
  return false;
}

bool lacks_types(std::string_view log) {
  for (const char* type : {"int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t",
                           "size_t", "ssize_t", "uint", "ushort", "ulong"})
    if (log.find(fmt::format("identifier \"{}\" is undefined", type)) != std::string_view::npos) return true;
  return false;
}

bool has(const std::vector<Header>& headers, const std::string& name) {
  return std::ranges::find(headers, name, &Header::name) != headers.end();
}

/// Returns the source with blanks for each #include of a header of the host that is not among `headers`.
std::string without_host_headers(std::string source, const std::vector<Header>& headers) {
  for (std::size_t at = 0; (at = source.find("#include", at)) != std::string::npos; ++at) {
    const std::size_t end = std::min(source.find('\n', at), source.size());
    const std::size_t open = source.find('<', at), close = source.find('>', at);
    if (open > end || close > end) continue;
    const std::string name = source.substr(open + 1, close - open - 1);
    if (is_for_host(name) && !has(headers, name)) source.replace(at, end - at, end - at, ' ');
  }
  return source;
}

/// Adds the device code of the job's headers in which host code was refused; returns false if there is no further one.
bool add_refused_headers(const CompileJob& job, const std::string& source, std::string_view log,
                         std::vector<Header>& headers) {
  const std::vector<IncludedFile> included = included_files(source, job.include_folders);
  const std::size_t before = headers.size();
  for (const IncludedFile& file : included) {
    const std::string place = file.path.filename().string() + "(";  // "helper.h(12): error"
    if (log.find(place) == std::string_view::npos || has(headers, file.name)) continue;
    kernel_source::Identifiers used = kernel_source::identifiers_in(source);
    for (const IncludedFile& other : included)
      if (other.path != file.path) used.merge(kernel_source::identifiers_in(other.text));
    headers.push_back({file.name, kernel_source::device_code_of(without_host_headers(file.text, headers), used)});
  }
  return headers.size() > before;
}

/// Throws if the compiler does not know the job's function, and neither the source nor its headers name it.
void require_function(const CompileJob& job, const std::string& source_name, std::string_view log) {
  std::string name = job.function.substr(0, job.function.find('<'));
  if (const std::size_t scope = name.rfind("::"); scope != std::string::npos) name.erase(0, scope + 2);
  name = trimmed(name);
  if (log.find(fmt::format("\"{}\"", name)) == std::string_view::npos &&
      log.find(fmt::format("'{}'", name)) == std::string_view::npos)
    return;
  std::string all = job.source;
  for (const IncludedFile& file : included_files(job.source, job.include_folders)) all += "\n" + file.text;
  if (kernel_source::identifiers_in(all).contains(name) || all.find("##") != std::string::npos) return;
  std::vector<std::string> kernels;
  for (const kernel_source::Function& function : kernel_source::outline_of(all).functions)
    if (function.head.find("__global__") != std::string::npos) kernels.push_back(function.name);
  throw device::Mismatch(fmt::format("{} has no kernel \"{}\"{}", source_name, job.function, suggestion(name, kernels)),
                         0, NVRTC_ERROR_COMPILATION);
}

}  // namespace

std::unique_ptr<Program> compiled_program(const Api& api, const CompileJob& job, const std::string& name,
                                          std::vector<Header> headers, const std::vector<std::string>& options,
                                          std::string& log) {
  std::string source = job.source;
  for (bool whole = true, typed = false;; whole = false) {
    auto program = std::make_unique<Program>(api, source, name, headers);
    try {
      program->compile(job.function, options, log);
      return program;
    } catch (const DeviceError&) {
      const std::string missing = missing_header(log);
      const bool lacks = is_for_host(missing) && !has(headers, missing), refuses = refuses_host_code(log);
      const bool added = refuses && add_refused_headers(job, source, log, headers);
      const bool untyped = !typed && lacks_types(log);
      if (!lacks && !added && !untyped && !(refuses && whole)) {
        require_function(job, name, log);
        throw;
      }
      if (untyped) source = fmt::format("{}#line 1 \"{}\"\n{}", types_of_nvcc(), name, source);
      typed = typed || untyped;
      if (whole)
        source = kernel_source::device_code_of(without_host_headers(std::move(source), headers));
      else if (lacks)
        headers.push_back({missing, "\n"});  // one that an included file includes
    }
  }
}

std::string Program::lowered_name(const std::string& function) const {
  const char* lowered = nullptr;
  const bool found = api_.nvrtcGetLoweredName(program_, function.c_str(), &lowered) == NVRTC_SUCCESS && lowered;
  return found ? lowered : "";
}

std::string Program::code(bool binary) const {
  std::size_t size = 0;
  check(binary ? api_.nvrtcGetCUBINSize(program_, &size) : api_.nvrtcGetPTXSize(program_, &size),
        "the size of the code");
  std::string bytes(size, '\0');
  check(binary ? api_.nvrtcGetCUBIN(program_, bytes.data()) : api_.nvrtcGetPTX(program_, bytes.data()), "the code");
  return bytes;
}

bool names(const std::vector<std::string>& options, std::string_view text) {
  return std::ranges::any_of(options,
                             [&](const std::string& option) { return option.find(text) != std::string::npos; });
}

std::vector<std::string> options_of(const CompileJob& job, const std::vector<std::string>& more_folders) {
  std::vector<std::string> options;
  if (!names(job.options, "-std")) options.emplace_back("--std=c++17");
  for (const auto& [name, value] : job.defines) options.push_back(fmt::format("-D{}={}", name, value));
  for (const auto& folder : job.include_folders) options.push_back("-I" + folder);
  for (const auto& folder : more_folders) options.push_back("-I" + folder);
  options.insert(options.end(), job.options.begin(), job.options.end());
  return options;
}

}  // namespace ergotune::nvrtc
