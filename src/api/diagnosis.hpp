// Diagnosis of this machine: what works, what does not, and how to correct it. Used by `ergotune doctor` and `tune`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ergotune {

struct Finding {
  enum class State {
    ok,
    absent,   ///< not on this machine, which may be intended
    warning,  ///< works, but could work better
    failed    ///< present but does not work
  } state = State::ok;
  std::string area;     ///< "kernels", "energy", "clocks", "storage", "machine"
  std::string subject;  ///< a device, a driver, a folder
  std::string message;
  std::string remedy;  ///< what to do; empty: nothing
};
std::string to_string(Finding::State state);

struct Diagnosis {
  std::vector<Finding> findings;
  /// Whether a kernel was compiled, ran and computed the correct result on at least one device.
  bool can_tune() const;
};

/// Compiles and runs a small kernel on each device of this machine, and checks sensors, controls, settings that a
/// session left behind, writable folders and load. Changes no setting; takes some seconds. `command`: the `ergotune`
/// command whose workers compile and run. Files are looked up in the current folder.
Diagnosis diagnose(const std::string& command);
/// Returns a note if more than `per_cpu` processes run for each CPU of this machine; else nothing.
std::string note_of_load(double per_cpu);
/// The document printed by `ergotune doctor --json`.
nlohmann::ordered_json diagnosis_document(const Diagnosis& diagnosis);

}  // namespace ergotune
