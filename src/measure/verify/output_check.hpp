// Verifies the outputs of an iteration, and that it wrote only inside of its buffers. Determines the expected outputs.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "ergotune/result.hpp"
#include "measure/buffers/problem_buffers.hpp"
#include "measure/runner.hpp"

namespace ergotune {

struct Problem;

/// Contents by argument name.
using ExpectedOutputs = std::map<std::string, std::vector<std::byte>>;

/// Determines the expected outputs from a reference kernel, a host function or files; returns nullopt if they come from
/// the first correct configuration, or if none are needed. `configuration`: parameters for the reference; null: the
/// defaults. Throws UserError if the reference fails.
std::optional<ExpectedOutputs> expected_outputs(const Problem& problem, Device& device, const ProblemBuffers& buffers,
                                                const Configuration* configuration = nullptr);

/// Writes expected outputs to a file for later runners. The file is complete or does not exist.
void save_outputs(const ExpectedOutputs& outputs, const std::filesystem::path& file);
/// Returns nullopt if the file is missing, truncated or corrupt.
std::optional<ExpectedOutputs> load_outputs(const std::filesystem::path& file);

class OutputCheck {
 public:
  /// Determines the expected outputs if the problem defines them; throws UserError if that fails. All arguments must
  /// outlive the object.
  OutputCheck(const Problem& problem, Device& device, ProblemBuffers& buffers, const MeasureOptions& options);

  void set_verifier(Verifier verifier) { verifier_ = std::move(verifier); }
  /// True if outputs are verified.
  bool wanted() const { return verifier_ || verifies(); }
  /// True if expected outputs are available, or none are needed.
  bool has_reference() const { return expected_.has_value() || !compares(); }
  /// True if expected outputs are available for each output that this configuration's kernels receive.
  bool has_all_references() const;
  /// Verifies the outputs of an iteration. Returns false and sets status and message of `result` if they are wrong. If
  /// there are no expected outputs, the first correct outputs become the expected ones. `reference_only`: keeps the
  /// outputs as the expected ones without comparing.
  bool verify(Measurement& result, bool reference_only);
  /// After verify() has accepted the outputs: runs the same iteration on other contents of the outputs that no kernel
  /// is declared to read, near its results (at most 16 MiB at their ends for the first configuration, 64 KiB for later
  /// ones). Outputs that depend on these are restored before each timed launch from then on. Adds warnings about them,
  /// and about outputs of which much is not written. Returns false, and sets status and message of `result`, if a later
  /// iteration does not write what the verified one has written: it would be timed without its work; or, until one
  /// configuration does not, if outputs depend on what lies outside of the buffers.
  bool check_access(const std::function<void()>& iterate, Measurement& result);
  /// Returns false, and sets status and message of `result`, if kernels have written outside of their buffers or to an
  /// input; then all memory has been restored.
  bool memory_intact(Measurement& result);
  /// Determines the expected outputs of this configuration if the reference depends on it: it runs once for each
  /// combination of the parameters that occur in it. Throws UserError if the reference fails.
  void expect(const Configuration& configuration);

 private:
  bool verifies() const;
  bool compares() const { return verifies() && !buffers_.outputs().empty(); }
  void read(const std::string& name);
  bool compared(const std::string& name) const;
  void keep_first();
  bool right(Measurement& result);
  bool unchanged(const std::string& name);
  bool has_numbers(const std::string& name, Measurement& result);
  bool passes_user_verifier(Measurement& result);
  std::span<const std::byte> verified_end(const std::string& name) const;
  bool repeats(const std::string& name, std::span<const std::byte> contents) const;
  std::size_t take_unwritten(const std::string& name, std::span<const std::byte> other,
                             std::span<std::byte> contents) const;
  bool reads_outside(const std::function<void()>& iterate, Measurement& result);
  bool keeps_results(const std::string& name, std::span<const std::byte> contents, Measurement& result) const;

  const Problem& problem_;
  Device& device_;
  ProblemBuffers& buffers_;
  const MeasureOptions& options_;
  Verifier verifier_;
  std::optional<ExpectedOutputs> expected_;
  std::map<std::string, bool> unchanged_;          ///< whether an expected output is what its buffer contained before
  std::map<std::string, std::size_t> not_finite_;  ///< elements of an expected output
  Configuration expected_for_;                     ///< values with which the reference has computed them
  std::vector<bool> seen_by_reference_;  ///< of each parameter; the others have their defaults in expected_for_
  std::vector<std::pair<Configuration, ExpectedOutputs>> earlier_;  ///< for other values
  std::size_t earlier_bytes_ = 0;
  std::vector<std::string> access_warnings_;  ///< of check_access(), for all later configurations
  std::size_t examined_;                      ///< bytes at the end of an output
  bool reads_inside_ = false;                 ///< check_access() has seen a configuration that reads nothing outside
  ExpectedOutputs actual_;                    ///< kept between configurations to avoid an allocation per run
  std::map<std::string, std::unique_ptr<PinnedMemory>> pinned_;  ///< memory of actual_
};

/// A Verifier, which open_target() finds in SetupOptions::verifier and adds to the session key.
struct IdentifiedVerifier {
  Verifier verify;
  std::string identity;  ///< equal for callbacks that accept the same outputs
  bool operator()(const std::vector<OutputView>& outputs, std::string& message, double& error) const {
    return verify(outputs, message, error);
  }
};

}  // namespace ergotune
