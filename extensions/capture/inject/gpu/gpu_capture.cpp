#include "capture/inject/gpu/gpu_capture.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>

#include "capture/inject/gpu/gpu_functions.hpp"
#include "capture/inject/session.hpp"

namespace ergotune::inject::gpu {

using capture::CapturedArgument;

GpuCapture::GpuCapture(const Call& call) : function_(call.function) {
  const Driver& driver = Driver::get();
  int capturing = 0;
  if (driver.cuStreamIsCapturing && driver.cuStreamIsCapturing(call.stream, &capturing) == 0 && capturing != 0)
    throw std::runtime_error("it is recorded into a graph, not launched");
  if (!driver.cuMemcpyDtoH_v2 || !driver.cuCtxSynchronize || driver.cuCtxSynchronize() != 0)
    throw std::runtime_error("the device cannot be waited for");
  const kernel_source::Demangled name = kernel_source::demangled(call.symbol);
  launch_.language = interface_name();
  launch_.kernel = name.name;
  launch_.program = program_command();
  launch_.dimensions = call.shape.dimensions;
  launch_.global = call.shape.global;
  launch_.block = call.shape.block;
  launch_.shared_bytes = call.shared_bytes;
  char device_name[256] = "a GPU";
  int device = 0;
  if (driver.cuCtxGetDevice && driver.cuDeviceGetName && driver.cuCtxGetDevice(&device) == 0)
    (void)driver.cuDeviceGetName(device_name, sizeof device_name, device);
  launch_.device = device_name;
  launch_.most_threads = static_cast<std::size_t>(attribute_of(call.function, 0));
  launch_.static_shared_bytes = static_cast<std::size_t>(attribute_of(call.function, 1));
  launch_.cluster = call.cluster;
  if (ERGOTUNE_NAMED(driver.cuDeviceGetAttribute != nullptr, false)) {
    constexpr int kMostShared = 97, kClusters = 120, kRequiredCluster = 11;
    int most = 0, clusters = 0;
    if (driver.cuDeviceGetAttribute(&most, kMostShared, device) == 0 && most > 0)
      launch_.most_shared_bytes = static_cast<std::size_t>(most);
    (void)driver.cuDeviceGetAttribute(&clusters, kClusters, device);
    launch_.may_have_cluster = clusters != 0 && call.cluster == std::array<unsigned, 3>{1, 1, 1} &&
                               attribute_of(call.function, kRequiredCluster) == 0;
  }
  take_code(call, name);
  take_arguments(call, name);
  follow_addresses();
  const std::size_t bytes = part_regions();
  if (bytes > Session::get().wishes().most_bytes)
    throw std::runtime_error("its memory has " + size_text(bytes) + " (--max-memory)");
  follow_memory();
  for (const Region& region : regions_) launch_.arguments[region.argument].bytes = read(region);
}

void GpuCapture::take_code(const Call& call, const kernel_source::Demangled& name) {
  constexpr const char* kSourceFile = ERGOTUNE_NAMED("kernel.cu", "kernel.hip");
  const auto [source, function] = source_of(call.symbol, name.name);
  if (const std::filesystem::path file = Session::get().wishes().source; !source && !file.empty()) {
    std::ifstream in(file, std::ios::binary);
    launch_.source.assign(std::istreambuf_iterator<char>(in), {});
    if (!in || launch_.source.empty()) throw std::runtime_error("its source " + file.string() + " cannot be read");
    launch_.source_file = kSourceFile;
    launch_.function = kernel_source::display_name(name);
    launch_.include_folders.push_back(file.parent_path().string());
    return;
  }
  if (!source) {
    launch_.compiled = true;
    launch_.function = call.symbol;
    launch_.source_file = ERGOTUNE_NAMED("kernel.cubin", "kernel.hsaco");
    return;  // the launch itself may be what loads it
  }
  launch_.function = function;
  launch_.source_file = kSourceFile;
  launch_.source = source->text;
  launch_.headers = source->headers;
  for (std::size_t i = 0; i < source->options.size(); ++i) {
    const std::string& option = source->options[i];
    // ergotune names the architecture of the device at hand
    if (option.starts_with("--gpu-architecture") || option.starts_with("--offload-arch") ||
        option.starts_with("-arch")) {
      if (option.find('=') == std::string::npos) ++i;
      continue;
    }
    if (option.starts_with("-I") && option.size() > 2)
      launch_.include_folders.push_back(std::filesystem::absolute(option.substr(2)).lexically_normal().string());
    else if (option.starts_with("--include-path="))
      launch_.include_folders.push_back(std::filesystem::absolute(option.substr(15)).lexically_normal().string());
    else
      launch_.options.push_back(option);
  }
}

void GpuCapture::take_arguments(const Call& call, const kernel_source::Demangled& name) {
  const std::vector<ArgumentBytes> values = arguments_of(call);
  // the source names and types them; a mangled name has types alone
  std::vector<kernel_source::Parameter> known;
  if (auto in_source = kernel_source::parameters_in_source(launch_.compiled ? "" : launch_.source, name.name);
      in_source && in_source->size() == values.size())
    known = std::move(*in_source);
  else if (auto mangled = kernel_source::parameters_of(name.list, false); mangled.size() == values.size())
    known = std::move(mangled);
  if (values.empty() && !name.list.empty() && name.list != "void")
    throw std::runtime_error(ERGOTUNE_NAMED("this driver does not report a kernel's arguments (CUDA 12.4 does)",
                                            "its arguments are not known: its code was not seen, or is compressed"));
  for (std::size_t i = 0; i < values.size(); ++i) {
    CapturedArgument argument;
    if (!known.empty()) {
      argument.name = known[i].name;
      argument.type = known[i].type;
      argument.constant = known[i].pointer && known[i].constant;
    }
    const bool may_point = values[i].size() == sizeof(Address) && (known.empty() || known[i].pointer);
    const auto allocation = may_point ? allocation_of(address_in(values[i])) : std::nullopt;
    if (allocation) {
      const Address address = address_in(values[i]);
      regions_.push_back(
          {i, address, allocation->begin, static_cast<std::size_t>(allocation->begin + allocation->bytes - address)});
    } else {
      argument.kind = CapturedArgument::Kind::scalar;
      argument.bytes = values[i];
      if (!known.empty() && known[i].pointer) argument.type.clear();  // a null pointer, or one of the host
    }
    launch_.arguments.push_back(std::move(argument));
  }
}

/// Structures that hold addresses: what these point to are buffers beside the arguments.
void GpuCapture::follow_addresses() {
  const std::size_t count = launch_.arguments.size();
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t at = 0; at + sizeof(Address) <= launch_.arguments[i].bytes.size(); at += sizeof(Address)) {
      const CapturedArgument& structure = launch_.arguments[i];
      if (structure.kind != CapturedArgument::Kind::scalar || structure.bytes.size() <= sizeof(Address)) break;
      const Address address = address_in(structure.bytes, at);
      const auto allocation = allocation_of(address);
      if (!allocation) continue;
      auto region = std::ranges::find_if(regions_, [&](const Region& one) { return one.address == address; });
      const std::size_t buffer = region == regions_.end() ? add_region(address, *allocation) : region->argument;
      launch_.arguments[i].addresses[at] = {buffer, 0};
    }
  }
}

