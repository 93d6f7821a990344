// Counts the instructions of compiled code by kind, as far as its text shows them: static counts, not executed
// instructions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "device/entries.hpp"

namespace ergotune::device {

/// Return the counts of one function by names of quantities ("static_fma"), from PTX or from nvdisasm's listing. Empty
/// if the text does not contain the function.
std::map<std::string, double> mix_of_ptx(std::string_view text, std::string_view function);
std::map<std::string, double> mix_of_sass(std::string_view text, std::string_view function);

/// Returns nvdisasm's listing of a cubin; empty if there is no nvdisasm or if it does not know the chip. nvdisasm is
/// searched in ERGOTUNE_NVDISASM ("off": disabled), in PATH, in CUDA toolkits and in Python's NVIDIA packages.
std::string disassemble(const std::string& cubin);

/// Adds the instruction counts of one function: from SASS if `disassembled`, the code is a cubin and nvdisasm exists
/// (which takes 0.4 s to start), else from `ptx`, which may be empty.
void note_instructions(PackedCode& packed, std::string_view function, std::string_view ptx, bool disassembled);

}  // namespace ergotune::device
