#include "measure/buffers/problem_buffers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "ergotune/random.hpp"
#include "kernel/configure.hpp"
#include "measure/buffers/arguments.hpp"
#include "problem/address_field.hpp"

namespace ergotune {
namespace {

/// The pattern consists of bytes from 0x30 to 0x4f, which are finite, moderate numbers in all floating-point types: a
/// kernel that reads beyond its data and multiplies by zero is not wrong.
std::vector<std::byte> pattern_of(std::uint64_t number) {
  std::vector<std::byte> pattern(GuardedBuffer::kBefore + GuardedBuffer::kBehind);
  Random random(0x67756172 + number);
  for (std::byte& byte : pattern) byte = static_cast<std::byte>(0x30 + random.below(0x20));
  return pattern;
}

void check_distinct(const std::vector<Argument>& arguments) {
  std::set<std::string> names;
  for (const Argument& argument : arguments)
    if (argument.kind == Argument::Kind::buffer && !names.insert(argument.name).second)
      throw UserError(fmt::format("two arguments of one kernel are called \"{}\"", argument.name), argument.place);
}

}  // namespace

GuardedBuffer::GuardedBuffer(Device& device, std::span<const std::byte> contents, std::uint64_t number)
    : device_(device),
      pattern_(pattern_of(number)),
      whole_(device.allocate(kBefore + contents.size() + kBehind)),
      inside_(device.view(*whole_, kBefore, contents.size())) {
  write(contents);
}

GuardedBuffer::GuardedBuffer(Device& device, std::unique_ptr<Buffer> foreign)
    : device_(device), inside_(std::move(foreign)) {}

void GuardedBuffer::write(std::span<const std::byte> contents) {
  if (!whole_) return device_.write(*inside_, contents);
  device_.write(*whole_, contents, kBefore);
  write_zones();
}

void GuardedBuffer::write_zones() {
  const std::span zones(pattern_);
  device_.write(*whole_, zones.first(kBefore));
  device_.write(*whole_, zones.last(kBehind), kBefore + inside_->bytes());
}

void GuardedBuffer::change_zones(bool other) {
  constexpr std::ptrdiff_t kShift = 7;
  if (!whole_) return;
  std::rotate(pattern_.begin(), other ? pattern_.begin() + kShift : pattern_.end() - kShift, pattern_.end());
  write_zones();
}

std::optional<std::int64_t> GuardedBuffer::written_outside() const {
  if (!whole_) return std::nullopt;
  found_.resize(pattern_.size());
  const std::span before = std::span(found_).first(kBefore), behind = std::span(found_).last(kBehind);
  device_.read(*whole_, before);
  device_.read(*whole_, behind, kBefore + inside_->bytes());
  if (std::memcmp(found_.data(), pattern_.data(), found_.size()) == 0) return std::nullopt;
  const auto pattern_behind = pattern_.begin() + kBefore;
  if (const auto at = std::mismatch(behind.begin(), behind.end(), pattern_behind).first; at != behind.end())
    return static_cast<std::int64_t>(inside_->bytes()) + (at - behind.begin());
  const auto at = std::mismatch(before.rbegin(), before.rend(), std::make_reverse_iterator(pattern_behind)).first;
  return -1 - (at - before.rbegin());
}

ArgumentLists argument_lists(const Problem& problem) {
  ArgumentLists lists;
  for (const std::size_t kernel : first_order(problem)) lists.push_back(&problem.kernels[kernel].arguments);
  return lists;
}

ProblemBuffers::ProblemBuffers(Device& device, const ArgumentLists& lists, const Constants& constants,
                               const ProblemBuffers* like,
                               const std::vector<std::pair<std::string, std::string>>& swapped)
    : device_(device) {
  std::size_t position = 0;
  for (const auto* arguments : lists) {
    check_distinct(*arguments);
    for (const Argument& argument : *arguments) {
      if (argument.kind == Argument::Kind::buffer) add(argument, position, constants, like);
      ++position;
    }
  }
  for (const auto& [first, second] : swapped) join(first, second);
  for (const Slot& slot : slots_)
    if (slot.written) outputs_.push_back(slot.argument->name);
  std::size_t total = 0;
  for (Slot& slot : slots_) allocate(slot, total += slot.bytes);
  for (Slot& slot : slots_) put_addresses(slot, constants);
  keep_copies();
}

ProblemBuffers::~ProblemBuffers() {
  if (std::ranges::none_of(slots_, [](const Slot& slot) { return slot.foreign; })) return;
  try {
    restore(true);
    device_.synchronise();
  } catch (const DeviceError&) {
    // A kernel fault has destroyed the context with all its memory.
  }
}

void ProblemBuffers::add(const Argument& argument, std::size_t position, const Constants& constants,
                         const ProblemBuffers* like) {
  const std::size_t count = element_count(argument, constants);
  if (const auto known = by_name_.find(argument.name); known != by_name_.end())
    return share(slots_[known->second], argument, count * size_of(argument.type));
  by_name_[argument.name] = slots_.size();
  Slot slot;
  slot.argument = &argument;
  slot.written = argument.access != Access::read;
  slot.in_out = argument.access == Access::read_write;
  const bool given = like && like->contains(argument.name) && like->argument(argument.name).type == argument.type &&
                     like->bytes(argument.name) == count * size_of(argument.type);
  slot.bytes = count * size_of(argument.type);
  const ExternalMemory* foreign = argument.fill.foreign.get();
  slot.foreign =
      foreign && !like && foreign->device.starts_with(device_.info().backend + ":") && foreign->bytes == slot.bytes;
  if (!slot.foreign)
    slot.contents = given ? like->first_contents(argument.name) : initial_contents(argument, count, position);
  slots_.push_back(std::move(slot));
}

void ProblemBuffers::share(Slot& slot, const Argument& argument, std::size_t bytes) {
  const Argument& first = *slot.argument;
  if (first.type != argument.type)
    throw UserError(fmt::format("argument \"{0}\" is {1} in one kernel and {2} in another; the same name is the same "
                                "buffer: rename one of them",
                                argument.name, to_string(first.type), to_string(argument.type)),
                    argument.place);
  if (slot.bytes != bytes)
    throw UserError(fmt::format("argument \"{0}\" has {1} elements in one kernel and {2} in another; the same name is "
                                "the same buffer: rename one of them",
                                argument.name, slot.bytes / size_of(first.type), bytes / size_of(first.type)),
                    argument.place);
  // Later steps of the iteration read what was written; without a write before, the next iteration reads what this one
  // leaves.
  const bool reads_first = !slot.written;
  if (argument.access == Access::read) return;
  slot.in_out = slot.in_out || reads_first;
  slot.written = true;
}

void ProblemBuffers::join(const std::string& first, const std::string& second) {
  Slot &one = slots_[by_name_.at(first)], &other = slots_[by_name_.at(second)];
  if (one.bytes != other.bytes || one.argument->type != other.argument->type)
    throw UserError(fmt::format("\"{}\" and \"{}\" cannot be swapped: one has {} elements of {}, the other {} of {}",
                                first, second, one.bytes / size_of(one.argument->type), to_string(one.argument->type),
                                other.bytes / size_of(other.argument->type), to_string(other.argument->type)),
                    other.argument->place);
  const bool written = one.written || other.written;
  one.written = other.written = written;
  // After an odd number of swaps, the next iteration reads what this one has written.
  one.in_out = other.in_out = written;
}

/// Returns the initial contents of a buffer.
std::vector<std::byte> ProblemBuffers::first_contents(const std::string& name, std::size_t from) const {
  const Slot& found = slot(name);
  if (!found.foreign || !found.contents.empty())
    return {found.contents.begin() + static_cast<std::ptrdiff_t>(from), found.contents.end()};
  std::vector<std::byte> contents(found.bytes - from);
  device_.read(found.pristine ? *found.pristine : found.live->inside(), contents, from);
  return contents;
}

void ProblemBuffers::allocate(Slot& slot, std::size_t total) {
  if (slot.foreign) {
    device_.settle();
    try {
      slot.live = std::make_unique<GuardedBuffer>(
          device_, device_.wrap_buffer(slot.argument->fill.foreign->address, slot.bytes));
      return;
    } catch (const UserError& error) {
      throw UserError(fmt::format("argument \"{}\": {}", slot.argument->name, error.message()), slot.argument->place);
    }
  }
  try {
    slot.live = std::make_unique<GuardedBuffer>(device_, slot.contents, by_name_.at(slot.argument->name));
  } catch (const DeviceError& error) {
    throw UserError(
        fmt::format("the problem's buffers do not fit on {}: argument \"{}\" brings them to {:.3g} MB ({})",
                    device_.info().name, slot.argument->name, static_cast<double>(total) / 1e6, error.what()),
        slot.argument->place);
  }
}

/// Makes copies on the device after all other allocations, outputs first; buffers without a copy are restored from the
/// host. External memory that no kernel is declared to write is copied if there is room, since only a faulty kernel
/// makes it necessary.
void ProblemBuffers::keep_copies() {
  for (const bool output : {true, false}) {
    for (Slot& slot : slots_) {
      if (slot.written != output) continue;
      keep_copy(slot);
      if (slot.foreign && slot.written && !slot.pristine) slot.contents = first_contents(slot.argument->name);
    }
  }
}

/// Makes no copy if there is not enough memory.
void ProblemBuffers::keep_copy(Slot& slot) {
  try {
    slot.pristine = device_.allocate(slot.live->whole().bytes());
    device_.copy(*slot.pristine, slot.live->whole());
  } catch (const DeviceError&) {
    slot.pristine.reset();
  }
}

void ProblemBuffers::choose(const std::set<std::string>& passed) {
  outputs_.clear();
  for (const Slot& slot : slots_)
    if (slot.written && passed.contains(slot.argument->name)) outputs_.push_back(slot.argument->name);
}

const Buffer& ProblemBuffers::live(const std::string& name, const BufferNames& names) const {
  const auto other = names.find(name);
  return slot(other == names.end() ? name : other->second).live->inside();
}

std::uint64_t ProblemBuffers::address(const Argument& argument, const Field& field, const Scope& scope,
                                      const BufferNames& names) const {
  const std::string buffer(buffer_pointed_to(field));
  if (device_.info().backend == "opencl")
    throw UserError(fmt::format("argument \"{}\" holds the address of \"{}\"; buffers of OpenCL have no address within "
                                "a structure or a buffer, or behind their beginning",
                                argument.name, buffer),
                    argument.place);
  return reinterpret_cast<std::uint64_t>(live(buffer, names).native_handle()) +
         static_cast<std::uint64_t>(field.value.evaluate(scope).as_integer());
}

/// The addresses that a buffer holds: those of this device in place of the given ones.
void ProblemBuffers::put_addresses(Slot& slot, const Constants& constants) {
  const Scope scope = [&](std::string_view name) {
    const auto constant = constants.find(name);
    return constant == constants.end() ? nullptr : &constant->second;
  };
  for (const Field& field : slot.argument->fields) {
    Slot::Address address{*place_in_buffer(field), 0, 0};
    if (address.at > slot.contents.size() || slot.contents.size() - address.at < sizeof address.here)
      throw UserError(fmt::format("argument \"{}\" has {} bytes; there is no address at byte {}", slot.argument->name,
                                  slot.bytes, address.at),
                      slot.argument->place);
    address.here = this->address(*slot.argument, field, scope, {});
    std::memcpy(&address.given, slot.contents.data() + address.at, sizeof address.given);
    std::memcpy(slot.contents.data() + address.at, &address.here, sizeof address.here);
    slot.addresses.push_back(address);
  }
  if (!slot.addresses.empty()) slot.live->write(slot.contents);
}

/// A structure's members that are addresses of buffers.
void ProblemBuffers::put_addresses(const Argument& argument, const Scope& scope, const BufferNames& names,
                                   std::vector<std::byte>& bytes) const {
  std::size_t at = 0;
  for (const Field& field : argument.fields) {
    const std::size_t size = size_of(field.type);
    at = (at + size - 1) / size * size;
    if (!buffer_pointed_to(field).empty()) {
      const std::uint64_t here = address(argument, field, scope, names);
      std::memcpy(bytes.data() + at, &here, sizeof here);
    }
    at += size;
  }
}

/// An argument that is nothing but a buffer's address is that buffer.
static bool is_address(const Argument& argument, const Scope& scope) {
  return argument.fields.size() == 1 && !buffer_pointed_to(argument.fields[0]).empty() &&
         argument.fields[0].value.evaluate(scope).as_integer() == 0;
}

std::vector<KernelArgument> ProblemBuffers::bind(const std::vector<Argument>& arguments, const Scope& scope,
                                                 const BufferNames& names) const {
  std::vector<KernelArgument> bound;
  for (const Argument& argument : arguments) {
    if (!argument.passed(scope)) continue;
    KernelArgument& next = bound.emplace_back();
    switch (argument.kind) {
      case Argument::Kind::buffer:
        next.buffer = &live(argument.name, names);
        break;
      case Argument::Kind::scalar:
        if (is_address(argument, scope)) {
          next.buffer = &live(std::string(buffer_pointed_to(argument.fields[0])), names);
        } else {
          next.scalar = scalar_bytes(argument, scope);
          put_addresses(argument, scope, names, next.scalar);
        }
        break;
      case Argument::Kind::local_memory:
        next.local_bytes = local_bytes(argument, scope);
        break;
    }
  }
  return bound;
}

void ProblemBuffers::restore(bool everything) {
  for (Slot& slot : slots_) {
    if (!slot.written && !everything) continue;
    if (slot.pristine) {
      device_.copy(slot.live->whole(), *slot.pristine);
    } else if (!slot.contents.empty()) {
      slot.live->write(slot.contents);
    }
  }
}

bool ProblemBuffers::has_in_out() const {
  for (const Slot& slot : slots_)
    if (slot.in_out) return true;
  return false;
}

std::vector<std::string> ProblemBuffers::only_written() const {
  std::vector<std::string> names;
  for (const std::string& name : outputs_)
    if (!slot(name).in_out && !final_names_.contains(name)) names.push_back(name);
  return names;
}

void ProblemBuffers::read(const std::string& name, std::vector<std::byte>& into) const {
  read_as(final_names_, name, into);
}

void ProblemBuffers::read_as(const BufferNames& names, const std::string& name, std::vector<std::byte>& into) const {
  const auto other = names.find(name);
  into.resize(bytes(name));
  const Slot& found = slot(other == names.end() ? name : other->second);
  device_.read(found.live->inside(), into);
  for (const auto& [at, given, here] : found.addresses)
    if (std::memcmp(into.data() + at, &here, sizeof here) == 0) std::memcpy(into.data() + at, &given, sizeof given);
}

void ProblemBuffers::write(const std::string& name, std::span<const std::byte> contents) {
  const auto other = final_names_.find(name);
  slot(other == final_names_.end() ? name : other->second).live->write(contents);
}

void ProblemBuffers::read_end(const std::string& name, std::span<std::byte> contents) const {
  device_.read(slot(name).live->inside(), contents, bytes(name) - contents.size());
}

void ProblemBuffers::write_end(const std::string& name, std::span<const std::byte> contents) {
  device_.write(slot(name).live->inside(), contents, bytes(name) - contents.size());
}

void ProblemBuffers::change_zones(bool other) {
  for (Slot& slot : slots_) slot.live->change_zones(other);
}

std::string ProblemBuffers::written_outside() {
  std::string message;
  for (const Slot& slot : slots_) {
    const auto place = slot.live->written_outside();
    if (!place) continue;
    const auto size = static_cast<std::int64_t>(size_of(slot.argument->type));
    const std::int64_t element = *place < 0 ? (*place - size + 1) / size : *place / size;
    message += fmt::format("{}argument \"{}\" is written outside of its buffer, at element {} (it has {})",
                           message.empty() ? "" : "; ", slot.argument->name, element,
                           static_cast<std::int64_t>(slot.bytes) / size);
  }
  if (message.empty()) return message;
  repair();
  return message +
         ": is its count right, and does the kernel check bounds where the grid covers more, or a restriction "
         "leave sizes that divide?";
}

void ProblemBuffers::watch_inputs(DeviceChecksum& checksums) {
  checksums_ = &checksums;
  // On a CPU, comparing memory is as fast as computing a checksum.
  if (device_.info().is_cpu) return;
  for (Slot& slot : slots_)
    if (!slot.written) slot.checksum = checksums_->of(slot.live->inside());
}

std::string ProblemBuffers::changed_inputs() {
  if (!checksums_) return {};
  std::string message;
  for (const Slot& slot : slots_) {
    if (slot.written || (slot.checksum && slot.checksum == checksums_->of(slot.live->inside()))) continue;
    const auto place = first_change(slot);
    if (!place && !(slot.checksum && slot.contents.empty() && !slot.pristine)) continue;
    message += fmt::format("{}argument \"{}\" is declared \"read\", and its contents are changed",
                           message.empty() ? "" : "; ", slot.argument->name);
    message += place ? fmt::format(", first at element {}", *place / size_of(slot.argument->type))
                     : "; with no copy of them they stay so";
  }
  if (message.empty()) return message;
  repair();
  return message + ": if it is an output, declare it with access = \"write\", or \"read_write\" where it is read, too";
}

/// Returns the position of the first byte that differs from a copy of the initial contents; nullopt if none differs or
/// if there is no copy.
std::optional<std::size_t> ProblemBuffers::first_change(const Slot& slot) const {
  constexpr std::size_t kPart = std::size_t{4} << 20;
  if (slot.contents.empty() && !slot.pristine) return std::nullopt;
  std::vector<std::byte> now(std::min(kPart, slot.bytes)), before(slot.contents.empty() ? now.size() : 0);
  for (std::size_t from = 0; from < slot.bytes; from += kPart) {
    const std::size_t count = std::min(kPart, slot.bytes - from);
    device_.read(slot.live->inside(), std::span(now).first(count), from);
    std::span<const std::byte> expected = std::span(slot.contents);
    if (before.empty()) {
      expected = expected.subspan(from, count);
    } else {
      device_.read(*slot.pristine, std::span(before).first(count), from + (slot.foreign ? 0 : GuardedBuffer::kBefore));
      expected = std::span(before).first(count);
    }
    if (std::memcmp(now.data(), expected.data(), count) == 0) continue;
    return from + static_cast<std::size_t>(std::mismatch(expected.begin(), expected.end(), now.begin()).first -
                                           expected.begin());
  }
  return std::nullopt;
}

/// Restores buffers from the host's copies if there are any, because those on the device may have been overwritten as
/// well.
void ProblemBuffers::repair() {
  for (Slot& slot : slots_) {
    if (slot.foreign && slot.pristine) device_.copy(slot.live->whole(), *slot.pristine);
    if (slot.contents.empty()) continue;
    slot.live->write(slot.contents);
    if (slot.pristine) device_.copy(*slot.pristine, slot.live->whole());
  }
  device_.synchronise();
}

}  // namespace ergotune
