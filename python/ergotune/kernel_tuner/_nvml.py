"""libnvidia-ml.so.1 by ctypes, as far as lists of clocks and limits need it; declarations of our own."""

import ctypes
import os


class Nvml:
    """One GPU, by its NVML index. Raises OSError where there is no driver, RuntimeError where the driver refuses."""

    def __init__(self, device=0):
        self._library = ctypes.CDLL(os.environ.get("ERGOTUNE_NVML") or "libnvidia-ml.so.1")
        self._call("nvmlInit_v2")
        self._handle = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(int(device or 0)), ctypes.byref(self._handle))

    def _call(self, name, *arguments):
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name} answers {code}")

    def _list(self, name, *arguments):
        count = ctypes.c_uint(1024)
        values = (ctypes.c_uint * 1024)()
        self._call(name, self._handle, *arguments, ctypes.byref(count), values)
        return list(values[: count.value])

    def memory_clocks(self):
        """MHz, descending as the driver gives them."""
        return self._list("nvmlDeviceGetSupportedMemoryClocks")

    def graphics_clocks(self, memory_clock):
        """MHz that go with a memory clock."""
        return self._list("nvmlDeviceGetSupportedGraphicsClocks", ctypes.c_uint(memory_clock))

    def power_limits(self):
        """(least, most), W."""
        low, high = ctypes.c_uint(), ctypes.c_uint()
        self._call("nvmlDeviceGetPowerManagementLimitConstraints", self._handle, ctypes.byref(low), ctypes.byref(high))
        return low.value * 1e-3, high.value * 1e-3

    def power(self):
        """W, now."""
        milliwatts = ctypes.c_uint()
        self._call("nvmlDeviceGetPowerUsage", self._handle, ctypes.byref(milliwatts))
        return milliwatts.value * 1e-3

    def uuid(self):
        text = ctypes.create_string_buffer(96)
        self._call("nvmlDeviceGetUUID", self._handle, text, ctypes.c_uint(96))
        return text.value.decode()
