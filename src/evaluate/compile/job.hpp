// A request of the live evaluator, from submission to its result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "evaluate/evaluator.hpp"
#include "power/controls/control.hpp"

namespace ergotune {

struct Job {
  EvaluationRequest request;
  /// Only its outputs are needed, as expected outputs.
  bool reference_only = false;
  /// The only device worker that may run it, by number; nullopt: any.
  std::optional<std::size_t> device;
  /// The values of its execution parameters.
  ControlSetting setting;
  /// Numbers of the device workers whose devices have refused that setting.
  std::set<std::size_t> refused_by;
  /// It ran under another setting than requested and is run a second time.
  bool again = false;
  /// Its compilation is repeated, because the runner that compiled it ended or the compiler was killed.
  bool compiled_again = false;
  /// It ran under conditions that the reference on its device did not meet (such as thermal throttling), and is run a
  /// second time.
  bool disturbed = false;
  /// Its runner was killed while it ran, and it is run a second time.
  bool killed = false;
  /// Number of later requests that ran before it.
  int overtaken_count = 0;
  /// By kernel of the problem: the key of its code, and the code once it is compiled.
  std::vector<std::string> code_keys;
  std::vector<std::shared_ptr<const Binary>> code;
  double compile_seconds = 0;
  double ours = 0;  ///< s of round trips to workers, without compilation and kernel

  bool compiled() const {
    return std::all_of(code.begin(), code.end(), [](const auto& binary) { return binary != nullptr; });
  }
};
using JobPointer = std::shared_ptr<Job>;

}  // namespace ergotune
