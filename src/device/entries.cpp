#include "device/entries.hpp"

#include <charconv>
#include <string_view>
#include <tuple>

#include "base/messages/serialise.hpp"
#include "problem/element_type.hpp"

namespace ergotune::device {
namespace {

bool is_real(ElementType type) {
  return type == ElementType::float16 || type == ElementType::float32 || type == ElementType::float64;
}

/// Whether an argument can be what the kernel takes; what is unknown can.
bool fits(const KernelParameter& taken, const ArgumentSignature& given, std::int64_t bytes) {
  const bool buffer = given.kind == Argument::Kind::buffer;
  if (taken.bytes > 0 && taken.bytes != bytes) return false;
  if (buffer && !taken.pointer.value_or(true)) return false;
  const auto known = vector_type(taken.type);
  if (!known || given.bytes > 0) return true;
  const auto [type, width] = *known;
  if (buffer) {
    // bytes may be anything, and half precision is often read as integers or wide words
    const auto is_raw = [](ElementType t) { return size_of(t) == 1 || t == ElementType::float16; };
    if (is_raw(given.type) || is_raw(type)) return true;
    return size_of(given.type) == size_of(type) && is_real(given.type) == is_real(type);
  }
  if (width > 1) return true;
  if (taken.pointer.value_or(false)) return bytes == sizeof(void*);  // an address as a number
  return size_of(given.type) == size_of(type) && is_real(given.type) == is_real(type);
}

std::string as_text(bool pointer, const std::string& type, std::int64_t bytes) {
  const char* kind = pointer ? "a buffer" : "a value";
  return type.empty() ? fmt::format("{} of {} bytes", kind, bytes) : fmt::format("{} of {}", kind, type);
}

constexpr std::string_view kMagic = "ergotune code 2\n";

struct FunctionAttribute {
  std::string_view option;
  int first, count;  ///< the driver's numbers, one for each value of a list
  int low, high;
  int preset;  ///< what a function has if nothing is set
};
constexpr FunctionAttribute kFunctionAttributes[] = {{"--shared-memory-carveout=", 9, 1, -1, 100, -1},
                                                     {"--cluster-size=", 11, 3, 1, 16, 1}};

/// The attributes that an option sets; none if its values are the preset ones.
std::map<int, int> attributes_in(const FunctionAttribute& known, std::string_view values) {
  std::map<int, int> attributes;
  bool changes = false;
  const char *at = values.data(), *const end = at + values.size();
  for (int i = 0; i < known.count; ++i) {
    int value = known.preset;
    if (i == 0 || at != end) {
      const auto [next, error] = std::from_chars(at, end, value);
      const bool is_last = next == end, goes_on = next != end && *next == ',' && i + 1 < known.count;
      if (error != std::errc() || value < known.low || value > known.high || !(is_last || goes_on))
        throw DeviceError(DeviceFault::compile,
                          fmt::format("{}{}: at most {} whole numbers from {} to {}, separated by commas", known.option,
                                      values, known.count, known.low, known.high));
      at = is_last ? end : next + 1;
    }
    attributes[known.first + i] = value;
    changes |= value != known.preset;
  }
  return changes ? attributes : std::map<int, int>();
}

}  // namespace

DeviceError compile_error(std::string log, int native_code) {
  const auto has = [&](std::string_view sign) { return log.find(sign) != std::string::npos; };
  const bool of_gcc = has("fatal error: ") && has(": No such file or directory");
  constexpr std::string_view kNotOpened = "open source file \"";  // NVRTC
  const std::size_t at = log.find(kNotOpened), end = log.find('"', at + kNotOpened.size());
  // <vector> and the like have no dot
  const bool of_library = at != std::string::npos && log.substr(at, end - at).find('.') == std::string::npos;
  if (has("considered a host function") || of_library)
    log +=
        "\nrun-time compilation refuses host code and has no headers of C++: enclose them in \"#ifndef "
        "__CUDACC_RTC__\" and \"#endif\", or move the kernel to a separate file";
  else if (has("nvrtc_builtin_header.h("))
    log +=
        "\nconstants and parameters of the problem are macros of the source, and one has the name of something in the "
        "compiler's own header: rename it (capitals are safe)";
  else if (has(kNotOpened) || has("' file not found") || of_gcc)  // clang
    log += "\nname the folder of a header that was not found in include_folders of [kernel]";
  return {DeviceFault::compile, log, native_code};
}

void check_arguments(const std::string& kernel, const std::vector<KernelParameter>& taken,
                     std::vector<ArgumentSignature> given, bool takes_local_memory) {
  const auto is_local = [](const ArgumentSignature& a) { return a.kind == Argument::Kind::local_memory; };
  if (!takes_local_memory) std::erase_if(given, is_local);
  if (given.size() != taken.size())
    throw Mismatch(fmt::format("the kernel {} takes {} arguments, and the problem gives it {}", kernel, taken.size(),
                               given.size()),
                   0);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const ArgumentSignature& argument = given[i];
    if (is_local(argument)) continue;
    const bool buffer = argument.kind == Argument::Kind::buffer;
    const auto bytes = static_cast<std::int64_t>(buffer               ? sizeof(void*)
                                                 : argument.bytes > 0 ? argument.bytes
                                                                      : size_of(argument.type));
    const std::string name = argument.name.empty() ? "" : fmt::format(" (\"{}\")", argument.name);
    if (taken[i].constant && argument.access == Access::write)
      throw Mismatch(
          fmt::format("argument {} of the kernel {}{} is a pointer to const, and the problem declares that it "
                      "is written: are the arguments in the kernel's order?",
                      i + 1, kernel, name),
          i + 1);
    if (fits(taken[i], argument, bytes)) continue;
    throw Mismatch(
        fmt::format("argument {} of the kernel {}{} is {}, and the problem gives it {}", i + 1, kernel, name,
                    as_text(taken[i].pointer.value_or(false), taken[i].type, taken[i].bytes),
                    as_text(buffer, argument.bytes > 0 ? argument.type_name : to_string(argument.type), bytes)),
        i + 1);
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

static auto fields(PackedCode& packed) {
  auto& [code, instructions, instructions_from, attributes] = packed;
  return std::tie(code, instructions, instructions_from, attributes);
}

std::string PackedCode::pack() const { return std::string(kMagic) + Writer()(*this).take(); }

PackedCode PackedCode::unpack(const std::string& bytes) {
  if (!bytes.starts_with(kMagic)) return {bytes};
  PackedCode packed;
  try {
    Reader reader(std::string_view(bytes).substr(kMagic.size()));
    reader(packed).end();
  } catch (const FormatError&) {
    return {bytes};
  }
  return packed;
}

std::map<int, int> take_function_attributes(std::vector<std::string>& options) {
  std::map<int, int> attributes;
  for (const FunctionAttribute& known : kFunctionAttributes)
    std::erase_if(options, [&](const std::string& option) {
      if (!option.starts_with(known.option)) return false;
      attributes.merge(attributes_in(known, std::string_view(option).substr(known.option.size())));
      return true;
    });
  return attributes;
}

}  // namespace ergotune::device
