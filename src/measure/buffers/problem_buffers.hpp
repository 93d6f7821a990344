// A problem's buffers on one device, by argument name: filled once, restored before every verification.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ergotune/problem.hpp"
#include "kernel/round.hpp"
#include "measure/buffers/guarded_buffer.hpp"
#include "measure/device_checksum.hpp"

namespace ergotune {

/// The arguments of kernels that share buffers, in the order of their launches.
using ArgumentLists = std::vector<const std::vector<Argument>*>;
ArgumentLists argument_lists(const Problem& problem);

class ProblemBuffers {
 public:
  /// Allocates and fills; the lists must live as long. Arguments of the same name are the same buffer. Where
  /// `like` is given, buffers of its names begin as its do. Throws UserError when the buffers do not fit,
  /// when kernels do not agree on type or size, or when an expression or a file is bad. What is swapped must be alike;
  /// what is written to one of a pair may be in either.
  ProblemBuffers(Device& device, const ArgumentLists& lists, const Constants& constants,
                 const ProblemBuffers* like = nullptr,
                 const std::vector<std::pair<std::string, std::string>>& swapped = {});
  /// external memory is put back as it was.
  ~ProblemBuffers();
  ProblemBuffers(const ProblemBuffers&) = delete;
  ProblemBuffers& operator=(const ProblemBuffers&) = delete;

  /// From here on outputs() are those among `passed`: what one configuration's kernels are given.
  void choose(const std::set<std::string>& passed);
  /// The arguments of one kernel for one configuration, those that are passed to it: buffers, as `names` has them by
  /// now, scalars and local memory evaluated in `scope`.
  std::vector<KernelArgument> bind(const std::vector<Argument>& arguments, const Scope& scope,
                                   const BufferNames& names = {}) const;
  /// What names stand for at the end of a round: read() goes by it.
  void set_final_names(BufferNames names) { final_names_ = std::move(names); }
  /// Puts what a round may have changed back, queued with the launches. `everything`: read-only inputs too,
  /// which a faulty kernel may have written.
  void restore(bool everything = false);
  /// Whether a round changes what the next one reads.
  bool has_in_out() const;

  bool contains(const std::string& name) const { return by_name_.contains(name); }
  /// What some kernel writes, in the order of the arguments: all of it until choose() was called.
  const std::vector<std::string>& outputs() const { return outputs_; }
  /// The first argument of that name.
  const Argument& argument(const std::string& name) const { return *slot(name).argument; }
  std::size_t bytes(const std::string& name) const { return slot(name).bytes; }
  /// The device's contents.
  void read(const std::string& name, std::vector<std::byte>& into) const;
  /// What an argument of that name holds where names stand for what `names` says.
  void read_as(const BufferNames& names, const std::string& name, std::vector<std::byte>& into) const;
  /// New contents of as many bytes, until the next restore().
  void write(const std::string& name, std::span<const std::byte> contents);

  /// Looks around every buffer: says which were written outside of, and puts all memory back from the host's
  /// copies; empty when none was.
  std::string written_outside();
  /// From here on changed_inputs() looks at them: takes what they hold now for what they ought to hold.
  /// `checksums` must live as long.
  void watch_inputs(DeviceChecksum& checksums);
  /// Which buffers that no kernel is declared to write have other contents than at first, and where; puts all memory
  /// back as written_outside() does. Empty when none has.
  std::string changed_inputs();

 private:
  struct Slot {
    const Argument* argument = nullptr;
    bool written = false;  ///< by some kernel
    bool in_out = false;   ///< read before it is written in a round
    std::size_t bytes = 0;
    bool foreign = false;             ///< external memory
    std::vector<std::byte> contents;  ///< as first filled; of external memory only where nothing else holds it
    std::unique_ptr<GuardedBuffer> live;
    std::unique_ptr<Buffer> pristine;  ///< a copy on the device, zones included; null where there is no room
    std::optional<std::uint64_t> checksum =
        std::nullopt;  ///< of an input as first filled, where the device computes it
  };
  const Slot& slot(const std::string& name) const { return slots_[by_name_.at(name)]; }
  void add(const Argument& argument, std::size_t position, const Constants& constants, const ProblemBuffers* like);
  void share(Slot& slot, const Argument& argument, std::size_t bytes);
  void join(const std::string& first, const std::string& second);
  const Buffer& live(const std::string& name, const BufferNames& names) const;
  void put_addresses(const Argument& argument, const Scope& scope, const BufferNames& names,
                     std::vector<std::byte>& bytes) const;
  std::vector<std::byte> first_contents(const std::string& name) const;
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
  DeviceChecksum* checksums_ = nullptr;  ///< null: inputs are not watched
};

}  // namespace ergotune
