// What instructions compiled code is made of, as far as its text tells: a static count, not what runs.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "device/packed_code.hpp"

namespace ergotune::device {

/// Counts by the names of quantities ("static_fma"), of one function of PTX or of nvdisasm's listing. Empty where the
/// function is not in the text.
std::map<std::string, double> mix_of_ptx(std::string_view text, std::string_view function);
std::map<std::string, double> mix_of_sass(std::string_view text, std::string_view function);

/// The listing that nvdisasm makes of a cubin; empty where there is no nvdisasm, or it does not know the chip. It is
/// looked for in ERGOTUNE_NVDISASM ("off": nowhere), in the PATH, in CUDA toolkits and in Python's NVIDIA packages.
std::string disassemble(const std::string& cubin);

/// Fills the mix of one function: of SASS where that is requested, the code is a cubin and nvdisasm is there (which
/// takes 0.4 s to start), else of `ptx`, which may be empty.
void note_instructions(PackedCode& packed, std::string_view function, std::string_view ptx, bool disassembled);

}  // namespace ergotune::device
