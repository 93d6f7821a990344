#include "device/rtc_program.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ergotune::nvrtc {

Program::Program(const Api& api, const std::string& source, const std::string& name) : api_(api) {
  check(api_.nvrtcCreateProgram(&program_, source.c_str(), name.c_str(), 0, nullptr, nullptr),
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
  if (result != NVRTC_SUCCESS && !log.empty()) throw DeviceError(DeviceFault::compile, log, result);
  check(result, "the compiler failed");
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
