// What stands between the command and libraries in other programs, and what those read of a program: messages, .npy
// headers, sources, names and options. Nothing may come out but an answer, and a message that is read must be written
// back the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/kernel_source/identifiers.hpp"
#include "base/kernel_source/signature.hpp"
#include "base/npy.hpp"
#include "capture/capture_folder.hpp"
#include "capture/messages.hpp"
#include "capture/scalar_type.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ergotune::capture;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    ergotune::FrameCutter cutter(kKind);
    cutter.append(bytes);
    while (const auto frame = cutter.next())
      if (encode(decode(*frame)).substr(ergotune::kFrameHeader) != frame->payload) std::abort();
  } catch (const ergotune::FormatError&) {
  }
  if (const auto header = ergotune::read_npy_header(bytes); header && header->data_offset > size) std::abort();
  // the first line is a kernel's name, what follows its source
  const std::size_t end = bytes.find('\n');
  const std::string name(bytes.substr(0, end));
  const std::string_view source = end == std::string_view::npos ? std::string_view() : bytes.substr(end);
  (void)ergotune::kernel_source::identifiers_in(source);
  (void)ergotune::kernel_source::identifiers_of_kernel(source, name);
  if (!name.empty()) (void)ergotune::kernel_source::parameters_in_source(source, name);
  (void)ergotune::kernel_source::parameters_of(name, false);
  (void)element_of(name);
  for (const std::string& option : split_options(std::string(source)))
    if (option.empty()) std::abort();
  return 0;
}
