// Arrays of other libraries as kernel arguments, by __cuda_array_interface__ (version 3) and DLPack.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings.hpp"

namespace ergotune::python {

/// Dense memory on a GPU that a Python object owns.
struct DeviceTensor {
  void* address = nullptr;
  std::int64_t count = 0;  ///< of elements
  std::vector<std::int64_t> shape;
  std::string order = "C";  ///< "F" where the first index runs fastest
  std::string type;         ///< NumPy's name of its elements
  bool read_only = false;
  std::shared_ptr<py::object> owner;  ///< keeps the memory
};

/// What is on a GPU; nullopt for anything else. Raises UserError for what is not dense or on no GPU of CUDA's.
std::optional<DeviceTensor> device_tensor(const py::object& object);
/// What is in the host's memory as a NumPy array of the same memory. Raises TypeError for what is no array.
py::array host_array(const py::object& object);

/// An array's elements in the order in which they lie in memory, in one dimension, in this machine's byte order. Throws
/// UserError for one of several dimensions with gaps or permuted axes: the order of its elements is not known.
py::array in_memory_order(const py::array& array);

/// Kernels use it where it is; its contents before each run are what it holds when the run begins.
std::shared_ptr<const ForeignMemory> foreign_memory(const DeviceTensor& tensor, std::size_t bytes);

void bind_tensors(py::module_& module);

}  // namespace ergotune::python
