"""What tests of Triton need of PyTorch, over NumPy: Triton's interpreter takes any object with these methods for a tensor."""

import numpy as np

float32, float64 = np.dtype("float32"), np.dtype("float64")


class _Storage:
    def __init__(self, values):
        self.values = values

    def data_ptr(self):
        return self.values.ctypes.data

    def cpu(self):
        return self

    def copy_(self, other):
        self.values[...] = other.values


class Tensor:
    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype, copy=True) if copy else np.asarray(self.values, dtype=dtype)

    def __setitem__(self, where, values):
        self.values[where] = values

    def __rmul__(self, factor):
        return Tensor((factor * self.values).astype(self.dtype))

    dtype = property(lambda self: self.values.dtype)
    shape = property(lambda self: self.values.shape)

    def to(self, dtype):
        return Tensor(self.values.astype(dtype))

    def clone(self):
        return Tensor(self.values.copy())

    def copy_(self, other):
        self.values[...] = other.values

    def zero_(self):
        self.values[...] = 0

    def item(self):
        return self.values.item()

    def data_ptr(self):
        return self.values.ctypes.data

    def untyped_storage(self):
        return _Storage(self.values)

    def storage_offset(self):
        return 0

    def size(self):
        return self.values.shape

    def stride(self):
        return tuple(step // self.values.itemsize for step in self.values.strides)

    def new_empty(self, count, device):
        return Tensor(np.empty(count, self.dtype))

    def set_(self, storage, offset, size, stride):
        self.values = storage.values


def rand(count):
    return Tensor(np.random.default_rng(1).random(count, dtype=np.float32))


def full(shape, value, dtype=float32):
    return Tensor(np.full(shape, value, dtype))


def zeros(shape, dtype=float32):
    return full(shape, 0, dtype)


def ones(shape):
    return full(shape, 1)


def equal(one, other):
    return np.array_equal(one.values, other.values)
