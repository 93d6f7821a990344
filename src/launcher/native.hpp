// Access to an application's queues and devices by backend, and launching of code on them. A launch has no overhead
// beyond that of the driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/launcher.h"

namespace ergotune::launcher {

/// A context of the application, and the device in it to which a queue belongs.
struct Place {
  void* context = nullptr;
  void* device = nullptr;
  friend bool operator==(const Place&, const Place&) = default;
};

struct LaunchPlan;

/// The code of a configuration, loaded in a place.
class Code {
 public:
  virtual ~Code() = default;
  /// Must be called before the first launch with this geometry. Throws DeviceError if the device does not support it.
  virtual void allow(const LaunchPlan& plan) = 0;
  /// Returns the driver's code; 0: success. Several threads may call it at the same time.
  virtual int launch(const LaunchPlan& plan, void* queue, const ergotune_argument* arguments) = 0;
};

/// A kernel argument: the application's argument at a position, or local memory of a size, which may be 0.
struct PassedArgument {
  std::uint32_t position = 0;
  bool local = false;
  std::size_t local_bytes = 0;
};

/// Everything that a launch needs except the application's queue and arguments. Immutable once it is in use.
struct LaunchPlan {
  std::shared_ptr<Code> code;
  LaunchGeometry geometry;
  std::size_t global[3] = {1, 1, 1}, local[3] = {1, 1, 1};  ///< the same in OpenCL's terms
  std::uint32_t dimensions = 1;
  std::vector<PassedArgument> passed;
};

/// Measures the time between points of a queue.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  /// Makes a point of the queue's present end.
  virtual void mark() = 0;
  /// Calls the function, which must not use the driver, when the queue has passed all points.
  virtual void finish(std::function<void()> done) = 0;
  /// Returns the s between two points; nullopt if the driver does not measure them. After `done`, in a thread that has
  /// entered the place.
  virtual std::optional<double> seconds(std::size_t from, std::size_t to) const = 0;
};

/// Device memory for a copy of a buffer of the application.
class BufferCopy {
 public:
  virtual ~BufferCopy() = default;
  /// The address of the handle, as in ergotune_argument.
  virtual const void* handle() const = 0;
  /// Queues copying of an application's buffer. Returns false if it is null or smaller.
  virtual bool copy_from(void* queue, const void* buffer) = 0;
  /// Returns the contents, waiting for no queue of the application, in a thread that has entered the place.
  virtual std::vector<std::byte> read() const = 0;
};

class Native {
 public:
  virtual ~Native() = default;
  /// Returns the place of an application's queue. Throws UserError if it has none. Called for each launch.
  virtual Place place_of(void* queue) const = 0;
  /// Throws UserError if the device cannot be opened.
  virtual DeviceInfo device_at(const Place& place) const = 0;
  /// Loads code in a place. Throws DeviceError.
  virtual std::shared_ptr<Code> load(const Place& place, const Binary& binary) const = 0;
  /// Must be called in another thread before it loads code in this place.
  virtual void enter(const Place& place) const = 0;
  virtual std::string error_text(int code) const = 0;
  /// True if the error code concerns the launch itself (too many threads, too much memory), not an earlier kernel.
  virtual bool is_launch_error(int code) const = 0;
  /// True while the queue records a graph; then no code may be loaded.
  virtual bool records(void* queue) const = 0;
  /// Calls the function, which must not use the driver, when the work before it on the queue is done; at once where the
  /// driver offers no such call.
  virtual void when_reached(void* queue, std::function<void()> call) const = 0;
  /// Returns the contents of a buffer after all queued work; empty if the handle is null.
  virtual std::vector<std::byte> contents(void* queue, const void* handle) const = 0;
  virtual std::unique_ptr<Stopwatch> stopwatch(void* queue) const = 0;
  /// Throws DeviceError if no memory is left. In a thread that has entered the place.
  virtual std::unique_ptr<BufferCopy> buffer_copy(const Place& place, std::size_t bytes) const = 0;
};

/// Returns the access for "cuda", "hip" or "opencl". Throws UserError for other backends, and if the driver is missing.
const Native& driver_access_for(const std::string& backend);

// Implementations, each in its own file.
const Native& native_cuda();
const Native& native_hip();
const Native& native_opencl();

}  // namespace ergotune::launcher
