// The buffers of a problem on one device by argument name: filled once, and restored before each verification, with
// guards around them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/argument.hpp"
#include "kernel/round.hpp"
#include "measure/device_checksum.hpp"

namespace ergotune {

class GuardedBuffer {
 public:
  /// Sizes of the zones in bytes. The first one preserves the alignment of the buffer; the second one is large because
  /// a kernel without a bounds check runs some blocks of threads beyond the end.
  static constexpr std::size_t kBefore = 4096, kBehind = 65536;

  /// Allocates and fills the buffer. The pattern depends on `number`, so that copying the zone of one buffer into that
  /// of another is detected. Throws DeviceError.
  GuardedBuffer(Device& device, std::span<const std::byte> contents, std::uint64_t number);

  /// Uses external memory in place: without zones, and with its present contents.
  GuardedBuffer(Device& device, std::unique_ptr<Buffer> foreign);

  /// The buffer without its zones, as passed to kernels.
  Buffer& inside() const { return *inside_; }
  /// The buffer with its zones, to be copied when everything is restored.
  Buffer& whole() const { return whole_ ? *whole_ : *inside_; }
  /// Writes contents and zones from the host.
  void write(std::span<const std::byte> contents);
  /// Gives the zones another pattern, or the former one again. Only that one may be restored from whole().
  void change_zones(bool other);
  /// Checks the zones. Returns the changed position that is nearest to the buffer, in bytes from the buffer's start
  /// (negative before it); nullopt if none has changed.
  std::optional<std::int64_t> written_outside() const;

 private:
  void write_zones();
  Device& device_;
  std::vector<std::byte> pattern_;  ///< of both zones; empty: there are no zones
  mutable std::vector<std::byte> found_;
  std::unique_ptr<Buffer> whole_, inside_;  ///< whole_ is null if there are no zones
};

struct Problem;

/// The arguments of kernels that share buffers, in the order of the launches.
using ArgumentLists = std::vector<const std::vector<Argument>*>;
ArgumentLists argument_lists(const Problem& problem);

class ProblemBuffers {
 public:
  /// Allocates and fills the buffers; the lists must outlive the object. Arguments with the same name share a buffer.
  /// If `like` is given, buffers that it contains start with its initial contents. Buffers that are swapped must have
  /// equal type and size, and both count as written if one is. Throws UserError if the buffers do not fit into memory,
  /// if kernels disagree on type or size, and for an invalid expression or file.
  ProblemBuffers(Device& device, const ArgumentLists& lists, const Constants& constants,
                 const ProblemBuffers* like = nullptr,
                 const std::vector<std::pair<std::string, std::string>>& swapped = {});
  /// Restores external memory.
  ~ProblemBuffers();
  ProblemBuffers(const ProblemBuffers&) = delete;
  ProblemBuffers& operator=(const ProblemBuffers&) = delete;

  /// Restricts outputs() to the names in `passed`: the arguments that the kernels of one configuration receive.
  void choose(const std::set<std::string>& passed);
  /// Returns the arguments that are passed to a kernel in one configuration: buffers according to `names`, and scalars
  /// and local memory evaluated in `scope`.
  std::vector<KernelArgument> bind(const std::vector<Argument>& arguments, const Scope& scope,
                                   const BufferNames& names = {}) const;
  /// Sets which buffers the names refer to at the end of an iteration, for read().
  void set_final_names(BufferNames names) { final_names_ = std::move(names); }
  /// Restores what an iteration may have changed; queued with the launches. `everything`: also read-only inputs, which
  /// a faulty kernel may have written.
  void restore(bool everything = false);
  /// True if an iteration changes inputs of the next one.
  bool has_in_out() const;
  /// Names of outputs() that an iteration writes without having read them, as the kernels declare.
  std::vector<std::string> only_written() const;
  /// An iteration reads this output although no kernel declares it: has_in_out() is true from now on.
  void note_read(const std::string& name) { slots_[by_name_.at(name)].in_out = true; }

