// A problem's buffers on one device: filled once, restored before every verification.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "ergotune/device/device.hpp"
#include "ergotune/problem/problem.hpp"

namespace ergotune {

class KernelBuffers {
 public:
  /// Allocates and fills. Throws UserError when the buffers do not fit, or an expression or a file is bad.
  KernelBuffers(Device& device, const std::vector<Argument>& arguments, const Constants& constants);

  /// The arguments for one configuration: buffers, scalars and local memory evaluated in `scope`.
  std::vector<KernelArgument> arguments(const Scope& scope) const;
  /// Puts what a kernel may have changed back, queued with the launches. `everything`: read-only inputs too,
  /// which a faulty kernel may have written.
  void restore(bool everything = false);
  /// Whether launches change what the next launch reads.
  bool has_in_out() const;
  /// Positions of the arguments that are outputs.
  const std::vector<std::size_t>& outputs() const { return outputs_; }
  std::size_t bytes(std::size_t argument) const { return slots_[argument].contents.size(); }
  /// The device contents of one argument.
  std::vector<std::byte> read(std::size_t argument) const;
  void read(std::size_t argument, std::vector<std::byte>& into) const;
  /// Initial contents of a buffer.
  const std::vector<std::byte>& initial(std::size_t argument) const { return slots_[argument].contents; }

 private:
  struct Slot {
    std::vector<std::byte> contents;  ///< as first filled
    std::unique_ptr<Buffer> live;
    std::unique_ptr<Buffer> pristine;  ///< a copy on the device; null where there is no room for one
  };
  Device& device_;
  const std::vector<Argument>& arguments_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> outputs_;
};

}  // namespace ergotune
