#include "capture/inject/cuda/cuda_code.hpp"

#include <cstring>
#include <mutex>

#include "base/kernel_source/identifiers.hpp"

namespace ergotune::inject::cuda {
namespace {

constexpr std::size_t kMostKept = std::size_t{2} << 30;

struct Kept {
  std::mutex mutex;
  std::vector<std::shared_ptr<const std::string>> objects;
  std::vector<std::shared_ptr<const RuntimeSource>> sources;
  std::size_t bytes = 0;
};
Kept& kept() {
  static Kept* const all = new Kept;
  return *all;
}

}  // namespace

Code& Code::get() {
  static Code* const code = new Code;
  return *code;
}

void Code::add_code_object(const void* bytes, std::size_t size) {
  if (!bytes || size == 0) return;
  Kept& all = kept();
  const std::lock_guard lock(all.mutex);
  if (all.bytes + size > kMostKept) return;
  all.bytes += size;
  all.objects.push_back(std::make_shared<const std::string>(static_cast<const char*>(bytes), size));
}

std::string Code::code_object_with(const std::string& symbol) const {
  Kept& all = kept();
  const std::lock_guard lock(all.mutex);
  // the section that every kernel has; its name ends with a zero
  const std::string section = ".text." + symbol + '\0';
  for (auto object = all.objects.rbegin(); object != all.objects.rend(); ++object)
    if (::memmem((*object)->data(), (*object)->size(), section.data(), section.size())) return **object;
  return {};
}

void Code::add_source(std::shared_ptr<const RuntimeSource> source) {
  Kept& all = kept();
  const std::lock_guard lock(all.mutex);
  all.sources.push_back(std::move(source));
}

std::pair<std::shared_ptr<const RuntimeSource>, std::string> Code::source_of(const std::string& symbol,
                                                                             const std::string& word) const {
  Kept& all = kept();
  const std::lock_guard lock(all.mutex);
  for (auto source = all.sources.rbegin(); source != all.sources.rend(); ++source) {
    for (const auto& [lowered, expression] : (*source)->names)
      if (lowered == symbol) return {*source, expression};
    // extern "C", or a plain function
    if ((*source)->names.empty() && kernel_source::identifiers_in((*source)->text).contains(word))
      return {*source, word};
  }
  return {};
}

}  // namespace ergotune::inject::cuda