  bool contains(const std::string& name) const { return by_name_.contains(name); }
  /// Names of the buffers that kernels write, in the order of the arguments; all of them until choose() is called.
  const std::vector<std::string>& outputs() const { return outputs_; }
  /// The first argument with this name.
  const Argument& argument(const std::string& name) const { return *slot(name).argument; }
  std::size_t bytes(const std::string& name) const { return slot(name).bytes; }
  /// Reads the contents of a buffer from the device.
  void read(const std::string& name, std::vector<std::byte>& into) const;
  /// Reads the buffer to which `name` refers according to `names`.
  void read_as(const BufferNames& names, const std::string& name, std::vector<std::byte>& into) const;
  /// Returns what a buffer contains before each verified iteration, from an offset in bytes.
  std::vector<std::byte> first_contents(const std::string& name, std::size_t from = 0) const;
  /// Overwrites a buffer until the next restore(); `contents` must have the buffer's size.
  void write(const std::string& name, std::span<const std::byte> contents);
  /// Both for the bytes at the end of a buffer.
  void read_end(const std::string& name, std::span<std::byte> contents) const;
  void write_end(const std::string& name, std::span<const std::byte> contents);

  /// True if buffers have other names after an iteration.
  bool swaps() const { return !final_names_.empty(); }
  /// GuardedBuffer::change_zones() of all buffers.
  void change_zones(bool other);
  /// Checks the guard zones of all buffers. Returns a message that names the buffers outside of which something was
  /// written, and then restores all memory from the host's copies; returns an empty string if none was.
  std::string written_outside();
  /// Enables changed_inputs(), with the present contents of the inputs as the expected ones. `checksums` must outlive
  /// the object.
  void watch_inputs(DeviceChecksum& checksums);
  /// Checks all buffers that no kernel is declared to write. Returns a message that names the changed ones and the
  /// positions, and then restores all memory; returns an empty string if none has changed.
  std::string changed_inputs();

 private:
  struct Slot {
    const Argument* argument = nullptr;
    bool written = false;  ///< by any kernel
    bool in_out = false;   ///< read before it is written in an iteration
    std::size_t bytes = 0;
    bool foreign = false;             ///< external memory
    std::vector<std::byte> contents;  ///< initial contents; of external memory only if there is no other copy
    struct Address {
      std::size_t at;
      std::uint64_t given, here;
    };
    std::vector<Address> addresses{};  ///< of other buffers: as in the initial contents given, and on this device
    std::unique_ptr<GuardedBuffer> live;
    std::unique_ptr<Buffer> pristine;  ///< copy on the device, including zones; null if there is no memory for it
    std::optional<std::uint64_t> checksum =
        std::nullopt;  ///< of the initial contents of an input, if the device can compute it
  };
  const Slot& slot(const std::string& name) const { return slots_[by_name_.at(name)]; }
  void add(const Argument& argument, std::size_t position, const Constants& constants, const ProblemBuffers* like);
  void share(Slot& slot, const Argument& argument, std::size_t bytes);
  void join(const std::string& first, const std::string& second);
  const Buffer& live(const std::string& name, const BufferNames& names) const;
  std::uint64_t address(const Argument& argument, const Field& field, const Scope& scope,
                        const BufferNames& names) const;
  void put_addresses(const Argument& argument, const Scope& scope, const BufferNames& names,
                     std::vector<std::byte>& bytes) const;
  void put_addresses(Slot& slot, const Constants& constants);
  void allocate(Slot& slot, std::size_t total);
  void keep_copies();
  void keep_copy(Slot& slot);
  void repair();
  std::optional<std::size_t> first_change(const Slot& slot) const;

  Device& device_;
  std::vector<Slot> slots_;
  std::map<std::string, std::size_t> by_name_;
  std::vector<std::string> outputs_;
  BufferNames final_names_;
  DeviceChecksum* checksums_ = nullptr;  ///< null: inputs are not checked
};

}  // namespace ergotune
