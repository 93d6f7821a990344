// A CUDA launch as the driver is given it: geometry, arguments, and the memory that they point to.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "capture/inject/gpu/gpu_driver.hpp"
#include "capture/inject/kernel_log.hpp"

namespace ergotune::inject::gpu {

struct Call {
  Handle function = nullptr, stream = nullptr;
  LaunchShape shape;
  std::size_t shared_bytes = 0;
  /// One of them: an address for each argument, or all arguments in one piece.
  void** parameters = nullptr;
  const std::byte* packed = nullptr;
  std::size_t packed_bytes = 0;
  std::string symbol;
  /// Blocks of a cluster that the launch itself asks for.
  std::array<unsigned, 3> cluster{1, 1, 1};

  /// `extra` as cuLaunchKernel takes it.
  void take_packed(void** extra);
};

/// The program's own launch: a function of the caller's, which outlives this.
class OwnLaunch {
 public:
  template <class F>
  explicit OwnLaunch(F& function)
      : function_(&function), call_([](const void* f) { return (*static_cast<const F*>(f))(); }) {}
  int operator()() const { return call_(function_); }

 private:
  const void* function_;
  int (*call_)(const void*);
};

/// 0 is each thread's own stream in programs that are compiled so.
inline Handle stream_of(Handle stream, bool per_thread) {
  return per_thread && !stream ? reinterpret_cast<Handle>(2) : stream;
}

LaunchShape shape_of(const unsigned (&grid)[3], const unsigned (&block)[3]);

/// cuLaunchKernelEx's first argument.
struct LaunchConfiguration {
  unsigned grid[3], block[3], shared_bytes;
  Handle stream;
  struct Attribute {
    int number;
    alignas(8) unsigned value[16];
  };
  const Attribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchConfiguration::Attribute) == 72);

/// One argument's bytes.
using ArgumentBytes = std::vector<std::byte>;

/// Sizes and offsets of a function's arguments, or of those of a library's kernel.
struct ParameterPlace {
  std::size_t offset = 0, size = 0;
  friend bool operator==(const ParameterPlace&, const ParameterPlace&) = default;
};
/// Empty where they are not known: before CUDA 12.4; of HIP code that was not seen, or is compressed.
std::vector<ParameterPlace> parameters_of(Handle function);

/// All arguments; empty where the driver does not report their sizes.
std::vector<ArgumentBytes> arguments_of(const Call& call);
/// "0x7f2a00000000 (2 MiB from there), 4 bytes 0x00010000": for a list.
std::string description_of(const std::vector<ArgumentBytes>& arguments);

struct Allocation {
  Address begin = 0;
  std::size_t bytes = 0;
};
/// The device memory that an address lies in.
std::optional<Allocation> allocation_of(Address address);

Address address_in(const ArgumentBytes& bytes, std::size_t at = 0);

/// Finds addresses in the contents of memory.
class AddressSearch {
 public:
  /// Calls `visit(place, address, allocation)` for each word that is an address near one of `known` (whose addresses
  /// `begin_of` returns), from a place on that is aligned. False: there were too many words to look up.
  template <class Known, class BeginOf, class Visit>
  bool visit(const std::vector<std::byte>& contents, std::size_t from, const Known& known, BeginOf begin_of,
             Visit visit) {
    constexpr int kWindow = 36;
    constexpr std::size_t kMostLookups = 10'000;
    for (std::size_t at = from; at + sizeof(Address) <= contents.size(); at += sizeof(Address)) {
      const Address word = address_in(contents, at);
      if (std::ranges::none_of(known, [&](const auto& one) { return (word ^ begin_of(one)) >> kWindow == 0; }))
        continue;
      if (++lookups_ > kMostLookups) return false;
      if (const auto allocation = allocation_of(word)) visit(at, word, *allocation);
    }
    return true;
  }

 private:
  std::size_t lookups_ = 0;
};
std::string size_text(std::size_t bytes);

}  // namespace ergotune::inject::gpu