/// A buffer beside the arguments: its position among them.
std::size_t GpuCapture::add_region(Address address, const Allocation& allocation) {
  const std::size_t argument = launch_.arguments.size();
  CapturedArgument& buffer = launch_.arguments.emplace_back();
  buffer.name = "memory" + std::to_string(argument);
  buffer.is_pointed_to = true;
  regions_.push_back(
      {argument, address, allocation.begin, static_cast<std::size_t>(allocation.begin + allocation.bytes - address)});
  return argument;
}

/// Addresses in the memory, also in the memory that these point to. What would exceed --max-memory stays as it is: it
/// may be an old address in memory that is used anew.
void GpuCapture::follow_memory() {
  AddressSearch search;
  for (std::size_t r = 0; r < regions_.size(); ++r) {  // it grows
    const auto note = [&](std::size_t at, Address word, const Allocation& allocation) {
      const auto holds = [&](const Region& one) { return word - one.address < one.bytes; };
      if (std::ranges::none_of(regions_, holds)) {
        add_region(word, allocation);
        if (part_regions() > Session::get().wishes().most_bytes) {
          regions_.pop_back();
          launch_.arguments.pop_back();
          return;
        }
      }
      const Region& region = *std::ranges::find_if(regions_, holds);
      launch_.arguments[regions_[r].argument].addresses[at] = {region.argument, word - region.address};
    };
    (void)search.visit(
        read(regions_[r]), -regions_[r].address % sizeof(Address), regions_,
        [](const Region& one) { return one.address; }, note);
  }
}

/// Frameworks take many arrays out of one allocation: each reaches as far as the next that the kernel is given. Returns
/// the bytes of all.
std::size_t GpuCapture::part_regions() {
  std::size_t bytes = 0;
  for (Region& region : regions_) {
    for (const Region& other : regions_)
      if (other.allocation == region.allocation && other.address > region.address)
        region.bytes = std::min<std::size_t>(region.bytes, other.address - region.address);
    launch_.arguments[region.argument].memory = region.address;
    bytes += region.bytes;
  }
  return bytes;
}

std::vector<std::byte> GpuCapture::read(const Region& region) {
  std::vector<std::byte> contents(region.bytes);
  if (const int code = Driver::get().cuMemcpyDtoH_v2(contents.data(), region.address, region.bytes); code != 0)
    throw std::runtime_error("its memory cannot be read (" + std::to_string(code) + ")");
  return contents;
}

std::vector<std::string> GpuCapture::finish(const std::string& folder) {
  if (const int code = Driver::get().cuCtxSynchronize(); code != 0)
    throw std::runtime_error("the launch failed (" + std::to_string(code) + ")");
  if (launch_.compiled) launch_.source = code_object_of(function_, launch_.function);
  if (launch_.source.empty()) throw std::runtime_error("its code was not seen being loaded");
  for (const Region& region : regions_) launch_.arguments[region.argument].after = read(region);
  return capture::write_capture(std::move(launch_), folder);
}

}  // namespace ergotune::inject::gpu
