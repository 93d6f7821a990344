// How long kernels take on the device, by events of the program's own queues: where no kernel is named, to find the one
// with the most time.
#pragma once

#include <memory>

#include "capture/inject/kernel_log.hpp"
#include "capture/inject/opencl/opencl_table.hpp"

namespace ergotune::inject {

/// The event of one launch: the program's where it asks for one, else one that the layer keeps until it has its time.
class TimedEvent {
 public:
  TimedEvent(std::shared_ptr<KernelLog::Entry> entry, cl_event* wanted);
  /// What the driver is given.
  cl_event* event() { return timing_ && !wanted_ ? &own_ : wanted_; }
  void queued(cl_int code);

 private:
  std::shared_ptr<KernelLog::Entry> entry_;
  cl_event* wanted_;
  cl_event own_ = nullptr;
  bool timing_;
};

/// The functions in the program's way that make queues with profiling and collect times; only where times are wanted.
void put_timing();

/// What the loader is given.
extern Table layered;

/// Puts the layer in front of these functions, which become `next`; false where no command watches.
bool begin_layer(const Table& loader) noexcept;
/// The ICD loader has called the layer.
extern bool called_by_loader;

}  // namespace ergotune::inject
