import numpy as np


class GPUArray(np.ndarray):
    def get(self):
        return np.array(self)


def to_gpu(array):
    return array.copy().view(GPUArray)


def zeros_like(array):
    return np.zeros_like(array)
