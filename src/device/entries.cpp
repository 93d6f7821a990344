#include "device/entries.hpp"

#include <algorithm>

namespace ergotune::device {
namespace {

bool is_real(ElementType type) {
  return type == ElementType::float16 || type == ElementType::float32 || type == ElementType::float64;
}

bool is_unsigned(ElementType type) { return to_string(type).starts_with('u'); }

/// Whether an argument can be what the kernel takes; what is unknown can.
bool fits(const KernelParameter& taken, const ArgumentSignature& given, std::int64_t bytes) {
  const bool buffer = given.kind == Argument::Kind::buffer;
  if (taken.bytes > 0 && taken.bytes != bytes) return false;
  if (buffer && !taken.pointer.value_or(true)) return false;
  const auto type = element_type(taken.type);
  if (!type || given.bytes > 0) return true;
  if (buffer) {
    const std::size_t own = size_of(given.type);
    return own == 1 || size_of(*type) == 1 || own == size_of(*type) || is_unsigned(*type);
  }
  if (taken.pointer.value_or(false)) return bytes == sizeof(void*);  // an address as a number
  return size_of(given.type) == size_of(*type) && is_real(given.type) == is_real(*type);
}

std::string as_text(bool pointer, const std::string& type, std::int64_t bytes) {
  const char* kind = pointer ? "a buffer" : "a value";
  return type.empty() ? fmt::format("{} of {} bytes", kind, bytes) : fmt::format("{} of {}", kind, type);
}

}  // namespace

void check_arguments(const std::string& kernel, const std::vector<KernelParameter>& taken,
                     std::vector<ArgumentSignature> given, bool takes_local_memory) {
  const auto is_local = [](const ArgumentSignature& a) { return a.kind == Argument::Kind::local_memory; };
  if (!takes_local_memory) std::erase_if(given, is_local);
  const auto fail = [](const std::string& message) { throw DeviceError(DeviceFault::compile, message); };
  if (given.size() != taken.size())
    fail(fmt::format("the kernel {} takes {} arguments, and the problem gives it {}", kernel, taken.size(),
                     given.size()));
  for (std::size_t i = 0; i < given.size(); ++i) {
    const ArgumentSignature& argument = given[i];
    if (is_local(argument)) continue;
    const bool buffer = argument.kind == Argument::Kind::buffer;
    const auto bytes = static_cast<std::int64_t>(buffer               ? sizeof(void*)
                                                 : argument.bytes > 0 ? argument.bytes
                                                                      : size_of(argument.type));
    if (fits(taken[i], argument, bytes)) continue;
    fail(fmt::format("argument {} of the kernel {}{} is {}, and the problem gives it {}", i + 1, kernel,
                     argument.name.empty() ? "" : fmt::format(" (\"{}\")", argument.name),
                     as_text(taken[i].pointer.value_or(false), taken[i].type, taken[i].bytes),
                     as_text(buffer, argument.bytes > 0 ? argument.type_name : to_string(argument.type), bytes)));
  }
}

std::string gpu_uuid(std::span<const unsigned char, 16> bytes) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

}  // namespace ergotune::device
