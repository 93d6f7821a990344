// A first problem file for any source: it is written, or the source is refused. Its device code has the same positions.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/kernel_source/device_code.hpp"
#include "ergotune/error.hpp"
#include "problem/draft/problem_draft.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ergotune;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (kernel_source::device_code_of(text).size() != text.size()) std::abort();
  for (const char* name : {"kernel.cu", "kernel.cl", "kernel.c"}) {
    try {
      (void)draft_problem_from_text(text, name, "", ".", {"host.py", std::string(name) == "kernel.cl" ? text : ""});
    } catch (const UserError&) {
    }
  }
  return 0;
}
