// What compiling with NVRTC and with hiprtc has in common: a program, and the options that come of a job.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "device/cuda/nvrtc_api.hpp"
#include "device/device.hpp"

namespace ergotune::nvrtc {

/// A program under compilation; destroyed with the object. Failures are DeviceError(compile).
class Program {
 public:
  Program(const Api& api, const std::string& source, const std::string& name);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  /// Compiles it with `function`, a name or a name expression, in it. Whatever the compiler said is in `log`, also when
  /// this throws, which it does with these words.
  void compile(const std::string& function, const std::vector<std::string>& options, std::string& log);
  /// What compiled code calls the function; empty where the library does not know.
  std::string lowered_name(const std::string& function) const;
  /// Code for the device; otherwise intermediate code.
  std::string code(bool binary) const;

 private:
  void check(nvrtcResult result, const char* what) const;
  std::string log() const;
  const Api& api_;
  nvrtcProgram program_ = nullptr;
};

/// True when one of the options has `text` in it.
bool names(const std::vector<std::string>& options, std::string_view text);
/// C++17 unless the job says another, macros, the job's folders and `more_folders`, the job's own options.
std::vector<std::string> options_of(const CompileJob& job, const std::vector<std::string>& more_folders = {});

}  // namespace ergotune::nvrtc
