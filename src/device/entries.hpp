// Helpers shared by the backends: each lists the devices of its driver as entries, whose member `info` is a DeviceInfo.
// Compiled code is packed with what was read from it.
#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/device.hpp"

namespace ergotune::device {

/// Returns the entry with this id among the devices that `find` returns now. Throws UserError if it is not present (any
/// more).
template <class Entry>
Entry entry_of(const std::string& id, std::vector<Entry> (*find)(std::string* note)) {
  std::string note;
  for (Entry& entry : find(&note))
    if (entry.info.id == id) return std::move(entry);
  throw UserError(fmt::format("there is no device \"{}\"{}", id, note.empty() ? "" : " (" + note + ")"));
}

template <class Entry>
std::vector<DeviceInfo> infos_of(std::vector<Entry> entries) {
  std::vector<DeviceInfo> list;
  for (Entry& entry : entries) list.push_back(std::move(entry.info));
  return list;
}

/// A parameter of a compiled kernel, as far as the compiled code shows it.
struct KernelParameter {
  std::int64_t bytes = 0;       ///< 0: unknown
  std::optional<bool> pointer;  ///< nullopt: unknown
  std::string type;             ///< its own, or that which it points to: "float"; empty: unknown
  bool constant = false;        ///< a pointer through which the kernel cannot write
};
/// The source does not fit the problem's function or arguments.
class Mismatch : public DeviceError {
 public:
  /// `argument`: number of the argument, from 1; 0: their count, or the function.
  Mismatch(const std::string& message, std::size_t argument, int native_code = 0)
      : DeviceError(DeviceFault::compile, message, native_code), argument_(argument) {}
  std::size_t argument() const { return argument_; }

 private:
  std::size_t argument_;
};
/// The error of a compiler that wrote `log`, with the remedy if a header was not found.
DeviceError compile_error(std::string log, int native_code = 0);

/// Compares a kernel's parameters with the arguments that the problem gives, before a launch reads beyond them. Values
/// and elements of buffers have the size and kind of the parameter's type; bytes, unsigned integers and vectors may
/// hold packed data. A buffer that is only written is no pointer to const. Throws Mismatch.
void check_arguments(const std::string& kernel, const std::vector<KernelParameter>& taken,
                     std::vector<ArgumentSignature> given, bool takes_local_memory = false);

/// Formats 16 bytes as NVML does: "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx".
std::string gpu_uuid(std::span<const unsigned char, 16> bytes);

struct PackedCode {
  std::string code;
  /// Instruction counts by names of quantities ("static_fma"), and the code from which they were counted ("SASS",
  /// "PTX"); empty: unknown.
  std::map<std::string, double> instructions = {};
  std::string instructions_from = {};
  /// Attributes of a CUDA function that are set when the code is loaded: the driver's number of each and the value.
  std::map<int, int> attributes = {};

  std::string pack() const;
  /// Bytes that were not created by pack() are returned as code.
  static PackedCode unpack(const std::string& bytes);
};

/// Takes the options that are attributes of a CUDA function out of compiler options. Throws DeviceError for a value
/// that is no number or out of range.
std::map<int, int> take_function_attributes(std::vector<std::string>& options);

}  // namespace ergotune::device
