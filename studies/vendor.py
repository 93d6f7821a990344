"""What the vendor's libraries and PyTorch do on the GPU: what they are called with, and one stopwatch for all.

Time is that of CUDA events, energy that of the GPU's counter (NVML), both over a stream of launches that begins and ends when the
counter changes, after the GPU has come to its steady state.
"""

import ctypes
import time


class Board:
    """Energy counter (J), power limit (W) and name of CUDA's first GPU, through NVML, whose order is another."""

    def __init__(self):
        cuda, address = ctypes.CDLL("libcuda.so.1"), ctypes.create_string_buffer(32)
        if cuda.cuInit(0) or cuda.cuDeviceGetPCIBusId(address, len(address), 0):
            raise OSError("CUDA knows no GPU")
        self._nvml, self._gpu = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        if self._nvml.nvmlInit_v2() or self._nvml.nvmlDeviceGetHandleByPciBusId_v2(address, ctypes.byref(self._gpu)):
            raise OSError("NVML knows no GPU")

    def _number(self, function, type):
        value = type()
        return value.value if getattr(self._nvml, function)(self._gpu, ctypes.byref(value)) == 0 else None

    def energy(self):
        return self._number("nvmlDeviceGetTotalEnergyConsumption", ctypes.c_ulonglong) / 1e3

    def power_limit(self):
        return self._number("nvmlDeviceGetEnforcedPowerLimit", ctypes.c_uint) / 1e3


def sustained(torch, gpu, call, seconds=0.5, warm_up=0.3):
    """Time (s), energy (J) and power (W) of a call in a steady state; energy and power are None without a GPU."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    call()
    start.record()
    call()
    end.record()
    end.synchronize()
    each = max(1e-6, start.elapsed_time(end) * 1e-3)
    batch, events = max(1, int(0.005 / each)), []

    def feed():
        """Keeps two batches in the queue, so that the GPU never waits and the counter is read close to what runs."""
        for _ in range(batch):
            call()
        events.append(torch.cuda.Event(enable_timing=True))
        events[-1].record()
        if len(events) > 2:
            events[-3].synchronize()

    def edge():
        """When the counter changes: the moment, its value, and the batches that were queued."""
        if gpu is None:
            return time.perf_counter(), 0.0, len(events)
        before = gpu.energy()
        while True:
            feed()
            now = gpu.energy()
            if now != before:
                return time.perf_counter(), now, len(events)

    begun = time.perf_counter()
    while time.perf_counter() - begun < warm_up:
        feed()
    begun, energy, first = edge()
    while time.perf_counter() - begun < seconds:
        feed()
    ended, energy_then, last = edge()
    torch.cuda.synchronize()
    per_call = events[first - 1].elapsed_time(events[last - 1]) * 1e-3 / ((last - first) * batch)
    watts = (energy_then - energy) / (ended - begun) if gpu else None
    return {"time": per_call, "energy": watts * per_call if gpu else None, "power": watts}


def this_gpu():
    try:
        return Board()
    except OSError:
        return None


def dgemm_figures():
    """Time (s) and energy (J) of cuBLAS's double-precision product of 4096 x 4096; None where there is no PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    a, b = (torch.rand(4096, 4096, device="cuda", dtype=torch.float64) for _ in range(2))
    return sustained(torch, this_gpu(), lambda: torch.mm(a, b.t()), 2.0, 0.7)


def cublas_transposition(torch, x, y):
    """y = the transpose of x by cuBLAS's geam."""
    library, handle = ctypes.CDLL("libcublas.so." + torch.version.cuda.split(".")[0]), ctypes.c_void_p(torch.cuda.current_blas_handle())
    one, none, (rows, columns) = ctypes.c_float(1), ctypes.c_float(0), x.shape
    source, out = ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr())

    def call():
        if library.cublasSgeam(handle, 1, 0, rows, columns, ctypes.byref(one), source, columns, ctypes.byref(none), out, rows, out, rows):
            raise RuntimeError("cublasSgeam failed")
        return y

    return call


