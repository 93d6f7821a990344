// What works on this machine, what does not, and what to do about it: `ergotune doctor`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ergotune {

struct Finding {
  enum class State {
    ok,
    absent,   ///< not on this machine, which may be as it should be
    warning,  ///< works, but not as well as it could
    failed    ///< is there and does not work
  } state = State::ok;
  std::string area;     ///< "kernels", "energy", "clocks", "storage", "machine"
  std::string subject;  ///< a device, a driver, a folder
  std::string message;
  std::string remedy;  ///< what to do; empty where there is nothing to do
};
std::string to_string(Finding::State state);

struct Diagnosis {
  std::vector<Finding> findings;
  /// Whether a kernel was compiled, ran and gave the right result on at least one device.
  bool can_tune() const;
};

/// Compiles and runs a small kernel on every device that is here, and looks for sensors, controls, settings that a
/// session left behind, writable folders and load. Changes no setting; takes some seconds. `command` is the
/// `ergotune` command whose workers compile and run; files are looked for from the current folder.
Diagnosis diagnose(const std::string& command);
/// The document of `ergotune doctor --json`.
nlohmann::ordered_json diagnosis_document(const Diagnosis& diagnosis);

}  // namespace ergotune
