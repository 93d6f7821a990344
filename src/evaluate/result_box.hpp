// Where an evaluator's thread leaves what has ended, and callers wait for it.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "evaluate/evaluator.hpp"

namespace ergotune {

/// The next of `results`; nullopt after `seconds` without one. Throws `broken` once those that there were are taken.
/// `lock` holds the mutex of all of them, and `changed` is notified of each change.
inline std::optional<EvaluationResult> take_result(std::unique_lock<std::mutex>& lock, std::condition_variable& changed,
                                                   std::deque<EvaluationResult>& results,
                                                   const std::exception_ptr& broken, double seconds) {
  // A longer time would overflow the clock.
  const std::chrono::duration<double> patience(std::clamp(seconds, 0.0, 1e6));
  changed.wait_for(lock, patience, [&] { return !results.empty() || broken; });
  if (results.empty()) {
    if (broken) std::rethrow_exception(broken);
    return std::nullopt;
  }
  EvaluationResult result = std::move(results.front());
  results.pop_front();
  return result;
}

}  // namespace ergotune
