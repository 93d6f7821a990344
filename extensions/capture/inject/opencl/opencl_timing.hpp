// How long kernels take on the device, by events of the program's own queues: where no kernel is named, to find the one
// with the most time.
#pragma once

#include <memory>

#include "capture/inject/kernel_log.hpp"
#include "capture/inject/opencl/opencl_table.hpp"

namespace ergotune::inject {

/// The event of one launch: the program's where it asks for one, else one that is kept until it has its time.
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

}  // namespace ergotune::inject
