#include "device/packed_code.hpp"

#include <string_view>
#include <tuple>

#include "base/messages/serialise.hpp"

namespace ergotune::device {
namespace {

constexpr std::string_view kMagic = "ergotune code 1\n";

}  // namespace

static auto fields(PackedCode& packed) {
  auto& [code, instructions, instructions_from] = packed;
  return std::tie(code, instructions, instructions_from);
}

std::string PackedCode::pack() const { return std::string(kMagic) + Writer()(*this).take(); }

PackedCode PackedCode::unpack(const std::string& bytes) {
  if (!bytes.starts_with(kMagic)) return {bytes, {}, {}};
  PackedCode packed;
  try {
    Reader reader(std::string_view(bytes).substr(kMagic.size()));
    reader(packed).end();
  } catch (const FormatError&) {
    return {bytes, {}, {}};
  }
  return packed;
}

}  // namespace ergotune::device
