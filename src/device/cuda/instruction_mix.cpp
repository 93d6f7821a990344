#include "device/cuda/instruction_mix.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/files.hpp"
#include "base/process/environment.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "device/cuda/nvrtc_api.hpp"
#include "ergotune/error.hpp"

namespace ergotune::device {
namespace {

namespace fs = std::filesystem;

using Mix = std::map<std::string, double>;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r{");
  if (begin == text.npos) return {};
  const std::size_t end = text.find_last_not_of(" \t\r");
  return text.substr(begin, end - begin + 1);
}

/// Removes the first line from the text and returns it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

Mix empty_mix() {
  Mix mix;
  for (const char* name :
       {"static_instructions", "static_fma", "static_tensor", "static_global_loads", "static_global_stores",
        "static_shared_loads", "static_shared_stores", "static_spills", "static_branches", "static_barriers"})
    mix[name] = 0;
  return mix;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  for (const std::string_view w : words)
    if (word == w) return true;
  return false;
}

void count_ptx(std::string_view opcode, Mix& mix) {
  ++mix["static_instructions"];
  const std::string_view first = opcode.substr(0, opcode.find('.'));
  if (first == "fma" || (first == "mad" && has(opcode, ".f"))) ++mix["static_fma"];
  if (one_of(first, {"mma", "wgmma", "tcgen05"}) || opcode.starts_with("wmma.mma")) ++mix["static_tensor"];
  if (first == "ldmatrix" || (first == "ld" && has(opcode, ".shared")))
    ++mix["static_shared_loads"];
  else if (one_of(first, {"ld", "st"}) && has(opcode, ".local"))
    ++mix["static_spills"];
  else if (one_of(first, {"tex", "tld4", "ldu"}) || (first == "ld" && !has(opcode, ".param") && !has(opcode, ".const")))
    ++mix["static_global_loads"];
  else if (first == "st" && has(opcode, ".shared"))
    ++mix["static_shared_stores"];
  else if (one_of(first, {"red", "atom"}) || (first == "st" && !has(opcode, ".param")))
    ++mix["static_global_stores"];
  else if (opcode.starts_with("cp.async") && (has(opcode, ".shared") || has(opcode, "bulk"))) {
    ++mix["static_global_loads"];
    ++mix["static_shared_stores"];
  }
  if (one_of(first, {"bra", "brx", "call"})) ++mix["static_branches"];
  if (one_of(first, {"bar", "barrier"})) ++mix["static_barriers"];
}

void count_sass(std::string_view opcode, Mix& mix) {
  const std::string_view first = opcode.substr(0, opcode.find('.'));
  if (first == "NOP") return;
  ++mix["static_instructions"];
  if (one_of(first, {"FFMA", "DFMA", "HFMA2", "FFMA2", "FFMA32I"})) ++mix["static_fma"];
  if (one_of(first, {"HMMA", "IMMA", "DMMA", "BMMA", "HGMMA", "IGMMA", "QGMMA", "BGMMA", "UTCHMMA"}))
    ++mix["static_tensor"];
  if (one_of(first, {"LDG", "LD", "TEX", "TLD", "TLD4", "TXD", "LDGSTS", "UBLKCP", "UTMALDG"}))
    ++mix["static_global_loads"];
  if (one_of(first, {"STG", "ST", "RED", "REDG", "ATOM", "ATOMG"})) ++mix["static_global_stores"];
  if (one_of(first, {"LDS", "LDSM", "ULDS"})) ++mix["static_shared_loads"];
  if (one_of(first, {"STS", "STSM", "ATOMS", "LDGSTS"})) ++mix["static_shared_stores"];
  if (one_of(first, {"LDL", "STL"})) ++mix["static_spills"];
  if (one_of(first, {"BRA", "BRX", "JMP", "CALL"})) ++mix["static_branches"];
  if (first == "BAR") ++mix["static_barriers"];
}

/// Returns the line without a leading predicate ("@!P0 ", "@%p1 ").
std::string_view without_predicate(std::string_view line) {
  if (!line.starts_with('@')) return line;
  const std::size_t space = line.find_first_of(" \t");
  return space == line.npos ? std::string_view() : trimmed(line.substr(space));
}

std::string find_nvdisasm() {
  const std::string named = environment_variable("ERGOTUNE_NVDISASM");
  if (named == "off") return {};
  if (!named.empty()) return named;
  std::error_code ignored;
  for (const std::string& folder : split(environment_variable("PATH"), ':'))
    if (fs::exists(fs::path(folder) / "nvdisasm", ignored)) return (fs::path(folder) / "nvdisasm").string();
  constexpr std::array packages = {"nvidia/cu13", "nvidia/cuda_nvcc"};
  for (const fs::path& folder : cuda::toolkit_folders(packages))
    if (fs::exists(folder / "bin/nvdisasm", ignored)) return (folder / "bin/nvdisasm").string();
  return {};
}

}  // namespace

std::map<std::string, double> mix_of_ptx(std::string_view text, std::string_view function) {
  // from ".visible .entry NAME(" to the closing brace in the first column
  std::size_t at = 0;
  while (true) {
    at = text.find(function, at);
    if (at == text.npos) return {};
    const std::size_t line = text.rfind('\n', at) + 1;
    const char after = at + function.size() < text.size() ? text[at + function.size()] : ' ';
    if (has(text.substr(line, at - line), ".entry ") && (after == '(' || after == '\n' || after == ' ')) break;
    at += function.size();
  }
  const std::size_t begin = text.find("\n{", at);
  if (begin == text.npos) return {};
  const std::size_t end = text.find("\n}", begin);
  std::string_view body = text.substr(begin + 2, end - begin - 2);
  Mix mix = empty_mix();
  while (!body.empty()) {
    const std::string_view line = without_predicate(trimmed(take_line(body)));
    if (line.empty() || line.starts_with('.') || line.starts_with("//") || line.starts_with('$') ||
        line.starts_with('}') || line.starts_with('%') || !has(line, ";"))
      continue;
    count_ptx(line.substr(0, line.find_first_of(" \t;")), mix);
  }
  return mix;
}

std::map<std::string, double> mix_of_sass(std::string_view text, std::string_view function) {
  const std::string heading = ".text." + std::string(function) + ":";
  const std::size_t at = text.find(heading);
  if (at == text.npos) return {};
  std::string_view body = text.substr(at + heading.size());
  Mix mix = empty_mix();
  while (!body.empty()) {
    std::string_view line = trimmed(take_line(body));
    if (line.starts_with(".section") || line.starts_with("//----")) break;
    if (!line.starts_with("/*")) continue;  // "/*0010*/  @P0 LDG.E R4, [R2] ;"
    const std::size_t closed = line.find("*/");
    if (closed == line.npos) continue;
    line = without_predicate(trimmed(line.substr(closed + 2)));
    if (line.empty() || !has(line, ";")) continue;
    count_sass(line.substr(0, line.find_first_of(" \t;")), mix);
  }
  return mix;
}

std::string disassemble(const std::string& cubin) {
  static const std::string program = find_nvdisasm();
  if (program.empty() || !cubin.starts_with("\177ELF")) return {};
  char name[] = "/tmp/ergotune-cubin-XXXXXX";
  const int descriptor = ::mkstemp(name);
  if (descriptor < 0) return {};
  ::close(descriptor);
  std::string listing;
  if (write_file(name, cubin) == 0) {
    try {
      ProcessOptions options;
      options.timeout = 20;
      options.output_limit = std::size_t{256} << 20;
      const ProcessResult result = run_process({program, "-c", name}, options);
      if (result.ok()) listing = result.out;
    } catch (const Error&) {
      // nvdisasm is missing; PTX is used instead
    }
  }
  ::unlink(name);
  return listing;
}

void note_instructions(PackedCode& packed, std::string_view function, std::string_view ptx, bool disassembled) {
  if (disassembled) packed.instructions = mix_of_sass(disassemble(packed.code), function);
  packed.instructions_from = "SASS";
  if (!packed.instructions.empty()) return;
  packed.instructions = mix_of_ptx(ptx, function);
  packed.instructions_from = packed.instructions.empty() ? "" : "PTX";
}

}  // namespace ergotune::device
