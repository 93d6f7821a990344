// Compilation with NVRTC or hiprtc: a program, and the options of a job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/cuda/nvrtc_api.hpp"
#include "device/device.hpp"

namespace ergotune::nvrtc {

/// A program being compiled; destroyed with the object. Failures throw DeviceError(compile).
class Program {
 public:
  Program(const Api& api, const std::string& source, const std::string& name);
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

/// True if one of the options contains `text`.
bool names(const std::vector<std::string>& options, std::string_view text);
/// Returns the options: C++17 unless the job specifies another standard, macros, the job's folders and `more_folders`,
/// and the job's own options.
std::vector<std::string> options_of(const CompileJob& job, const std::vector<std::string>& more_folders = {});

}  // namespace ergotune::nvrtc
