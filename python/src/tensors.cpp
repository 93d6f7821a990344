#include "tensors.hpp"

#include <algorithm>

#include "device/device.hpp"
#include "ergotune/error.hpp"

namespace ergotune::python {
namespace {

/// The structures of DLPack (dlpack.h, version 0.8), a binary interface of array libraries.
struct DLDevice {
  std::int32_t type, id;
};
struct DLDataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t dimensions;
  DLDataType type;
  std::int64_t *shape, *strides;
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
enum DLDeviceType : std::int32_t { kDLCUDA = 2, kDLCUDAHost = 3, kDLROCM = 10, kDLCUDAManaged = 13 };

[[noreturn]] void refuse_strides() {
  throw UserError(
      "a tensor that is not dense cannot be used where it is: give tensor.contiguous() or "
      "cupy.ascontiguousarray(tensor)");
}

/// Whether elements have no gaps and the last index varies fastest; `strides` in multiples of `unit`. Strides of
/// dimensions with one element are ignored.
bool is_dense(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides, std::int64_t unit) {
  std::int64_t expected = unit;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

/// "C", or "F" if the first index varies fastest. Throws for a tensor with gaps.
std::string order_of(std::vector<std::int64_t> shape, std::vector<std::int64_t> strides, std::int64_t unit) {
  if (is_dense(shape, strides, unit)) return "C";
  std::ranges::reverse(shape);
  std::ranges::reverse(strides);
  if (!is_dense(shape, strides, unit)) refuse_strides();
  return "F";
}

std::int64_t product(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::string type_name(DLDataType type) {
  const char* kinds[] = {"int", "uint", "float", "", "bfloat", "complex", "bool"};
  if (type.lanes != 1 || type.code > 6 || type.code == 3) return "an unknown type";
  return type.code == 6 ? "bool" : kinds[type.code] + std::to_string(type.bits);
}

DeviceTensor from_cuda_array_interface(const py::object& object, const py::dict& interface) {
  DeviceTensor tensor;
  const auto shape = interface["shape"].cast<std::vector<std::int64_t>>();
  const auto data = interface["data"].cast<py::tuple>();
  const py::dtype dtype = py::dtype::from_args(interface["typestr"]);
  if (!dtype.attr("isnative").cast<bool>())
    throw UserError("a GPU's numbers are in its own byte order: convert the tensor");
  tensor.address = reinterpret_cast<void*>(data[0].cast<std::uintptr_t>());
  tensor.read_only = data[1].cast<bool>();
  tensor.type = dtype.attr("name").cast<std::string>();
  tensor.count = product(shape);
  tensor.shape = shape;
  if (interface.contains("strides") && !interface["strides"].is_none())
    tensor.order = order_of(shape, interface["strides"].cast<std::vector<std::int64_t>>(), dtype.itemsize());
  if (interface.contains("mask") && !interface["mask"].is_none())
    throw UserError("masked arrays cannot be kernel arguments");
  tensor.owner = keep(object);
  return tensor;
}

DeviceTensor from_dlpack(const py::object& object) {
  const py::object capsule = object.attr("__dlpack__")();
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  if (!managed) throw py::error_already_set();
  DeviceTensor tensor;
  const DLTensor& given = managed->tensor;
  const std::vector<std::int64_t> shape(given.shape, given.shape + given.dimensions);
  tensor.address = static_cast<char*>(given.data) + given.byte_offset;
  tensor.type = type_name(given.type);
  tensor.count = product(shape);
  tensor.shape = shape;
  if (given.strides) tensor.order = order_of(shape, {given.strides, given.strides + given.dimensions}, 1);
  tensor.owner = keep(py::make_tuple(object, capsule));  // the capsule, which is not consumed, frees the tensor
  return tensor;
}

std::int32_t dlpack_device(const py::object& object) {
  return object.attr("__dlpack_device__")().cast<py::tuple>()[0].cast<std::int32_t>();
}

/// PyTorch's tensors with gradients give access to their memory only after detach().
py::object without_gradient(const py::object& object) {
  return py::hasattr(object, "requires_grad") && object.attr("requires_grad").cast<bool>() ? object.attr("detach")()
                                                                                           : object;
}

}  // namespace

std::optional<DeviceTensor> device_tensor(const py::object& given) {
  if (py::isinstance<py::array>(given) ||
      !(py::hasattr(given, "__dlpack__") || py::hasattr(given, "__cuda_array_interface__")))
    return std::nullopt;
  const py::object object = without_gradient(given);
  std::optional<DeviceTensor> tensor;
  if (py::hasattr(object, "__cuda_array_interface__")) {
    tensor = from_cuda_array_interface(object, object.attr("__cuda_array_interface__"));
  } else if (const std::int32_t type = dlpack_device(object); type == kDLCUDA || type == kDLCUDAManaged) {
    tensor = from_dlpack(object);
  } else if (type == kDLROCM) {
    throw UserError("tensors of ROCm cannot be used where they are: give them as NumPy arrays");
  }
  if (tensor && tensor->count == 0) throw UserError("an empty tensor cannot be a kernel argument");
  return tensor;
}

py::array host_array(const py::object& given) {
  if (py::isinstance<py::array>(given)) return given;
  const py::object object = without_gradient(given);
  const py::module_ numpy = py::module_::import("numpy");
  if (py::hasattr(object, "__dlpack__")) return numpy.attr("from_dlpack")(object);
  if (py::hasattr(object, "__array__") || py::hasattr(object, "__array_interface__") ||
      PyObject_CheckBuffer(object.ptr()))
    return numpy.attr("asarray")(object);
  throw py::type_error("an argument must be an array (NumPy, CuPy, PyTorch, DLPack), not " +
                       py::str(py::type::of(object).attr("__name__")).cast<std::string>());
}

py::array in_memory_order(const py::array& array) {
  const bool in_c_order = (array.flags() & py::array::c_style) != 0,
             in_f_order = (array.flags() & py::array::f_style) != 0;
  if (array.ndim() > 1 && !in_c_order && !in_f_order)
    throw UserError(
        "an array of several dimensions has to lie in memory without gaps: give numpy.ascontiguousarray(array) or "
        "numpy.asfortranarray(array)");
  const py::array flat = array.attr("ravel")(in_c_order ? "C" : "F");
  if (flat.dtype().attr("isnative").cast<bool>()) return py::array::ensure(flat, py::array::c_style);
  return flat.attr("astype")(flat.dtype().attr("newbyteorder")("="));
}

std::shared_ptr<const ExternalMemory> external_memory(const DeviceTensor& tensor, std::size_t bytes) {
  auto memory = std::make_shared<ExternalMemory>();
  memory->device = device_of_memory(tensor.address);
  if (memory->device.empty()) throw UserError("no CUDA device of this process knows the memory of this tensor");
  memory->address = tensor.address;
  memory->bytes = bytes;
  memory->read = [owner = tensor.owner, id = memory->device, address = tensor.address, bytes](
                     std::span<std::uint8_t> into, std::size_t offset) {
    const std::unique_ptr<Device> device = open_device(id);
    device->settle();
    device->read(*device->wrap_buffer(address, bytes), std::as_writable_bytes(into), offset);
  };
  return memory;
}

namespace {

/// Copies contents that a kernel has written into the original tensor.
void fill_tensor(const py::object& object, const py::array& contents) {
  const auto tensor = device_tensor(object);
  if (!tensor) throw py::type_error("not a tensor on a GPU");
  const py::array dense = in_memory_order(contents);
  const auto memory =
      external_memory(*tensor, static_cast<std::size_t>(tensor->count * py::dtype(tensor->type).itemsize()));
  if (memory->bytes != static_cast<std::size_t>(dense.nbytes()))
    throw UserError("the contents have another size than the tensor");
  const std::unique_ptr<Device> device = open_device(memory->device);
  device->settle();
  const auto buffer = device->wrap_buffer(memory->address, memory->bytes);
  device->write(*buffer, {static_cast<const std::byte*>(dense.data()), memory->bytes});
}

py::array tensor_contents(const py::object& object) {
  const auto tensor = device_tensor(object);
  if (!tensor) throw py::type_error("not a tensor on a GPU");
  py::array contents(py::dtype(tensor->type), tensor->count);
  const auto memory = external_memory(*tensor, static_cast<std::size_t>(contents.nbytes()));
  memory->read({static_cast<std::uint8_t*>(contents.mutable_data()), memory->bytes}, 0);
  return contents;
}

py::object describe_tensor(const py::object& object) {
  const auto tensor = device_tensor(object);
  if (!tensor) return py::none();
  return py::make_tuple(py::dtype(tensor->type), tensor->count, tensor->read_only, tensor->order);
}

}  // namespace

void bind_tensors(py::module_& module) {
  module.def("fill_tensor", &fill_tensor, py::arg("tensor"), py::arg("contents"),
             "Copies an array of as many bytes into a tensor on a GPU.");
  module.def("tensor_contents", &tensor_contents, py::arg("tensor"),
             "What a tensor on a GPU holds, as a NumPy array of one dimension, in the order of memory.");
  module.def("in_memory_order", &in_memory_order, py::arg("array"),
             "An array's elements in the order in which they lie in memory, in one dimension. Raises UserError for one "
             "of several dimensions with gaps.");
  module.def("host_array", &host_array, py::arg("object"),
             "An array in the host's memory as a NumPy array of the same memory.");
  module.def("describe_tensor", &describe_tensor, py::arg("object"),
             "(dtype, elements, whether it is read-only, order in memory: C or F) of a tensor on a GPU; None for "
             "anything else.");
}

}  // namespace ergotune::python
