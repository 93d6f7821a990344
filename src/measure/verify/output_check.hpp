// Whether the outputs of a round are right, and whether it wrote outside of its buffers.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/result.hpp"
#include "measure/buffers/problem_buffers.hpp"
#include "measure/runner.hpp"
#include "measure/verify/reference.hpp"

namespace ergotune {

class OutputCheck {
 public:
  /// Works out what is expected where the problem says how; throws UserError when that fails. All must live
  /// as long.
  OutputCheck(const Problem& problem, Device& device, ProblemBuffers& buffers, const MeasureOptions& options);

  void set_verifier(Verifier verifier) { verifier_ = std::move(verifier); }
  /// Whether what a round leaves is looked at.
  bool wanted() const { return verifier_ || verifies(); }
  /// True once there are expected outputs to compare with (or none are wanted).
  bool has_reference() const { return expected_.has_value() || !compares(); }
  /// The same of every output that this configuration's kernels are given.
  bool knows_all() const;
  /// Looks at what a round has left. False when it is wrong: then the measurement says so. The first right
  /// outputs become what is expected where nothing else is; with `reference_only` nothing is compared.
  bool verify(Measurement& result, bool reference_only);
  /// False where kernels have written outside of their buffers, or to an input: then the measurement says so, and all
  /// memory is as at first.
  bool memory_intact(Measurement& result);
  /// What is expected of this configuration, where the reference follows it. Throws UserError when the reference fails.
  void expect(const Configuration& configuration);

 private:
  bool verifies() const { return options_.verify && problem_.verification.kind != Verification::Kind::none; }
  bool compares() const { return verifies() && !buffers_.outputs().empty(); }
  void read(const std::string& name);
  bool compared(const std::string& name) const;
  void keep_first(Measurement& result);
  bool right(Measurement& result);
  bool right_for_user(Measurement& result);

  const Problem& problem_;
  Device& device_;
  ProblemBuffers& buffers_;
  const MeasureOptions& options_;
  Verifier verifier_;
  std::optional<ExpectedOutputs> expected_;
  ExpectedOutputs actual_;                                       ///< kept between configurations: no allocation per run
  std::map<std::string, std::unique_ptr<PinnedMemory>> pinned_;  ///< of actual_
};

}  // namespace ergotune
