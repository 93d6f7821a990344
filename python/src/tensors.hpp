// Accepts arrays of other libraries as kernel arguments, through __cuda_array_interface__ (version 3) and DLPack.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bindings.hpp"

namespace ergotune::python {

/// Dense memory on a GPU, owned by a Python object.
struct DeviceTensor {
  void* address = nullptr;
  std::int64_t count = 0;  ///< number of elements
  std::vector<std::int64_t> shape;
  std::string order = "C";  ///< "F" if the first index varies fastest
  std::string type;         ///< NumPy's name of the element type
  bool read_only = false;
  std::shared_ptr<py::object> owner;  ///< keeps the memory alive
};

/// The tensor of an object in GPU memory; nullopt for any other object. Raises UserError if it is not dense or on a
/// device that is not a CUDA GPU.
std::optional<DeviceTensor> device_tensor(const py::object& object);
/// A NumPy array that shares the memory of an object in host memory. Raises TypeError if the object is not an array.
py::array host_array(const py::object& object);

/// The elements of an array in the order of their memory, with one dimension and this machine's byte order. Throws
/// UserError for an array of several dimensions with gaps or permuted axes, since the order of its elements is
/// ambiguous.
py::array in_memory_order(const py::array& array);

/// Lets kernels use a tensor in place. Before each run, its contents are those that it has when the measurement begins.
std::shared_ptr<const ExternalMemory> external_memory(const DeviceTensor& tensor, std::size_t bytes);

void bind_tensors(py::module_& module);

}  // namespace ergotune::python
