#include "measure/kernel_buffers.hpp"

#include <fmt/format.h>

#include "ergotune/base/error.hpp"
#include "measure/arguments.hpp"

namespace ergotune {

KernelBuffers::KernelBuffers(Device& device, const std::vector<Argument>& arguments,
                             const Constants& constants)
    : device_(device), arguments_(arguments), slots_(arguments.size()) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Argument& argument = arguments[i];
    if (argument.kind != Argument::Kind::buffer) continue;
    const double count = argument.count.evaluate(constants).as_real();
    if (!(count >= 1) || count > 1e13) {
      throw UserError(fmt::format("argument \"{}\" has {} elements", argument.name, count), argument.place);
    }
    Slot& slot = slots_[i];
    slot.contents = initial_contents(argument, static_cast<std::size_t>(count), i);
    total += slot.contents.size();
    try {
      slot.live = device.allocate(slot.contents.size());
      device.write(*slot.live, slot.contents);
    } catch (const DeviceError& error) {
      throw UserError(
          fmt::format("the problem's buffers do not fit on {}: argument \"{}\" brings them to {:.3g} MB ({})",
                      device.info().name, argument.name, static_cast<double>(total) / 1e6, error.what()),
          argument.place);
    }
    if (argument.access != Access::read) outputs_.push_back(i);
  }
  // Copies on the device come last, outputs first: what does not fit is restored from the host instead.
  for (const bool output : {true, false}) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      if (!slot.live || (arguments[i].access != Access::read) != output) continue;
      try {
        slot.pristine = device.allocate(slot.contents.size());
        device.write(*slot.pristine, slot.contents);
      } catch (const DeviceError&) {
        slot.pristine.reset();
        return;
      }
    }
  }
}

std::vector<KernelArgument> KernelBuffers::arguments(const Scope& scope) const {
  std::vector<KernelArgument> bound(arguments_.size());
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const Argument& argument = arguments_[i];
    switch (argument.kind) {
      case Argument::Kind::buffer:
        bound[i].buffer = slots_[i].live.get();
        break;
      case Argument::Kind::scalar:
        bound[i].scalar = scalar_bytes(argument.type, argument.value.evaluate(scope), argument.place);
        break;
      case Argument::Kind::local_memory:
        bound[i].local_bytes =
            static_cast<std::size_t>(argument.count.evaluate_real(scope)) * size_of(argument.type);
        break;
    }
  }
  return bound;
}

void KernelBuffers::restore(bool everything) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (!slot.live) continue;
    const bool output = arguments_[i].access != Access::read;
    if (slot.pristine && (output || everything)) {
      device_.copy(*slot.live, *slot.pristine);
    } else if (output || everything) {
      device_.write(*slot.live, slot.contents);
    }
  }
}

bool KernelBuffers::has_in_out() const {
  for (const Argument& argument : arguments_) {
    if (argument.kind == Argument::Kind::buffer && argument.access == Access::read_write) return true;
  }
  return false;
}

std::vector<std::byte> KernelBuffers::read(std::size_t argument) const {
  std::vector<std::byte> contents;
  read(argument, contents);
  return contents;
}

void KernelBuffers::read(std::size_t argument, std::vector<std::byte>& into) const {
  into.resize(slots_[argument].contents.size());
  device_.read(*slots_[argument].live, into);
}

}  // namespace ergotune
