// Verifies single kernels of a workload with their own references.
#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include "ergotune/result.hpp"
#include "measure/buffers/problem_buffers.hpp"
#include "measure/timing/loaded_iteration.hpp"
#include "measure/verify/output_check.hpp"

namespace ergotune {

struct Kernel;
struct Problem;

/// The outputs of an iteration show that something is wrong; this class finds the kernel at fault, and errors that
/// later kernels hide. Runs an iteration in sequence. Around the first launch of each kernel with a verification of its
/// own (Kernel::verification) it reads the kernel's buffers, and compares with the outputs of the reference for the
/// same contents and scalars.
class KernelChecks {
 public:
  /// All arguments must outlive the object.
  KernelChecks(const Problem& problem, Device& device, ProblemBuffers& buffers, const Constants& constants);
  ~KernelChecks();
  bool wanted() const { return !kernels_.empty(); }
  /// Runs an iteration, which leaves the buffers as usual. Returns false if a kernel is wrong, which is named in the
  /// message of `result`. Quantity "error" is the largest relative error. Throws UserError if a reference fails, and
  /// DeviceError if the iteration fails.
  bool verify(LoadedIteration& round, const Configuration& configuration, Measurement& result);

 private:
  /// A kernel with its reference, which is compiled when it is first needed.
  struct Checked;
  void compare_with_reference(Checked& checked, const LoadedIteration::FirstLaunch& first,
                              const ExpectedOutputs& inputs, const Configuration& configuration, Measurement& result,
                              double& error);
  ExpectedOutputs contents_of(const Kernel& kernel, const BufferNames& names) const;
  const ExpectedOutputs& expected(Checked& checked, const LoadedIteration::FirstLaunch& first,
                                  const ExpectedOutputs& inputs, const Configuration& configuration);
  ExpectedOutputs run_reference(Checked& checked, const Constants& constants, const ExpectedOutputs& inputs,
                                const Configuration& configuration);

  const Problem& problem_;
  Device& device_;
  ProblemBuffers& buffers_;
  const Constants& constants_;
  std::map<std::size_t, std::unique_ptr<Checked>> kernels_;  ///< by index in Problem::kernels
  std::unique_ptr<Device> host_;
};

}  // namespace ergotune
