// Single kernels of a round held against references of their own.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ergotune/result.hpp"
#include "measure/buffers/problem_buffers.hpp"
#include "measure/timing/loaded_iteration.hpp"
#include "measure/verify/reference.hpp"

namespace ergotune {

/// What a round leaves says that something is wrong; this says which kernel, and finds what later kernels hide. A round
/// is run in sequence; around the first launch of each kernel with a verification of its own (Kernel::verification) its
/// buffers are read, and the reference, given the same contents and scalars, must come to the same.
class KernelChecks {
 public:
  /// All must live as long.
  KernelChecks(const Problem& problem, Device& device, ProblemBuffers& buffers, const Constants& constants);
  ~KernelChecks();
  bool wanted() const { return !kernels_.empty(); }
  /// Leaves the buffers as the round does. False when a kernel is wrong: then the measurement says which. Quantity
  /// "error" is the largest relative error. Throws UserError when a reference does not run, DeviceError when the round
  /// does not.
  bool verify(LoadedIteration& round, const Configuration& configuration, Measurement& result);

 private:
  /// A kernel with its reference, compiled when first needed.
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
  std::map<std::size_t, std::unique_ptr<Checked>> kernels_;  ///< by position in Problem::kernels
  std::unique_ptr<Device> host_;
};

}  // namespace ergotune
