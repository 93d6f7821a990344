#include "device/code_object.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace ergotune::hip {
namespace {

using Json = nlohmann::json;

constexpr std::uint16_t kAmdGpu = 0xe0;      // e_machine
constexpr std::uint32_t kNoteSegment = 4;    // PT_NOTE
constexpr std::uint32_t kMetadataNote = 32;  // NT_AMDGPU_METADATA
constexpr std::size_t kHeader = 64, kProgramHeader = 56;
/// A compiler's note has a depth of five; the limit bounds the recursion of the parser.
constexpr int kMostLevels = 16;

/// Returns the number at `offset`; nullopt beyond the end of the file. Little endian, as AMD's GPUs and their hosts.
template <class T>
std::optional<T> number_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::optional<std::string_view> part(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
  return bytes.substr(offset, size);
}

constexpr std::uint64_t aligned(std::uint64_t size) { return (size + 3) / 4 * 4; }

/// Returns the metadata in the notes of a segment.
std::optional<std::string_view> metadata_in(std::string_view notes) {
  while (notes.size() >= 12) {
    const std::uint64_t name_size = *number_at<std::uint32_t>(notes, 0);
    const std::uint64_t size = *number_at<std::uint32_t>(notes, 4);
    const std::uint32_t type = *number_at<std::uint32_t>(notes, 8);
    const auto name = part(notes, 12, name_size);
    const auto description = part(notes, 12 + aligned(name_size), size);
    if (!name || !description) return std::nullopt;
    if (type == kMetadataNote && name->starts_with("AMDGPU")) return description;
    const std::uint64_t next = 12 + aligned(name_size) + aligned(size);
    notes.remove_prefix(std::min<std::uint64_t>(next, notes.size()));
  }
  return std::nullopt;
}

std::optional<std::string_view> find_metadata(std::string_view bytes, std::string& reason) {
  const auto machine = number_at<std::uint16_t>(bytes, 18);
  if (bytes.size() < kHeader || !bytes.starts_with("\177ELF\2\1") || machine != kAmdGpu) {
    reason = "no 64-bit ELF file for AMD's GPUs";
    return std::nullopt;
  }
  const std::uint64_t table = *number_at<std::uint64_t>(bytes, 32);
  const std::uint64_t step = *number_at<std::uint16_t>(bytes, 54), count = *number_at<std::uint16_t>(bytes, 56);
  for (std::uint64_t i = 0; i < count && step >= kProgramHeader; ++i) {
    const auto header = table <= bytes.size() ? part(bytes, table + i * step, kProgramHeader) : std::nullopt;
    if (!header) break;
    if (number_at<std::uint32_t>(*header, 0) != kNoteSegment) continue;
    const auto notes = part(bytes, *number_at<std::uint64_t>(*header, 8), *number_at<std::uint64_t>(*header, 32));
    if (!notes) continue;
    if (const auto found = metadata_in(*notes)) return found;
  }
  reason = "it has no metadata note";
  return std::nullopt;
}

/// Parses a document without storing it, to reject documents that are nested too deeply.
class Levels final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return ++level_ < kMostLevels; }
  bool end_object() override { return --level_, true; }
  bool start_array(std::size_t) override { return ++level_ < kMostLevels; }
  bool end_array() override { return --level_, true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  int level_ = 0;
};

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string text_of(const Json& object, const char* key) {
  const Json* value = member(object, key);
  return value && value->is_string() ? value->get<std::string>() : std::string();
}

/// Returns 0 if the value is absent, not an integer, negative or too large for `int`; no valid value is.
int number_of(const Json& object, const char* key) {
  const Json* value = member(object, key);
  if (!value || !value->is_number_unsigned()) return 0;
  const auto number = value->get<std::uint64_t>();
  return number <= 0x7fffffff ? static_cast<int>(number) : 0;
}

KernelMetadata kernel_of(const Json& object) {
  KernelMetadata kernel;
  // The entry point is named by its descriptor's symbol; for OpenCL, ".name" may differ.
  kernel.name = text_of(object, ".symbol");
  if (kernel.name.ends_with(".kd")) kernel.name.resize(kernel.name.size() - 3);
  if (kernel.name.empty()) kernel.name = text_of(object, ".name");
  kernel.vector_registers = number_of(object, ".vgpr_count");
  kernel.accumulation_registers = number_of(object, ".agpr_count");
  kernel.scalar_registers = number_of(object, ".sgpr_count");
  kernel.vector_spills = number_of(object, ".vgpr_spill_count");
  kernel.scalar_spills = number_of(object, ".sgpr_spill_count");
  kernel.group_bytes = number_of(object, ".group_segment_fixed_size");
  kernel.private_bytes = number_of(object, ".private_segment_fixed_size");
  kernel.max_threads_per_block = number_of(object, ".max_flat_workgroup_size");
  kernel.wavefront = number_of(object, ".wavefront_size");
  const Json* arguments = member(object, ".args");
  if (!arguments || !arguments->is_array()) return kernel;
  for (const Json& argument : *arguments) {
    const std::string kind = text_of(argument, ".value_kind");
    if (kind.starts_with("hidden_")) continue;
    kernel.arguments.push_back({number_of(argument, ".offset"), number_of(argument, ".size"), kind == "global_buffer"});
  }
  return kernel;
}

}  // namespace

std::optional<CodeObject> read_code_object(std::string_view bytes, std::string* reason) {
  std::string why;
  const auto metadata = find_metadata(bytes, why);
  if (!metadata) {
    if (reason) *reason = why;
    return std::nullopt;
  }
  Levels levels;
  const bool sound =
      Json::sax_parse(metadata->begin(), metadata->end(), &levels, nlohmann::detail::input_format_t::msgpack);
  const Json document = sound ? Json::from_msgpack(metadata->begin(), metadata->end(), true, false) : Json();
  const Json* kernels = member(document, "amdhsa.kernels");
  if (!kernels || !kernels->is_array()) {
    if (reason) *reason = "its metadata note is damaged";
    return std::nullopt;
  }
  CodeObject object;
  object.target = text_of(document, "amdhsa.target");
  for (const Json& kernel : *kernels) object.kernels.push_back(kernel_of(kernel));
  return object;
}

}  // namespace ergotune::hip
