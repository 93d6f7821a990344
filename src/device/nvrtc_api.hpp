// NVRTC, CUDA's run-time compiler, as one table. It needs no GPU and no driver. AMD's hiprtc has the same functions under
// names of its own (hiprtc_api.hpp).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/driver_table.hpp"

namespace ergotune::nvrtc {

using nvrtcResult = int;
using nvrtcProgram = struct ProgramHandle*;
inline constexpr nvrtcResult NVRTC_SUCCESS = 0;
inline constexpr nvrtcResult NVRTC_ERROR_COMPILATION = 6;

struct Api : DriverTable {
  explicit Api(const std::vector<std::string>& libraries, Dictionary dictionary = nullptr)
      : DriverTable(libraries, dictionary) {}

  Entry<const char*(nvrtcResult)> nvrtcGetErrorString{this, "nvrtcGetErrorString"};
  Entry<nvrtcResult(int*, int*)> nvrtcVersion{this, "nvrtcVersion"};
  Entry<nvrtcResult(int*)> nvrtcGetNumSupportedArchs{this, "nvrtcGetNumSupportedArchs", Need::optional};
  Entry<nvrtcResult(int*)> nvrtcGetSupportedArchs{this, "nvrtcGetSupportedArchs", Need::optional};
  Entry<nvrtcResult(nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*)>
      nvrtcCreateProgram{this, "nvrtcCreateProgram"};
  Entry<nvrtcResult(nvrtcProgram*)> nvrtcDestroyProgram{this, "nvrtcDestroyProgram"};
  Entry<nvrtcResult(nvrtcProgram, const char*)> nvrtcAddNameExpression{this, "nvrtcAddNameExpression"};
  Entry<nvrtcResult(nvrtcProgram, int, const char* const*)> nvrtcCompileProgram{this, "nvrtcCompileProgram"};
  Entry<nvrtcResult(nvrtcProgram, const char*, const char**)> nvrtcGetLoweredName{this,
                                                                                  "nvrtcGetLoweredName"};
  Entry<nvrtcResult(nvrtcProgram, std::size_t*)> nvrtcGetProgramLogSize{this, "nvrtcGetProgramLogSize"};
  Entry<nvrtcResult(nvrtcProgram, char*)> nvrtcGetProgramLog{this, "nvrtcGetProgramLog"};
  Entry<nvrtcResult(nvrtcProgram, std::size_t*)> nvrtcGetCUBINSize{this, "nvrtcGetCUBINSize"};
  Entry<nvrtcResult(nvrtcProgram, char*)> nvrtcGetCUBIN{this, "nvrtcGetCUBIN"};
  Entry<nvrtcResult(nvrtcProgram, std::size_t*)> nvrtcGetPTXSize{this, "nvrtcGetPTXSize", Need::optional};
  Entry<nvrtcResult(nvrtcProgram, char*)> nvrtcGetPTX{this, "nvrtcGetPTX", Need::optional};
};

/// The table, loaded on first use: from ERGOTUNE_NVRTC when set, else by name, else from the folders where
/// CUDA toolkits and Python packages put it. Check usable().
const Api& api();

/// Folders with CUDA's headers (cuda_fp16.h ...) that belong to the NVRTC found; may be empty.
std::vector<std::string> include_folders();

}  // namespace ergotune::nvrtc