def alternatives(torch, kind, constants, buffers):
    """What else does the work of an example on the same buffers (flat, in the order of the example's arguments): calls by name, which
    return their result."""
    functional, size = torch.nn.functional, lambda name: int(constants[name])
    compiled = lambda function: torch.compile(function, dynamic=False)
    if kind == "hgemm":
        type = (torch.float16, torch.bfloat16, torch.float8_e4m3fn)[constants.get("TYPE", 0)]
        a, b = buffers[0].view(type).view(size("SIZE_M"), -1), buffers[1].view(type).view(size("SIZE_N"), -1).t()
        if type == torch.float8_e4m3fn:
            one = torch.ones((), device="cuda")
            return {"cuBLAS": lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.float16)}
        c = torch.empty(size("SIZE_M"), size("SIZE_N"), device="cuda", dtype=type)
        return {"cuBLAS": lambda: torch.mm(a, b, out=c)}
    if kind in ("sgemm", "dgemm"):  # C = A^T B and C = A B, column after column
        a, b = buffers[0].view(size("SIZE_K"), -1), buffers[1].view(size("SIZE_K"), -1).t() if kind == "sgemm" else buffers[1].view(size("SIZE_N"), -1)
        c = torch.empty(size("SIZE_N"), size("SIZE_M"), device="cuda", dtype=a.dtype)
        return {"cuBLAS": lambda: torch.mm(b, a, out=c)}
    if kind == "gemv":
        a, y = buffers[0].view(size("ROWS"), -1), torch.empty(size("ROWS"), device="cuda")
        fast = compiled(lambda a, x: a @ x)
        return {"cuBLAS": lambda: torch.mv(a, buffers[1], out=y), "torch.compile": lambda: fast(a, buffers[1])}
    if kind == "transpose":
        x, y = buffers[0].view(size("ROWS"), -1), torch.empty(size("COLUMNS"), size("ROWS"), device="cuda")
        fast = compiled(lambda x: x.t().contiguous())
        return {"cuBLAS": cublas_transposition(torch, x, y), "PyTorch": lambda: y.copy_(x.t()), "torch.compile": lambda: fast(x)}
    if kind == "attention":
        from torch.nn.attention import SDPBackend, sdpa_kernel

        q, k, v = (each.view(1, size("HEADS"), size("LENGTH"), size("DEPTH")) for each in buffers[:3])

        def by(backend):
            def call():
                with sdpa_kernel(backend):
                    return functional.scaled_dot_product_attention(q, k, v, is_causal=bool(constants["CAUSAL"]))

            return call

        return {"cuDNN": by(SDPBackend.CUDNN_ATTENTION), "FlashAttention-2": by(SDPBackend.FLASH_ATTENTION)}
    if kind == "sum":
        x, fast = buffers[0], compiled(lambda x: x.sum())
        return {"PyTorch": lambda: x.sum(), "torch.compile": lambda: fast(x)}
    if kind == "scan":
        x, fast = buffers[0], compiled(lambda x: torch.cumsum(x, 0))
        y = torch.empty_like(x)
        return {"PyTorch (CUB)": lambda: torch.cumsum(x, 0, out=y), "torch.compile": lambda: fast(x)}
    if kind == "hotspot":
        power, now = (each.view(size("HEIGHT"), size("WIDTH")) for each in buffers[:2])
        rx, ry, rz, ambient, step = (float(constants[name]) for name in ("RX", "RY", "RZ", "AMBIENT", "STEP_OVER_CAP"))

        def next_step(power, now):
            wide = functional.pad(now, (1, 1, 1, 1), value=ambient)
            rows, columns = wide[:-2, 1:-1] + wide[2:, 1:-1] - 2 * now, wide[1:-1, :-2] + wide[1:-1, 2:] - 2 * now
            return now + step * (power + rows / ry + columns / rx + (ambient - now) / rz)

        fast = compiled(next_step)
        return {"PyTorch": lambda: next_step(power, now), "torch.compile": lambda: fast(power, now)}
    rows, columns = size("ROWS"), size("COLUMNS")
    x, y = buffers[0].view(rows, columns), torch.empty(rows, columns, device="cuda", dtype=torch.float16)
    from triton_rows import layer_norm, softmax

    if kind == "softmax":
        fast = compiled(lambda x: torch.softmax(x, 1))

        def by_triton(warps):
            softmax[(rows,)](x, y, columns, BLOCK=columns, num_warps=warps)
            return y

        return {"PyTorch": lambda: torch.softmax(x, 1), "torch.compile": lambda: fast(x), "Triton, 8 warps": lambda: by_triton(8),
                "Triton, 16 warps": lambda: by_triton(16)}
    scale, shift = buffers[1], buffers[2]
    fast = compiled(lambda x, scale, shift: functional.layer_norm(x, (columns,), scale, shift))

    def norm_by_triton(warps):
        layer_norm[(rows,)](x, scale, shift, y, columns, BLOCK=columns, num_warps=warps)
        return y

    return {"PyTorch": lambda: functional.layer_norm(x, (columns,), scale, shift), "torch.compile": lambda: fast(x, scale, shift),
            "Triton, 8 warps": lambda: norm_by_triton(8), "Triton, 16 warps": lambda: norm_by_triton(16)}
