// NVRTC, CUDA's run-time compiler, as a table of entry points. It needs neither GPU nor driver. AMD's hiprtc has the
// same functions under different names (hip_api.hpp). Also the folders of CUDA toolkits.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/driver_table.hpp"
#include "device/cuda/c_headers.hpp"
#include "device/device.hpp"

namespace ergotune::cuda {

/// Returns folders of toolkits (CUDA_HOME, /usr/local/cuda ...), then of the given Python packages ("nvidia/cu13") in
/// the active environment and in the system's; most specific first. The folders need not exist.
std::vector<std::filesystem::path> toolkit_folders(std::span<const char* const> python_packages);

/// Returns the files with these names in those folders, below lib64, lib, and the toolkits' other places.
std::vector<std::string> toolkit_libraries(std::span<const char* const> python_packages,
                                           std::span<const char* const> names);

}  // namespace ergotune::cuda

namespace ergotune::nvrtc {

using nvrtcResult = int;
using nvrtcProgram = struct ProgramHandle*;
inline constexpr nvrtcResult NVRTC_SUCCESS = 0;
inline constexpr nvrtcResult NVRTC_ERROR_COMPILATION = 6;

struct Api : DriverTable {
  explicit Api(const std::vector<std::string>& libraries, Dictionary dictionary = nullptr)
      : DriverTable(libraries, dictionary) {}

  EntryPoint<const char*(nvrtcResult)> nvrtcGetErrorString{this, "nvrtcGetErrorString"};
  EntryPoint<nvrtcResult(int*, int*)> nvrtcVersion{this, "nvrtcVersion"};
  EntryPoint<nvrtcResult(int*)> nvrtcGetNumSupportedArchs{this, "nvrtcGetNumSupportedArchs", Need::optional};
  EntryPoint<nvrtcResult(int*)> nvrtcGetSupportedArchs{this, "nvrtcGetSupportedArchs", Need::optional};
  EntryPoint<nvrtcResult(nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*)>
      nvrtcCreateProgram{this, "nvrtcCreateProgram"};
  EntryPoint<nvrtcResult(nvrtcProgram*)> nvrtcDestroyProgram{this, "nvrtcDestroyProgram"};
  EntryPoint<nvrtcResult(nvrtcProgram, const char*)> nvrtcAddNameExpression{this, "nvrtcAddNameExpression"};
  EntryPoint<nvrtcResult(nvrtcProgram, int, const char* const*)> nvrtcCompileProgram{this, "nvrtcCompileProgram"};
  EntryPoint<nvrtcResult(nvrtcProgram, const char*, const char**)> nvrtcGetLoweredName{this, "nvrtcGetLoweredName"};
  EntryPoint<nvrtcResult(nvrtcProgram, std::size_t*)> nvrtcGetProgramLogSize{this, "nvrtcGetProgramLogSize"};
  EntryPoint<nvrtcResult(nvrtcProgram, char*)> nvrtcGetProgramLog{this, "nvrtcGetProgramLog"};
  EntryPoint<nvrtcResult(nvrtcProgram, std::size_t*)> nvrtcGetCUBINSize{this, "nvrtcGetCUBINSize"};
  EntryPoint<nvrtcResult(nvrtcProgram, char*)> nvrtcGetCUBIN{this, "nvrtcGetCUBIN"};
  EntryPoint<nvrtcResult(nvrtcProgram, std::size_t*)> nvrtcGetPTXSize{this, "nvrtcGetPTXSize", Need::optional};
  EntryPoint<nvrtcResult(nvrtcProgram, char*)> nvrtcGetPTX{this, "nvrtcGetPTX", Need::optional};
};

/// Returns the table, which is loaded at first use from the library named by ERGOTUNE_NVRTC, else by name, else from
/// the folders of CUDA toolkits and Python packages. Callers must check usable().
const Api& api();

/// Returns the path of the library that an api was loaded from, with its full version in the file name.
std::string library_file(const Api& api);

/// Returns folders with CUDA's headers (cuda_fp16.h ...) that belong to the loaded NVRTC; may be empty.
std::vector<std::string> include_folders();

// Compilation with NVRTC or hiprtc: a program, and the options of a job.

/// A program being compiled; destroyed with the object. Failures throw DeviceError(compile).
class Program {
 public:
  /// `headers`: what the source may include beside the files of its folders.
  Program(const Api& api, const std::string& source, const std::string& name, const std::vector<Header>& headers = {});
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  /// Compiles the program such that it contains `function`, a name or a name expression. `log` receives the compiler's
  /// messages even if compilation fails, which throws with these messages.
  void compile(const std::string& function, const std::vector<std::string>& options, std::string& log);
  /// Returns the lowered name of the function; empty if the library does not know it.
  std::string lowered_name(const std::string& function) const;
  /// Returns device code (`binary`) or intermediate code.
  std::string code(bool binary) const;

 private:
  void check(nvrtcResult result, const char* what) const;
  std::string log() const;
  const Api& api_;
  nvrtcProgram program_ = nullptr;
};

/// Compiles a job's source as it is, and if that fails because it contains host code, without it and the headers that
/// only host code needs (kernel_source::device_code_of()). Throws what the last attempt throws.
std::unique_ptr<Program> compiled_program(const Api& api, const CompileJob& job, const std::string& name,
                                          std::vector<Header> headers, const std::vector<std::string>& options,
                                          std::string& log);

/// True if one of the options contains `text`.
bool names(const std::vector<std::string>& options, std::string_view text);
/// Returns the options: C++17 unless the job specifies another standard, macros, the job's folders and `more_folders`,
/// and the job's own options.
std::vector<std::string> options_of(const CompileJob& job, const std::vector<std::string>& more_folders = {});

}  // namespace ergotune::nvrtc
