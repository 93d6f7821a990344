// A kernel loaded into a context of CUDA or HIP: module, arguments, and a graph of many launches.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "device/cuda/cuda_platform.hpp"

namespace ergotune::cuda {

/// Records the work that `work` queues on a stream as a graph. Returns null if the driver rejects it or queueing fails:
/// the caller then queues the work one by one, which succeeds or reports the error.
CUgraphExec capture_graph(const Api& api, CUstream stream, const std::function<void()>& work);

class CudaBuffer : public Buffer, DriverObject {
 public:
  CudaBuffer(const Api& api, std::size_t bytes);
  /// Memory that another owner frees.
  CudaBuffer(const Api& api, CUdeviceptr address, std::size_t bytes)
      : DriverObject(api), bytes_(bytes), address_(address), owned_(false) {}
  ~CudaBuffer() override;
  std::size_t bytes() const override { return bytes_; }
  CUdeviceptr address() const { return address_; }
  void* native_handle() const override { return reinterpret_cast<void*>(address_); }

 private:
  std::size_t bytes_;
  CUdeviceptr address_ = 0;
  bool owned_ = true;
};

/// A loaded module; unloaded with the object.
class CudaModule : public DriverObject {
 public:
  /// The device's context must be current and remain so.
  CudaModule(const Api& api, const Binary& binary);
  ~CudaModule();
  CUfunction function() const { return function_; }
  /// Resources according to metadata in the code (AMD), which are more complete than those of HIP's functions; nullopt
  /// if there are none.
  const std::optional<LoadedKernel::Resources>& noted() const { return noted_; }

 private:
  std::optional<LoadedKernel::Resources> noted_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

class CudaKernel : public LoadedKernel, DriverObject {
 public:
  CudaKernel(const DeviceEntry& device, std::shared_ptr<const CudaModule> module);
  ~CudaKernel() override;

  Resources resources() const override;
  std::unique_ptr<LoadedKernel> another() override;
  std::optional<int> resident_blocks() const override;
  void bind(const LaunchGeometry& geometry, const std::vector<KernelArgument>& arguments) override;
  /// Queues `count` launches. Many launches are queued as graphs, since the host cannot launch kernels of a few
  /// microseconds one by one fast enough. Graphs are recorded on `recorder`, a stream that no other thread uses; null:
  /// no graphs.
  void launch(CUstream stream, std::size_t count, CUstream recorder);

 private:
  /// Storage aligned for all types and as long as the argument; a structure may have kilobytes.
  using Parameter = std::vector<std::max_align_t>;
  void launch_once(CUstream stream);
  /// Records a graph of kGraphLaunches launches; returns false if the driver rejects it.
  bool make_graph(CUstream stream);
  void drop_graph();

  const DeviceEntry& device_;
  std::shared_ptr<const CudaModule> module_;
  CUfunction function_ = nullptr;
  LaunchGeometry geometry_;
  unsigned shared_bytes_ = 0;
  std::vector<Parameter> parameters_;
  std::vector<void*> pointers_;
  CUgraphExec graph_ = nullptr;
  bool graph_refused_ = false;
};

}  // namespace ergotune::cuda
