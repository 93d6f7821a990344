// User code hooked on the measurement of a configuration. The energy measurement itself is built on these hooks.
#pragma once

#include <map>
#include <string>

#include "ergotune/measure/measurement.hpp"
#include "ergotune/space/value.hpp"

namespace ergotune {

/// What an observer may know of the configuration at hand.
struct ObservedConfiguration {
  const std::vector<std::string>* names = nullptr;
  const Configuration* values = nullptr;
};

/// Hooks, in the order they are called. All but `during` run on the measuring thread; `during` is called again and
/// again from a thread of its own between after_start and after_finish, whatever the device. An exception from a hook
/// becomes the configuration's status (runtime_error), with the observer's name.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual std::string name() const = 0;
  /// Once per configuration, before anything else.
  virtual void register_configuration(const ObservedConfiguration&) {}
  /// Before the launches of a repetition are queued.
  virtual void before_start() {}
  /// After they were queued.
  virtual void after_start() {}
  /// While they run.
  virtual void during() {}
  /// After the last of them has finished.
  virtual void after_finish() {}
  /// What was observed over the configuration's repetitions.
  virtual std::map<std::string, Quantity> results() = 0;
};

}  // namespace ergotune
