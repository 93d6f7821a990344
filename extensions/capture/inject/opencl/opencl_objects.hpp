// A program's OpenCL programs and kernels, from their making to their end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "capture/inject/kernel_log.hpp"
#include "capture/inject/opencl/opencl_table.hpp"

namespace ergotune::inject {

struct ProgramState {
  std::string source, options;
  /// Why its source is not known ("made from a binary"); empty where it is.
  std::string without_source;
  int references = 1;
};

struct ArgumentValue {
  std::vector<std::byte> bytes;
  /// As set; local memory has a size and no bytes.
  std::size_t size = 0;
  bool set = false, local = false, shared_virtual = false;
  /// Counts how often it was set.
  std::uint64_t version = 0;
};

struct TunedLaunch;

struct KernelState {
  std::string name;
  std::shared_ptr<ProgramState> program;
  std::vector<ArgumentValue> arguments;
  /// Arguments of clSetKernelExecInfo cannot be queried elsewhere.
  bool has_execution_info = false;
  std::shared_ptr<KernelLog::Entry> entry;
  std::mutex mutex;  ///< of what follows
  std::vector<std::shared_ptr<TunedLaunch>> tuned;
  int references = 1;
};

class Objects {
 public:
  /// Live for ever.
  static Objects& get();

  void add(cl_program program, ProgramState state);
  void built(cl_program program, const char* options);
  std::shared_ptr<ProgramState> find(cl_program program);
  void add(cl_kernel kernel, std::string name, std::shared_ptr<ProgramState> program);
  /// nullptr for one that was not seen being made. Lives until the program releases it.
  KernelState* find(cl_kernel kernel);
  void clone(cl_kernel from, cl_kernel to);
  /// Counts references, +1 or -1; forgets what has none.
  void refer(cl_program program, int by);
  void refer(cl_kernel kernel, int by);

 private:
  std::shared_mutex mutex_;
  std::unordered_map<cl_program, std::shared_ptr<ProgramState>> programs_;
  std::unordered_map<cl_kernel, std::unique_ptr<KernelState>> kernels_;
};

}  // namespace ergotune::inject
