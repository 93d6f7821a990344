// Execution parameters (clocks, power limit) of live measurements: set before a request reaches the inner
// evaluator, never while another is being measured, in an order that changes them as seldom as possible.
#pragma once

#include <memory>
#include <vector>

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

}  // namespace ergotune
