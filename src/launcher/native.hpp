// Where an application's queue runs, and code on it, by kind of device. The launch itself costs what the driver takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/launcher.h"

namespace ergotune::launcher {

/// A context of the application's, and the device of it that the queue is on.
struct Place {
  void* context = nullptr;
  void* device = nullptr;
  friend bool operator==(const Place&, const Place&) = default;
};

struct LaunchPlan;

/// A configuration's code, loaded at a place.
class Code {
 public:
  virtual ~Code() = default;
  /// Before the first launch with this geometry. Throws DeviceError for what the device does not take.
  virtual void allow(const LaunchPlan& plan) = 0;
  /// The driver's code, 0 for success. From several threads at once.
  virtual int launch(const LaunchPlan& plan, void* queue, const ergotune_argument* arguments) = 0;
};

/// One kernel argument: the application's of a position, or local memory of a size, which may be none.
struct PassedArgument {
  std::uint32_t position = 0;
  bool local = false;
  std::size_t local_bytes = 0;
};

/// All that a launch needs but the application's queue and arguments. Never changes once it runs.
struct LaunchPlan {
  std::shared_ptr<Code> code;
  LaunchGeometry geometry;
  std::size_t global[3] = {1, 1, 1}, local[3] = {1, 1, 1};  ///< the same as OpenCL counts
  std::uint32_t dimensions = 1;
  std::vector<PassedArgument> passed;
};

class Native {
 public:
  virtual ~Native() = default;
  /// Of a queue of the application's; throws UserError where it has none. Called for every launch.
  virtual Place place_of(void* queue) const = 0;
  /// Throws UserError where it is no device that can be opened here.
  virtual DeviceInfo device_at(const Place& place) const = 0;
  /// Throws DeviceError.
  virtual std::shared_ptr<Code> load(const Place& place, const Binary& binary) const = 0;
  /// Another thread is about to load code there.
  virtual void enter(const Place& place) const = 0;
  virtual std::string error_text(int code) const = 0;
  /// True for a code that blames the launch itself: too many threads, too much memory; not what an earlier kernel did.
  virtual bool blames_launch(int code) const = 0;
  /// True while the queue records a graph: nothing may be loaded then.
  virtual bool records(void* queue) const = 0;
  /// What a buffer holds, once all that is queued is done; nothing where the handle is null.
  virtual std::vector<std::byte> contents(void* queue, const void* handle) const = 0;
};

/// "cuda", "hip", "opencl". Throws UserError for others, and where the driver is missing.
const Native& native_for(const std::string& backend);

// What the kinds' own files offer to it.
const Native& native_cuda();
const Native& native_hip();
const Native& native_opencl();

}  // namespace ergotune::launcher
