#include "capture/inject/gpu/gpu_functions.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "capture/capture_folder.hpp"

namespace ergotune::inject::gpu {
namespace {

template <class T>
T value_at(const char* bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
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

std::string_view image_at(const void* image) {
  const auto* bytes = static_cast<const char*>(image);
  constexpr std::uint32_t kWrapper = 0x466243b1, kFatBinary = 0xba55ed50, kHipWrapper = 0x48495046;
  if (std::memcmp(bytes, "\177ELF", 4) == 0) {
    // it ends with the table of its sections or with that of its segments
    const auto segments = value_at<std::uint64_t>(bytes, 32) +
                          std::size_t{value_at<std::uint16_t>(bytes, 54)} * value_at<std::uint16_t>(bytes, 56);
    const auto sections = value_at<std::uint64_t>(bytes, 40) +
                          std::size_t{value_at<std::uint16_t>(bytes, 58)} * value_at<std::uint16_t>(bytes, 60);
    return {bytes, std::max<std::size_t>({64, segments, sections})};
  }
  const auto magic = value_at<std::uint32_t>(bytes, 0);
  if (magic == kWrapper || magic == kHipWrapper) return image_at(value_at<const void*>(bytes, 8));
  if (constexpr std::string_view kBundle = "__CLANG_OFFLOAD_BUNDLE__";
      std::strncmp(bytes, kBundle.data(), kBundle.size()) == 0) {
    // of HIP: entries of an offset, a size, the length of a name, and the name
    std::size_t end = 32, at = 32;
    for (auto left = value_at<std::uint64_t>(bytes, 24); left > 0; --left) {
      end = std::max<std::size_t>(end, value_at<std::uint64_t>(bytes, at) + value_at<std::uint64_t>(bytes, at + 8));
      at += 24 + value_at<std::uint64_t>(bytes, at + 16);
    }
    return {bytes, end};
  }
  // of HIP, compressed: from its version 2 on its size is known
  if (std::memcmp(bytes, "CCOB", 4) == 0) {
    const auto version = value_at<std::uint16_t>(bytes, 4);
    return {bytes, version == 2  ? value_at<std::uint32_t>(bytes, 8)
                   : version > 2 ? value_at<std::uint64_t>(bytes, 8)
                                 : std::size_t{8}};
  }
  if (magic == kFatBinary) return {bytes, value_at<std::uint16_t>(bytes, 6) + value_at<std::uint64_t>(bytes, 8)};
  return bytes;
}

Functions& Functions::get() {
  static Functions* const functions = new Functions;
  return *functions;
}

void Functions::loaded(Handle code, std::string_view image) {
  Image loaded;
  if (!image.empty()) loaded.hash = hash_of(image);
  if (ERGOTUNE_NAMED(false, true)) loaded.bytes = std::make_shared<const std::string>(image);
  const std::lock_guard lock(mutex_);
  images_[code] = std::move(loaded);
}

void Functions::loaded_file(Handle code, const char* file) {
  std::ifstream in(file ? file : "", std::ios::binary);
  loaded(code, std::string_view(std::string(std::istreambuf_iterator<char>(in), {})));
}

const Functions::Image* Functions::image(Handle function) const {
  const auto known = functions_.find(function);
  const auto image = known == functions_.end() ? images_.end() : images_.find(known->second.code);
  return image == images_.end() ? nullptr : &image->second;
}

std::shared_ptr<const std::string> Functions::image_of(Handle function) const {
  const std::lock_guard lock(mutex_);
  const Image* loaded = image(function);
  return loaded ? loaded->bytes : nullptr;
}

void Functions::same_code(Handle code, Handle other) {
  const std::lock_guard lock(mutex_);
  const auto image = images_.find(code);
  if (image != images_.end()) images_[other] = Image(image->second);
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
    if (const Image* loaded = image(function)) identity += loaded->hash;
  }
  // threads of the largest block, shared, constant and local memory, registers, versions of PTX and of the code
  for (int attribute = 0; attribute < 7; ++attribute)
    identity += ' ' + std::to_string(attribute_of(function, attribute));
  for (const auto& [offset, size] : parameters_of(function)) identity += ',' + std::to_string(size);
  return identity;
}

}  // namespace ergotune::inject::gpu
