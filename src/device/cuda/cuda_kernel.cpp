#include "device/cuda/cuda_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "device/code_object.hpp"
#include "device/entries.hpp"

namespace ergotune::cuda {
namespace {

/// Number of launches in a graph. Creating a graph costs about as much as launching its kernels one by one, so that it
/// pays only for several graphs of launches.
constexpr std::size_t kGraphLaunches = 64;
constexpr std::size_t kGraphsWorthIt = 4;

}  // namespace

CUgraphExec capture_graph(const Api& api, CUstream stream, const std::function<void()>& work) {
  if (!api.has_graphs() || api.cuStreamBeginCapture(stream, kCaptureThreadLocal) != CUDA_SUCCESS) return nullptr;
  bool captured = true;
  try {
    work();
  } catch (const DeviceError&) {
    captured = false;
  }
  CUgraph graph = nullptr;  // the capture must be ended even after a failure
  captured = api.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS && captured;
  CUgraphExec ready = nullptr;
  if (captured && api.cuGraphInstantiate(&ready, graph, 0) != CUDA_SUCCESS) ready = nullptr;
  if (graph) api.cuGraphDestroy(graph);
  return ready;
}

CudaBuffer::CudaBuffer(const Api& api, std::size_t bytes) : DriverObject(api), bytes_(bytes) {
  check(api.cuMemAlloc(&address_, std::max<std::size_t>(bytes, 1)), DeviceFault::out_of_memory,
        fmt::format("a buffer of {} bytes", bytes).c_str());
}

CudaBuffer::~CudaBuffer() {
  if (owned_) api().cuMemFree(address_);
}

CudaModule::CudaModule(const Api& api, const Binary& binary) : DriverObject(api) {
  char log[4096] = {};
  int options[] = {JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const device::PackedCode packed = device::PackedCode::unpack(binary.bytes);
  const std::string& image = packed.code;
  const CUresult code = api.cuModuleLoadDataEx(&module_, image.c_str(), 2, options, values);
  if (code != CUDA_SUCCESS)
    throw DeviceError(fault_of(code, DeviceFault::launch),
                      fmt::format("the driver does not load the compiled kernel: {}{}{}", api.error_text(code),
                                  log[0] ? "\n" : "", log),
                      code);
  if (const CUresult found = api.cuModuleGetFunction(&function_, module_, binary.entry.c_str());
      found != CUDA_SUCCESS) {
    api.cuModuleUnload(module_);
    throw DeviceError(DeviceFault::compile,
                      fmt::format("the compiled kernel has no function {}: {}", binary.entry, api.error_text(found)),
                      found);
  }
  for (const auto& [attribute, value] : packed.attributes) {
    if (const CUresult refused = api.cuFuncSetAttribute(function_, attribute, value); refused != CUDA_SUCCESS) {
      api.cuModuleUnload(module_);
      throw DeviceError(DeviceFault::launch,
                        fmt::format("the driver does not set attribute {} of {} (CUfunction_attribute) to {}: {}",
                                    attribute, binary.entry, value, api.error_text(refused)),
                        refused);
    }
  }
  if (const auto code = hip::read_code_object(image)) {
    for (const hip::KernelMetadata& kernel : code->kernels) {
      if (kernel.name != binary.entry) continue;
      noted_ = {kernel.vector_registers, static_cast<int>(kernel.group_bytes), static_cast<int>(kernel.private_bytes),
                kernel.max_threads_per_block};
      noted_->spilled_registers = kernel.vector_spills + kernel.scalar_spills;
    }
  }
}

CudaModule::~CudaModule() { api().cuModuleUnload(module_); }

CudaKernel::CudaKernel(const DeviceEntry& device, std::shared_ptr<const CudaModule> module)
    : DriverObject(module->api()), device_(device), module_(std::move(module)), function_(module_->function()) {}

CudaKernel::~CudaKernel() { drop_graph(); }

std::unique_ptr<LoadedKernel> CudaKernel::another() { return std::make_unique<CudaKernel>(device_, module_); }

std::optional<int> CudaKernel::resident_blocks() const {
  const auto threads = geometry_.block[0] * geometry_.block[1] * geometry_.block[2];
  int blocks = 0;
  if (!api().cuOccupancyMaxActiveBlocksPerMultiprocessor ||
      api().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_, static_cast<int>(threads), shared_bytes_) !=
          CUDA_SUCCESS)
    return std::nullopt;
  return blocks;
}

LoadedKernel::Resources CudaKernel::resources() const {
  if (module_->noted()) return *module_->noted();
  const auto attribute = [&](FunctionAttribute which) {
    int value = -1;
    return api().cuFuncGetAttribute(&value, which, function_) == CUDA_SUCCESS ? value : -1;
  };
  return {attribute(FUNC_NUM_REGS), attribute(FUNC_SHARED_SIZE_BYTES), attribute(FUNC_LOCAL_SIZE_BYTES),
          attribute(FUNC_MAX_THREADS_PER_BLOCK)};
}

void CudaKernel::bind(const LaunchGeometry& geometry, const std::vector<KernelArgument>& arguments) {
  drop_graph();
  graph_refused_ = false;
  geometry_ = geometry;
  std::size_t shared = geometry.shared_memory_bytes;
  parameters_.clear();
  for (const auto& argument : arguments) {
    Parameter parameter(1 + argument.scalar.size() / sizeof(std::max_align_t));
    if (argument.buffer) {
      const CUdeviceptr address = static_cast<const CudaBuffer*>(argument.buffer)->address();
      std::memcpy(parameter.data(), &address, sizeof address);
    } else if (!argument.scalar.empty()) {
      std::memcpy(parameter.data(), argument.scalar.data(), argument.scalar.size());
    } else {  // a local memory argument, which may have size 0, is CUDA's extern __shared__ array
      shared += argument.local_bytes;
      continue;
    }
    parameters_.push_back(std::move(parameter));
  }
  pointers_.clear();
  for (auto& parameter : parameters_) pointers_.push_back(parameter.data());

  if (shared > static_cast<std::size_t>(device_.shared_limit_optin))
    throw DeviceError(DeviceFault::launch, fmt::format("{} bytes of dynamic shared memory; a block may have {}", shared,
                                                       device_.shared_limit_optin));
  shared_bytes_ = static_cast<unsigned>(shared);
  if (shared > static_cast<std::size_t>(device_.shared_limit))
    check(api().cuFuncSetAttribute(function_, FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared)),
          DeviceFault::launch, fmt::format("{} bytes of dynamic shared memory", shared).c_str());
}

