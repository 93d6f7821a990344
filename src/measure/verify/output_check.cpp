#include "measure/verify/output_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ergotune/problem.hpp"
#include "kernel/compare.hpp"

namespace ergotune {

OutputCheck::OutputCheck(const Problem& problem, Device& device, ProblemBuffers& buffers, const MeasureOptions& options)
    : problem_(problem), device_(device), buffers_(buffers), options_(options) {
  if (!compares()) return;
  expected_ = expected_outputs(problem, device, buffers);
  if (!expected_ && !options.reference_file.empty()) expected_ = load_outputs(options.reference_file);
  const auto is_output = [&](const auto& entry) {
    return std::count(buffers.outputs().begin(), buffers.outputs().end(), entry.first) > 0;
  };
  if (expected_ && !std::all_of(expected_->begin(), expected_->end(), is_output)) expected_.reset();
}

void OutputCheck::read(const std::string& name) {
  std::vector<std::byte>& contents = actual_[name];
  contents.resize(buffers_.bytes(name));
  if (!pinned_.contains(name)) pinned_[name] = device_.pin(contents);
  buffers_.read(name, contents);
}

bool OutputCheck::verifies() const { return options_.verify && problem_.verification.kind != Verification::Kind::none; }

bool OutputCheck::compared(const std::string& name) const {
  const auto& wanted = problem_.verification.outputs;
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
}

void OutputCheck::expect(const Configuration& configuration) {
  if (verifier_ || !compares() || !problem_.verification.per_configuration) return;
  expected_ = expected_outputs(problem_, device_, buffers_, &configuration);
}

bool OutputCheck::memory_intact(Measurement& result) {
  std::string fault = buffers_.written_outside();
  if (fault.empty()) fault = buffers_.changed_inputs();
  if (fault.empty()) return true;
  result.status = Status::wrong_result;
  result.message = fault;
  return false;
}

bool OutputCheck::verify(Measurement& result, bool reference_only) {
  for (const std::string& name : buffers_.outputs()) read(name);
  // Checked before the outputs may become the reference.
  if (!memory_intact(result)) return false;
  if (!verifier_) {
    if (problem_.verification.kind == Verification::Kind::first_correct) keep_first(result);
  }
  if (reference_only) return true;
  if (verifier_ ? passes_user_verifier(result) : right(result)) return true;
  result.status = Status::wrong_result;
  return false;
}

bool OutputCheck::has_all_references() const {
  const auto& outputs = buffers_.outputs();
  return !compares() || (expected_ && std::all_of(outputs.begin(), outputs.end(),
                                                  [&](const std::string& name) { return expected_->contains(name); }));
}

/// Keeps the first outputs of each name as the expected ones. Arguments that depend on the configuration are added when
/// they first occur, in this process or another.
void OutputCheck::keep_first(Measurement& result) {
  if (has_all_references()) return;
  if (!expected_) expected_.emplace();
  if (!options_.reference_file.empty())
    if (auto known = load_outputs(options_.reference_file)) expected_->merge(*known);
  bool fresh = false;
  for (const std::string& name : buffers_.outputs()) {
    if (!expected_->emplace(name, actual_[name]).second) continue;
    fresh = true;
    // NaN equals NaN, so that a kernel which computes only NaN would pass; hence the warning.
    const std::size_t count = nans_in(buffers_.argument(name).type, actual_[name]);
    if (count > 0)
      result.warnings.push_back(fmt::format(
          "output \"{}\" of this configuration, which the others are compared with, holds {} NaN", name, count));
  }
  if (fresh && !options_.reference_file.empty()) save_outputs(*expected_, options_.reference_file);
}

bool OutputCheck::passes_user_verifier(Measurement& result) {
  std::vector<OutputView> views;
  for (const std::string& name : buffers_.outputs()) {
    OutputView view;
    view.argument = &buffers_.argument(name);
    view.actual = actual_[name];
    if (expected_ && expected_->contains(name)) view.expected = expected_->at(name);
    views.push_back(view);
  }
  double error = 0;
  std::string message;
  const bool is_right = verifier_(views, message, error);
  result.quantities["error"] = {error, 0, 1, "verification by the user's function", {}, Provenance::measured};
  if (!is_right) result.message = message.empty() ? "the user's verification rejects the outputs" : message;
  return is_right;
}

bool OutputCheck::right(Measurement& result) {
  if (!compares()) return true;
  double error = 0;
  for (const std::string& name : buffers_.outputs()) {
    const auto known = expected_->find(name);
    if (known == expected_->end() || !compared(name)) continue;
    const auto& wanted = problem_.verification.compare;
    const auto how = wanted.find(name);
    const BufferComparison found =
        compare(how == wanted.end() ? Compare::elements : how->second, buffers_.argument(name).type, actual_[name],
                known->second, problem_.verification.absolute_tolerance, problem_.verification.relative_tolerance);
    error = std::max(error, found.error);
    if (!found.equal) {
      result.message =
          fmt::format("{}output \"{}\": {}", result.message.empty() ? "" : result.message + "; ", name, found.message);
    }
  }
  if (std::isfinite(error)) {
    result.quantities["error"] = {error, 0, 1, "largest relative error of the outputs", {}, Provenance::measured};
  }
  return result.message.empty();
}

}  // namespace ergotune
