// Captured problems with what wisdom says of them: what `ergotune run` puts in place of a program's own launches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/problem.hpp"
#include "kernel/compile_cache.hpp"
#include "kernel/wisdom.hpp"

namespace ergotune::cli {

/// A launch as the program wants it.
struct RequestedLaunch {
  std::string kernel, source, options, device;
  std::string interface;  ///< "opencl", "cuda" or "hip": the kind of device
  std::size_t dimensions = 1;
  std::array<std::uint64_t, 3> global{1, 1, 1};
  std::array<std::uint64_t, 3> block{0, 0, 0};  ///< 0: left to the driver
  std::uint64_t shared_bytes = 0;
};

/// What is launched instead, or why the program's own is.
struct ReplacementLaunch {
  bool use = false;
  std::string description;
  /// OpenCL's source, which the program's own driver compiles; CUDA's and HIP's code is compiled here, and its options
  /// are attributes of the function: "9=50 11=2".
  std::string source, options, function;
  std::array<std::uint64_t, 3> global{1, 1, 1}, block{1, 1, 1};
  std::uint64_t shared_bytes = 0;
  /// The core clock at which this launch, also where it is the program's own, was tuned on this device; 0: none. Its
  /// time and the time of a change of clock, s; 0: not known.
  double clock_mhz = 0, seconds = 0, clock_latency = 0;
  /// How far results may differ, and the arguments' element types.
  double absolute_tolerance = 0, relative_tolerance = 0;
  std::vector<std::string> types;
};

class TunedProblems {
 public:
  /// Captures (folders with problem.toml and capture.json) in `folder`, in folders below it and at `others`, with the
  /// wisdom in `folder`. Throws UserError where there is none.
  TunedProblems(const std::filesystem::path& folder, const std::vector<std::string>& others);
  ReplacementLaunch answer(const RequestedLaunch& requested);
  /// What its user should know of the files.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Tuned {
    Problem problem;
    std::string kernel, source_hash, options;
    std::vector<WisdomRecord> records;
  };
  void add(const std::filesystem::path& folder, const std::filesystem::path& wisdom);
  const DeviceInfo* device_named(const std::string& backend, const std::string& name);
  void compile(const CompileJob& job, const DeviceInfo& device, ReplacementLaunch& given);
  ReplacementLaunch choose(const Tuned& tuned, const RequestedLaunch& requested);

  std::vector<Tuned> tuned_;
  std::vector<std::string> notes_;
  std::map<std::string, std::vector<DeviceInfo>> devices_;            ///< by backend
  std::map<std::string, std::unique_ptr<CachedCompiler>> compilers_;  ///< by device
};

}  // namespace ergotune::cli
