#include "capture/inject/gpu/gpu_call.hpp"

#include <cstdio>
#include <cstring>

namespace ergotune::inject::gpu {
namespace {

std::string hexadecimal(Address value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

void Call::take_packed(void** extra) {
  // pairs of a name and a value: 1 the arguments' address, 2 the address of their size, 0 the end
  for (; extra && extra[0]; extra += 2) {
    if (extra[0] == reinterpret_cast<void*>(1)) packed = static_cast<const std::byte*>(extra[1]);
    if (extra[0] == reinterpret_cast<void*>(2)) packed_bytes = *static_cast<const std::size_t*>(extra[1]);
  }
}

LaunchShape shape_of(const unsigned (&grid)[3], const unsigned (&block)[3]) {
  LaunchShape shape;
  for (std::size_t d = 0; d < 3; ++d) {
    shape.block[d] = block[d];
    shape.global[d] = std::size_t{grid[d]} * block[d];
    if (shape.global[d] > 1) shape.dimensions = d + 1;
  }
  return shape;
}

std::vector<ArgumentBytes> arguments_of(const Call& call) {
  std::vector<ArgumentBytes> arguments;
  for (const auto& [offset, size] : parameters_of(call.function)) {
    const std::byte* from = nullptr;
    if (call.parameters)
      from = static_cast<const std::byte*>(call.parameters[arguments.size()]);
    else if (call.packed && offset + size <= call.packed_bytes)
      from = call.packed + offset;
    if (!from) break;
    arguments.emplace_back(from, from + size);
  }
  return arguments;
}

std::string description_of(const std::vector<ArgumentBytes>& arguments) {
  std::string message;
  for (const ArgumentBytes& bytes : arguments) {
    if (!message.empty()) message += ", ";
    const Address value = address_in(bytes);
    const auto allocation = bytes.size() == sizeof value ? allocation_of(value) : std::nullopt;
    if (allocation) {
      message += hexadecimal(value) + " (" + size_text(allocation->begin + allocation->bytes - value) + " from there)";
    } else if (bytes.size() <= sizeof value) {
      Address small = 0;
      std::memcpy(&small, bytes.data(), bytes.size());
      message += std::to_string(bytes.size()) + " bytes " + hexadecimal(small);
    } else {
      message += "structure of " + size_text(bytes.size());
    }
  }
  return message;
}

std::optional<Allocation> allocation_of(Address address) {
  Allocation allocation;
  const Driver& driver = Driver::get();
  if (address < 4096 || !driver.cuMemGetAddressRange_v2) return std::nullopt;
  if (driver.cuMemGetAddressRange_v2(&allocation.begin, &allocation.bytes, address) != 0) return std::nullopt;
  if (address < allocation.begin || address >= allocation.begin + allocation.bytes) return std::nullopt;
  return allocation;
}

Address address_in(const ArgumentBytes& bytes, std::size_t at) {
  Address address = 0;
  if (bytes.size() >= at + sizeof address) std::memcpy(&address, bytes.data() + at, sizeof address);
  return address;
}

std::string size_text(std::size_t bytes) {
  if (bytes >= std::size_t{1} << 20) return std::to_string(bytes >> 20) + " MiB";
  return bytes >= 1024 ? std::to_string(bytes >> 10) + " KiB" : std::to_string(bytes) + " bytes";
}

}  // namespace ergotune::inject::gpu
