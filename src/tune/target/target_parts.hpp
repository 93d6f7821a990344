// The steps of open_target().
#pragma once

#include "power/controls/control.hpp"
#include "tune/target/target.hpp"

namespace ergotune {

/// Builds the target's space from its problem and constants. Throws UserError for an empty space.
void build_space(Target& target, const SetupOptions& options);
/// Adds notes on parameters that change nothing and on outputs that nothing verifies.
void add_problem_notes(Target& target, const SetupOptions& options);
/// The options for live measurements of this problem: energy if the objective uses it, pauses for idle power.
LiveOptions live_options(Problem& problem, const SetupOptions& options);
/// Sets the parts of the session key: the device (this GPU, or GPUs of this type) and the measurement settings.
void set_conditions(Target& target, const SetupOptions& options, const LiveOptions& live);
/// The control that sets the execution parameters on a device. null if none may be used; execution parameters are then
/// removed from the problem. `named`: some parameters are execution parameters by their names already. These cannot be
/// removed, since results would carry a clock that was not set, so that UserError is thrown instead. Throws UserError
/// as well for a --control without execution parameters.
std::unique_ptr<Control> find_control(Target& target, const DeviceInfo& device, const SetupOptions& options,
                                      bool named);
/// A kind of target that an extension adds. Registered kinds are tried before the core's, in the order of registration.
struct TargetKind {
  /// Whether this kind opens the problem with these options.
  bool (*applies)(const Problem& problem, const SetupOptions& options);
  void (*open)(Target& target, const SetupOptions& options);
};
void register_target(TargetKind kind);
/// Opens devices of this machine.
void open_live(Target& target, const SetupOptions& options);

}  // namespace ergotune
