// Execution parameters (clocks, power limit) of live measurements: set before a request reaches the inner
// evaluator, never while another is being measured, in an order that changes them as seldom as possible.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ergotune/device/device.hpp"
#include "ergotune/evaluate/evaluator.hpp"
#include "ergotune/power/guardian.hpp"

namespace ergotune {

/// Wraps `inner`: each request's execution parameters (those of `parameters` that are not code) are set
/// through `session` before the request is passed on. Requests are batched by setting. A setting that the
/// hardware refuses is that configuration's status (unsupported for an invalid value or pair, launch_error
/// for the rest) and nothing is measured. Where the clock that ran (quantity core_clock) is not the one asked
/// for, the measurement gets a warning "asked 1410 MHz, ran 1275 MHz, power cap". Clocks are restored when
/// the evaluator is destroyed.
std::unique_ptr<Evaluator> make_controlled_evaluator(std::unique_ptr<Evaluator> inner,
                                                     std::unique_ptr<ControlSession> session,
                                                     std::vector<Parameter> parameters);

/// What prepare_controls() found.
struct ControlSetup {
  /// Null: clocks and limits stay as they are.
  std::unique_ptr<ControlSession> session;
  /// For the user: a stale journal was replayed, permission is missing, a lock was taken over.
  std::vector<std::string> notes;
};

/// Everything that must happen to clocks before a problem is tuned on a device. Replays stale journals; when
/// the problem has execution parameters, opens the control (`control_ids`, at most one; empty: the device's
/// own), puts the parameters with the hardware's values in front of problem.parameters (what stands first
/// varies slowest in enumeration order, so clocks change seldom), clears problem.execution_parameters, and
/// opens the session. Where clocks may not be set, the notes say what is missing and the problem is tuned
/// without them. Throws UserError for a user's mistake: an unknown control, values that the hardware has not,
/// a device that another session holds. To be called before problem.build_space(); then, with a session,
/// make_controlled_evaluator(live evaluator, session, problem.parameters).
ControlSetup prepare_controls(Problem& problem, const DeviceInfo& device,
                              const std::vector<std::string>& control_ids, bool take_over = false,
                              const std::map<ParameterKind, std::vector<double>>& suggested = {});

}  // namespace ergotune
