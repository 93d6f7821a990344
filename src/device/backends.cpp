// The table of backends. To add one, add an entry here and a folder with its files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "device/backend.hpp"
#include "ergotune/problem.hpp"

namespace ergotune::device {

const std::vector<Backend>& backends() {
  static const std::vector<Backend> list = {
      {.name = "cuda",
       .languages = {Language::cuda},
       .list = list_cuda,
       .open = open_cuda,
       .open_compiler = make_cuda_compiler_for,
       .open_driverless =
           [](const std::string& target) { return target.starts_with("sm_") ? make_cuda_compiler(target) : nullptr; }},
      {.name = "hip",
       .languages = {Language::hip},
       .takes = {Language::cuda},
       .list = list_hip,
       .open = open_hip,
       .open_compiler = make_hip_compiler_for,
       .open_driverless =
           [](const std::string& target) { return target.starts_with("gfx") ? make_hip_compiler(target) : nullptr; }},
      {.name = "opencl",
       .languages = {Language::opencl},
       .list = list_opencl,
       .open = open_opencl,
       .open_compiler = make_opencl_compiler},
      {.name = "host",
       .languages = {Language::c, Language::cpp, Language::fortran},
       .list = list_host,
       .open = [](const std::string&) { return open_host(); },
       .open_compiler = [](const std::string&) { return make_host_compiler(); }},
  };
  return list;
}

const Backend& backend_named(std::string_view name) {
  for (const Backend& backend : backends())
    if (backend.name == name) return backend;
  throw Error(fmt::format("there is no kind of device \"{}\"", name));
}

}  // namespace ergotune::device

namespace ergotune {
namespace {

const KernelSource* find_source(const Kernel& kernel, const device::Backend& backend) {
  for (const auto& languages : {backend.languages, backend.takes})
    for (const Language language : languages)
      if (const KernelSource* source = kernel.source_for(language)) return source;
  return nullptr;
}

}  // namespace

const KernelSource& source_for_device(const Kernel& kernel, std::string_view backend) {
  const device::Backend& kind = device::backend_named(backend);
  if (const KernelSource* source = find_source(kernel, kind)) return *source;
  std::vector<std::string> have, wanted;
  for (const KernelSource& source : kernel.sources) have.push_back(to_string(source.language));
  for (const auto& languages : {kind.languages, kind.takes})
    for (const Language language : languages) wanted.push_back(to_string(language));
  throw UserError(fmt::format("the problem has no source in {} for a device of kind {}; it has: {}",
                              fmt::join(wanted, " or "), backend,
                              have.empty() ? "none" : fmt::format("{}", fmt::join(have, ", "))));
}

Language language_on_device(const KernelSource& source, std::string_view backend) {
  const device::Backend& kind = device::backend_named(backend);
  const bool taken = std::ranges::find(kind.takes, source.language) != kind.takes.end();
  return taken ? kind.languages.front() : source.language;
}

bool has_source_for(const Kernel& kernel, std::string_view backend) {
  return find_source(kernel, device::backend_named(backend)) != nullptr;
}

}  // namespace ergotune
