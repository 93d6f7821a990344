#include "capture/inject/cuda/cuda_functions.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "capture/capture_folder.hpp"
#include "capture/inject/cuda/cuda_call.hpp"

namespace ergotune::inject::cuda {
namespace {

template <class T>
T value_at(const char* bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}

/// A code object as the driver is given it, without a size.
std::string_view image_at(const void* image) {
  const auto* bytes = static_cast<const char*>(image);
  constexpr std::uint32_t kWrapper = 0x466243b1, kFatBinary = 0xba55ed50;
  if (std::memcmp(bytes, "\177ELF", 4) == 0) {
    // it ends with the table of its sections or with that of its segments
    const auto segments = value_at<std::uint64_t>(bytes, 32) +
                          std::size_t{value_at<std::uint16_t>(bytes, 54)} * value_at<std::uint16_t>(bytes, 56);
    const auto sections = value_at<std::uint64_t>(bytes, 40) +
                          std::size_t{value_at<std::uint16_t>(bytes, 58)} * value_at<std::uint16_t>(bytes, 60);
    return {bytes, std::max<std::size_t>({64, segments, sections})};
  }
  const auto magic = value_at<std::uint32_t>(bytes, 0);
  if (magic == kWrapper) return image_at(value_at<const void*>(bytes, 8));
  if (magic == kFatBinary) return {bytes, value_at<std::uint16_t>(bytes, 6) + value_at<std::uint64_t>(bytes, 8)};
  return bytes;
}

/// Of its beginning, its end and its size: a library's code has hundreds of MB, and verification is what decides.
std::string hash_of(std::string_view image) {
  constexpr std::size_t kEnd = 64 << 10;
  std::string text = std::to_string(image.size());
  text += image.substr(0, kEnd);
  if (image.size() > kEnd) text += image.substr(std::max(kEnd, image.size() - kEnd));
  return capture::source_hash(text);
}

}  // namespace

std::string display_name(const kernel_source::Demangled& name) {
  std::string text = name.whole;
  if (!name.list.empty()) text = text.substr(0, text.rfind('(' + name.list));
  if (text.starts_with("void ")) text = text.substr(5);
  return text;
}

Functions& Functions::get() {
  static Functions* const functions = new Functions;
  return *functions;
}

void Functions::loaded(Handle code, const void* image) {
  std::string hash = image ? hash_of(image_at(image)) : std::string();
  const std::lock_guard lock(mutex_);
  images_[code] = std::move(hash);
}

void Functions::same_code(Handle code, Handle other) {
  const std::lock_guard lock(mutex_);
  const auto image = images_.find(code);
  if (image != images_.end()) images_[other] = std::string(image->second);
}

void Functions::found(Handle code, Handle function, const char* symbol) {
  const std::lock_guard lock(mutex_);
  functions_[function] = {symbol, code};
}

void Functions::same_function(Handle kernel, Handle function) {
  const std::lock_guard lock(mutex_);
  const auto known = functions_.find(kernel);
  if (known != functions_.end()) functions_[function] = Function(known->second);
}

std::vector<Handle> Functions::unloaded(Handle code) {
  const std::lock_guard lock(mutex_);
  images_.erase(code);
  std::vector<Handle> gone;
  for (auto one = functions_.begin(); one != functions_.end();) {
    if (one->second.code != code) {
      ++one;
      continue;
    }
    gone.push_back(one->first);
    one = functions_.erase(one);
  }
  return gone;
}

std::string Functions::symbol_of(Handle function) const {
  const std::lock_guard lock(mutex_);
  const auto known = functions_.find(function);
  return known == functions_.end() ? std::string() : known->second.symbol;
}

std::string Functions::identity_of(Handle function, const std::string& symbol) const {
  std::string identity = symbol + '\n';
  {
    const std::lock_guard lock(mutex_);
    const auto known = functions_.find(function);
    const auto image = known == functions_.end() ? images_.end() : images_.find(known->second.code);
    if (image != images_.end()) identity += image->second;
  }
  // threads of the largest block, shared, constant and local memory, registers, versions of PTX and of the code
  for (int attribute = 0; attribute < 7; ++attribute) {
    int value = 0;
    const auto query = Driver::get().cuFuncGetAttribute;
    if (query && query(&value, attribute, function) == 0) identity += ' ' + std::to_string(value);
  }
  for (const auto& [offset, size] : parameters_of(function)) identity += ',' + std::to_string(size);
  return identity;
}

}  // namespace ergotune::inject::cuda
