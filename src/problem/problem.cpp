#include "ergotune/problem.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "problem/code_names.hpp"
#include "problem/element_type.hpp"

namespace ergotune {

namespace {

// In the order of the enumerations.
constexpr std::array kLanguages{"cuda", "opencl", "hip", "c", "cpp", "fortran"};
constexpr std::array kCompares{"elements", "sum", "min", "max", "sorted"};

struct TypeName {
  const char* name;
  std::size_t size;
};
constexpr TypeName kTypes[] = {{"int8", 1},    {"uint8", 1},   {"int16", 2},  {"uint16", 2},
                               {"int32", 4},   {"uint32", 4},  {"int64", 8},  {"uint64", 8},
                               {"float16", 2}, {"float32", 4}, {"float64", 8}};

// The names that C, CUDA and OpenCL programmers use for the same types.
constexpr std::pair<const char*, ElementType> kTypeAliases[] = {
    {"half", ElementType::float16},        {"__half", ElementType::float16},
    {"float", ElementType::float32},       {"double", ElementType::float64},
    {"char", ElementType::int8},           {"signed char", ElementType::int8},
    {"int8_t", ElementType::int8},         {"uchar", ElementType::uint8},
    {"unsigned char", ElementType::uint8}, {"uint8_t", ElementType::uint8},
    {"short", ElementType::int16},         {"int16_t", ElementType::int16},
    {"ushort", ElementType::uint16},       {"unsigned short", ElementType::uint16},
    {"uint16_t", ElementType::uint16},     {"int", ElementType::int32},
    {"signed int", ElementType::int32},    {"int32_t", ElementType::int32},
    {"uint", ElementType::uint32},         {"unsigned", ElementType::uint32},
    {"unsigned int", ElementType::uint32}, {"uint32_t", ElementType::uint32},
    {"long", ElementType::int64},          {"long long", ElementType::int64},
    {"ptrdiff_t", ElementType::int64},     {"int64_t", ElementType::int64},
    {"ulong", ElementType::uint64},        {"unsigned long", ElementType::uint64},
    {"size_t", ElementType::uint64},       {"unsigned long long", ElementType::uint64},
    {"uint64_t", ElementType::uint64}};

}  // namespace

std::string to_string(Language language) { return kLanguages[static_cast<std::size_t>(language)]; }
std::string to_string(Compare compare) { return kCompares[static_cast<std::size_t>(compare)]; }
std::string to_string(ElementType type) { return kTypes[static_cast<std::size_t>(type)].name; }
std::size_t size_of(ElementType type) { return kTypes[static_cast<std::size_t>(type)].size; }

std::optional<ElementType> element_type(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kTypes); ++i) {
    if (name == kTypes[i].name) return static_cast<ElementType>(i);
  }
  for (const auto& [alias, type] : kTypeAliases) {
    if (name == alias) return type;
  }
  return std::nullopt;
}

std::optional<std::pair<ElementType, int>> vector_type(std::string_view name) {
  for (const int width : {16, 8, 4, 3, 2}) {
    const std::string digits = std::to_string(width);
    if (!name.ends_with(digits)) continue;
    if (const auto type = element_type(name.substr(0, name.size() - digits.size()))) return std::pair{*type, width};
  }
  if (const auto type = element_type(name)) return std::pair{*type, 1};
  return std::nullopt;
}

std::size_t size_of(const std::vector<Field>& fields) {
  std::size_t bytes = 0, widest = 1;
  for (const Field& field : fields) {
    const std::size_t size = size_of(field.type);
    bytes = (bytes + size - 1) / size * size + size;
    widest = std::max(widest, size);
  }
  return (bytes + widest - 1) / widest * widest;
}

std::vector<std::uint8_t> contents_of(const Fill& fill) {
  if (!fill.foreign) return fill.data ? *fill.data : std::vector<std::uint8_t>();
  std::vector<std::uint8_t> contents(fill.foreign->bytes);
  fill.foreign->read(contents, 0);
  return contents;
}

std::string Problem::device_of_external_memory() const {
  for (const Kernel& kernel : kernels)
    for (const Argument& argument : kernel.arguments)
      if (argument.fill.foreign) return argument.fill.foreign->device;
  return {};
}

Attributes Problem::all_attributes() const {
  Attributes all = attributes;
  for (const Kernel& kernel : kernels) {
    const std::string table = kernel.name.empty() ? "kernel." : "kernels." + kernel.name + ".";
    for (const auto& [name, value] : kernel.attributes) all[table + name] = value;
    for (const auto& [name, value] : kernel.launch.attributes) all[table + "launch." + name] = value;
  }
  return all;
}

const KernelSource* Kernel::source_for(Language language) const {
  const auto found = std::ranges::find_if(sources, [&](const KernelSource& s) { return s.language == language; });
  return found == sources.end() ? nullptr : &*found;
}

Constants Problem::constants_for(const std::string& device_name, const Constants& device_properties) const {
  Constants result = constants;
  for (const auto& [part, values] : constants_by_device) {
    if (device_name.find(part) == std::string::npos) continue;
    for (const auto& [name, value] : values) result.insert_or_assign(name, value);
  }
  for (const auto& [name, value] : device_properties) result.insert_or_assign(name, value);
  return result;
}

SearchSpace Problem::build_space(const Constants& known, SpaceOptions options) const {
  options.constants = known;
  return SearchSpace::build(parameters, restrictions_of_space(*this), options);
}

}  // namespace ergotune
