#include "measure/buffers/guarded_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ergotune/random.hpp"

namespace ergotune {
namespace {

/// The pattern consists of bytes from 0x30 to 0x4f, which are finite, moderate numbers in all floating-point types: a
/// kernel that reads beyond its data and multiplies by zero is not wrong.
std::vector<std::byte> pattern_of(std::uint64_t number) {
  std::vector<std::byte> pattern(GuardedBuffer::kBefore + GuardedBuffer::kBehind);
  Random random(0x67756172 + number);
  for (std::byte& byte : pattern) byte = static_cast<std::byte>(0x30 + random.below(0x20));
  return pattern;
}

}  // namespace

GuardedBuffer::GuardedBuffer(Device& device, std::span<const std::byte> contents, std::uint64_t number)
    : device_(device),
      pattern_(pattern_of(number)),
      whole_(device.allocate(kBefore + contents.size() + kBehind)),
      inside_(device.view(*whole_, kBefore, contents.size())) {
  write(contents);
}

GuardedBuffer::GuardedBuffer(Device& device, std::unique_ptr<Buffer> foreign)
    : device_(device), inside_(std::move(foreign)) {}

void GuardedBuffer::write(std::span<const std::byte> contents) {
  if (!whole_) return device_.write(*inside_, contents);
  const std::span zones(pattern_);
  device_.write(*whole_, zones.first(kBefore));
  device_.write(*whole_, contents, kBefore);
  device_.write(*whole_, zones.last(kBehind), kBefore + contents.size());
}

std::optional<std::int64_t> GuardedBuffer::written_outside() const {
  if (!whole_) return std::nullopt;
  found_.resize(pattern_.size());
  const std::span before = std::span(found_).first(kBefore), behind = std::span(found_).last(kBehind);
  device_.read(*whole_, before);
  device_.read(*whole_, behind, kBefore + inside_->bytes());
  if (std::memcmp(found_.data(), pattern_.data(), found_.size()) == 0) return std::nullopt;
  const auto pattern_behind = pattern_.begin() + kBefore;
  if (const auto at = std::mismatch(behind.begin(), behind.end(), pattern_behind).first; at != behind.end())
    return static_cast<std::int64_t>(inside_->bytes()) + (at - behind.begin());
  const auto at = std::mismatch(before.rbegin(), before.rend(), std::make_reverse_iterator(pattern_behind)).first;
  return -1 - (at - before.rbegin());
}

}  // namespace ergotune
