// What the device tests share.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/device.hpp"

namespace ergotune::test {

template <class T>
std::unique_ptr<Buffer> upload(Device& device, const std::vector<T>& values) {
  auto buffer = device.allocate(values.size() * sizeof(T));
  device.write(*buffer, std::as_bytes(std::span(values)));
  return buffer;
}

template <class T>
std::vector<T> download(Device& device, const Buffer& buffer, std::size_t count) {
  std::vector<T> values(count);
  device.read(buffer, std::as_writable_bytes(std::span(values)));
  return values;
}

inline KernelArgument of(const Buffer& buffer) { return {&buffer, {}, 0}; }
inline KernelArgument local(std::size_t bytes) { return {nullptr, {}, bytes}; }
template <class T>
KernelArgument scalar(T value) {
  KernelArgument argument;
  argument.scalar.resize(sizeof value);
  std::memcpy(argument.scalar.data(), &value, sizeof value);
  return argument;
}

/// The fault that `action` throws; nullopt when it throws none.
template <class Action>
std::optional<DeviceFault> fault_of(Action action) {
  try {
    action();
  } catch (const DeviceError& error) {
    return error.fault();
  }
  return std::nullopt;
}

/// Arguments for "f(float* x, int n)", and whether they fit.
inline std::vector<std::pair<std::vector<ArgumentSignature>, bool>> signatures() {
  using Kind = Argument::Kind;
  const ArgumentSignature x{Kind::buffer, ElementType::float32, "x"}, n{Kind::scalar, ElementType::int32, "n"};
  const ArgumentSignature wide{Kind::buffer, ElementType::float64, "x"}, bytes{Kind::buffer, ElementType::uint8, "x"},
      ints{Kind::buffer, ElementType::int32, "x"}, real{Kind::scalar, ElementType::float32, "n"},
      unsigned_n{Kind::scalar, ElementType::uint32, "n"}, long_n{Kind::scalar, ElementType::int64, "n"};
  return {{{x, n}, true},  {{bytes, n}, true}, {{ints, n}, false}, {{x, unsigned_n}, true},
          {{x}, false},    {{wide, n}, false}, {{x, real}, false}, {{x, long_n}, false},
          {{x, x}, false}, {{n, n}, false},    {{x, n, n}, false}};
}

/// Pointers of kernels beside the type of the buffer that they are given; whether it fits.
struct PointerCase {
  const char* pointer;
  ElementType given;
  bool fits;
};

inline std::vector<PointerCase> pointer_cases() {
  return {{"unsigned int", ElementType::float32, false},
          {"unsigned int", ElementType::int32, true},
          {"unsigned int", ElementType::uint64, false},
          {"float", ElementType::uint32, false},
          {"unsigned short", ElementType::int32, false},
          {"unsigned short", ElementType::float16, true},
          {"unsigned long", ElementType::float64, false},
          {"float4", ElementType::int32, false},
          {"float4", ElementType::float32, true},
          {"uint4", ElementType::float32, false},
          {"uint4", ElementType::float16, true},
          {"unsigned char", ElementType::float32, true},
          {"char", ElementType::float64, true}};
}

inline std::vector<std::string> property_names() {
  return {"device.max_threads_per_block",
          "device.shared_memory_per_block",
          "device.multiprocessors",
          "device.multiprocessor_unit",
          "device.warp_size",
          "device.registers_per_block",
          "device.registers_per_multiprocessor",
          "device.shared_memory_per_multiprocessor",
          "device.max_threads_per_multiprocessor",
          "device.max_blocks_per_multiprocessor",
          "device.l2_bytes",
          "device.global_memory_bytes",
          "device.compute_capability",
          "device.name"};
}

}  // namespace ergotune::test