void CudaKernel::launch_once(CUstream stream) {
  check(api().cuLaunchKernel(function_, geometry_.grid[0], geometry_.grid[1], geometry_.grid[2], geometry_.block[0],
                             geometry_.block[1], geometry_.block[2], shared_bytes_, stream, pointers_.data(), nullptr),
        DeviceFault::launch,
        fmt::format("launch of grid {}x{}x{}, block {}x{}x{}", geometry_.grid[0], geometry_.grid[1], geometry_.grid[2],
                    geometry_.block[0], geometry_.block[1], geometry_.block[2])
            .c_str());
}

void CudaKernel::launch(CUstream stream, std::size_t count, CUstream recorder) {
  if (recorder && count >= kGraphsWorthIt * kGraphLaunches && !graph_refused_ && (graph_ || make_graph(recorder)))
    for (; count >= kGraphLaunches; count -= kGraphLaunches)
      check(api().cuGraphLaunch(graph_, stream), DeviceFault::launch, "cuGraphLaunch");
  for (; count > 0; --count) launch_once(stream);
}

bool CudaKernel::make_graph(CUstream stream) {
  graph_ = capture_graph(api(), stream, [&] {
    for (std::size_t i = 0; i < kGraphLaunches; ++i) launch_once(stream);
  });
  graph_refused_ = !graph_;
  return graph_ != nullptr;
}

void CudaKernel::drop_graph() {
  if (graph_) api().cuGraphExecDestroy(graph_);
  graph_ = nullptr;
}

}  // namespace ergotune::cuda
