// What the library for HIP programs knows of a kernel's code: its code object's metadata.
#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "capture/inject/gpu/gpu_functions.hpp"
#include "device/code_object.hpp"

namespace ergotune::inject::gpu {
namespace {

struct Object {
  std::string_view bytes;
  hip::CodeObject metadata;
};
/// An image holds one code object, or a bundle of one for each architecture.
using Objects = std::vector<Object>;

const Objects& objects_in(const std::shared_ptr<const std::string>& image) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::shared_ptr<const std::string>, Objects>;
  const std::lock_guard lock(mutex);
  const auto [entry, fresh] = known->try_emplace(image);
  Objects& objects = entry->second;
  const std::string_view all(*image);
  for (std::size_t at = 0; fresh && (at = all.find("\177ELF", at)) != std::string_view::npos; ++at) {
    // the end of a bundle's entry does not matter to who reads it
    if (auto metadata = hip::read_code_object(all.substr(at)))
      objects.push_back({all.substr(at), std::move(*metadata)});
  }
  return objects;
}

/// "gfx90a:sramecc+:xnack-"; empty where it is not known.
std::string target_of_device() {
  int device = 0;
  // a structure that has grown
  std::array<char, 8192> properties{};
  for (const char* name : {"hipGetDevicePropertiesR0600", "hipGetDeviceProperties"})
    if (auto* const query = reinterpret_cast<int (*)(void*, int)>(Driver::find(name));
        query && Driver::get().cuCtxGetDevice && Driver::get().cuCtxGetDevice(&device) == 0 &&
        query(properties.data(), device) == 0)
      break;
  const std::string_view text(properties.data(), properties.size());
  const std::size_t begin = text.find("gfx");
  return begin == std::string_view::npos ? "" : properties.data() + begin;
}

/// Whether code for `of` ("amdgcn-amd-amdhsa--gfx90a:xnack-") runs on `device`.
bool runs_on(std::string_view of, const std::string& device) {
  const std::size_t dashes = of.rfind("--");
  std::string_view rest = dashes == std::string_view::npos ? of : of.substr(dashes + 2);
  if (rest.substr(0, rest.find(':')) != device.substr(0, device.find(':'))) return false;
  while (rest.find(':') != std::string_view::npos) {
    rest = rest.substr(rest.find(':'));
    const std::size_t end = rest.find(':', 1);
    if (device.find(rest.substr(0, end)) == std::string::npos) return false;
    rest = rest.substr(1);
  }
  return true;
}

struct Kernel {
  std::shared_ptr<const std::string> image;  ///< what the rest lies in
  const Object* object = nullptr;
  const hip::KernelMetadata* metadata = nullptr;
};
Kernel kernel_of(Handle function) {
  Kernel found{Functions::get().image_of(function)};
  if (!found.image) return found;
  const std::string symbol = Functions::get().symbol_of(function), device = target_of_device();
  for (const Object& object : objects_in(found.image))
    for (const hip::KernelMetadata& kernel : object.metadata.kernels)
      if (kernel.name == symbol && (!found.object || runs_on(object.metadata.target, device)))
        found = {found.image, &object, &kernel};
  return found;
}

}  // namespace

std::string code_object_of(Handle function, const std::string&) {
  const Kernel kernel = kernel_of(function);
  return kernel.object ? std::string(image_at(kernel.object->bytes.data())) : std::string();
}

int attribute_of(Handle function, int attribute) {
  const Kernel kernel = kernel_of(function);
  if (!kernel.metadata) return 0;
  // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, SHARED_SIZE_BYTES, NUM_REGS
  return attribute == 0   ? kernel.metadata->max_threads_per_block
         : attribute == 1 ? static_cast<int>(kernel.metadata->group_bytes)
         : attribute == 4 ? kernel.metadata->vector_registers
                          : 0;
}

std::vector<ParameterPlace> parameters_of(Handle function) {
  std::vector<ParameterPlace> places;
  const Kernel kernel = kernel_of(function);
  if (kernel.metadata)
    for (const auto& argument : kernel.metadata->arguments)
      places.push_back({static_cast<std::size_t>(argument.offset), static_cast<std::size_t>(argument.bytes)});
  return places;
}

}  // namespace ergotune::inject::gpu
