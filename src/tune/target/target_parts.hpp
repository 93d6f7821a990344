// The parts that open_target() is made of.
#pragma once

#include "power/controls/control.hpp"
#include "tune/target/target.hpp"

namespace ergotune {

/// The target's space, from its problem and constants. Throws UserError for an empty one.
void build_space(Target& target, const SetupOptions& options);
/// What live measurements of this problem need: energy where the objective rests on it, pauses for idle power.
LiveOptions live_options(Problem& problem, const SetupOptions& options);
/// What results depend on of who measures them (this very GPU, or GPUs of this kind), and how they are measured.
void set_conditions(Target& target, const SetupOptions& options, const LiveOptions& live);
/// The control that sets the execution parameters on a device; null when there is none that may be used: then they are
/// left out. `named`: some are parameters by name already; a result would carry a clock that was not set, so that is
/// refused.
std::unique_ptr<Control> find_control(Target& target, const DeviceInfo& device, const SetupOptions& options,
                                      bool named);
/// A kind of target that an extension adds: tried before the targets of the core, in the order of registration.
struct TargetKind {
  /// Whether it opens this problem with these options.
  bool (*applies)(const Problem& problem, const SetupOptions& options);
  void (*open)(Target& target, const SetupOptions& options);
};
void register_target(TargetKind kind);
/// Opens devices of this machine.
void open_live(Target& target, const SetupOptions& options);

}  // namespace ergotune
