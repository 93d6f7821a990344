#include "ergotune/problem.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "problem/code_names.hpp"

namespace ergotune {

namespace {

constexpr std::array<std::pair<Language, const char*>, 6> kLanguages{{{Language::cuda, "cuda"},
                                                                      {Language::opencl, "opencl"},
                                                                      {Language::hip, "hip"},
                                                                      {Language::c, "c"},
                                                                      {Language::cpp, "cpp"},
                                                                      {Language::fortran, "fortran"}}};

struct TypeName {
  ElementType type;
  const char* name;
  std::size_t size;
};
constexpr std::array<TypeName, 11> kTypes{{{ElementType::int8, "int8", 1},
                                           {ElementType::uint8, "uint8", 1},
                                           {ElementType::int16, "int16", 2},
                                           {ElementType::uint16, "uint16", 2},
                                           {ElementType::int32, "int32", 4},
                                           {ElementType::uint32, "uint32", 4},
                                           {ElementType::int64, "int64", 8},
                                           {ElementType::uint64, "uint64", 8},
                                           {ElementType::float16, "float16", 2},
                                           {ElementType::float32, "float32", 4},
                                           {ElementType::float64, "float64", 8}}};

// The names that C, CUDA and OpenCL programmers use for the same types.
constexpr std::array<std::pair<const char*, ElementType>, 15> kTypeAliases{{{"half", ElementType::float16},
                                                                            {"float", ElementType::float32},
                                                                            {"double", ElementType::float64},
                                                                            {"char", ElementType::int8},
                                                                            {"uchar", ElementType::uint8},
                                                                            {"unsigned char", ElementType::uint8},
                                                                            {"short", ElementType::int16},
                                                                            {"ushort", ElementType::uint16},
                                                                            {"unsigned short", ElementType::uint16},
                                                                            {"int", ElementType::int32},
                                                                            {"uint", ElementType::uint32},
                                                                            {"unsigned int", ElementType::uint32},
                                                                            {"unsigned", ElementType::uint32},
                                                                            {"long", ElementType::int64},
                                                                            {"ulong", ElementType::uint64}}};

constexpr std::array<std::pair<Compare, const char*>, 5> kCompares{{{Compare::elements, "elements"},
                                                                    {Compare::sum, "sum"},
                                                                    {Compare::minimum, "min"},
                                                                    {Compare::maximum, "max"},
                                                                    {Compare::sorted, "sorted"}}};

}  // namespace

std::string to_string(Language language) {
  for (const auto& [value, name] : kLanguages) {
    if (value == language) return name;
  }
  return "unknown";
}

std::string to_string(ElementType type) {
  for (const auto& entry : kTypes) {
    if (entry.type == type) return entry.name;
  }
  return "unknown";
}

std::optional<ElementType> element_type(std::string_view name) {
  for (const auto& entry : kTypes) {
    if (name == entry.name) return entry.type;
  }
  for (const auto& [alias, type] : kTypeAliases) {
    if (name == alias) return type;
  }
  return std::nullopt;
}

std::size_t size_of(ElementType type) {
  for (const auto& entry : kTypes) {
    if (entry.type == type) return entry.size;
  }
  return 0;
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

std::string to_string(Compare compare) {
  for (const auto& [value, name] : kCompares) {
    if (value == compare) return name;
  }
  return "unknown";
}

const KernelSource* Kernel::source_for(Language language) const {
  const auto found =
      std::find_if(sources.begin(), sources.end(), [&](const KernelSource& s) { return s.language == language; });
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
