"""What the vendor's library does on the board, through PyTorch: time by events, energy by the board's counter over two seconds."""

import ctypes
import statistics
import time


def board_energy():
    """A function that reads the board's energy counter in joules, or None."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        board, millijoules = ctypes.c_void_p(), ctypes.c_ulonglong()
        if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(board)):
            return None
    except OSError:
        return None

    def read():
        nvml.nvmlDeviceGetTotalEnergyConsumption(board, ctypes.byref(millijoules))
        return millijoules.value / 1e3

    return read


def measured(torch, call):
    """Time (s) and energy (J, None where no counter is) of one call."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(20):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        call()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e-3)
    each, read = statistics.median(times), board_energy()

    def stream(seconds):
        begun, energy, calls = time.monotonic(), read(), 0
        while time.monotonic() - begun < seconds:
            for _ in range(max(1, int(0.05 / each))):
                call()
                calls += 1
            torch.cuda.synchronize()
        return (time.monotonic() - begun) / calls, (read() - energy) / calls

    if read is None:
        return {"time": each, "energy": None}
    stream(0.7)
    steady, energy = stream(2.0)
    return {"time": min(each, steady), "energy": energy}


def calls(torch):
    """By name: a call, and what it does in the unit of our metric."""
    torch.manual_seed(1)
    matrix = lambda scale, type: ((torch.rand(4096, 4096, device="cuda") - 0.5) * scale).to(type)
    a, b = matrix(2, torch.float32), matrix(2, torch.float32)
    a16, b16 = matrix(1, torch.float16), matrix(1, torch.float16)
    q, k, v = (torch.rand(1, 64, 2048, 128, device="cuda").half() for _ in range(3))
    x = torch.rand(2**28, device="cuda")
    y = torch.empty_like(x)
    rows = ((torch.rand(8192, 8192, device="cuda") - 0.5) * 8).half()
    scale, shift = rows[0].clone(), rows[1].clone()
    work, moved = 2 * 4096**3, {"bandwidth_of": 4 * rows.numel() / 1e9}
    return {
        "sgemm": (lambda: torch.mm(a, b.t()), {"gflops_of": work / 1e9}),
        "hgemm": (lambda: torch.mm(a16, b16.t()), {"tflops_of": work / 1e12}),
        "dgemm": (lambda a=a.double(), b=b.double(): torch.mm(a, b), {"gflops_of": work / 1e9}),
        "attention": (lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v), {"tflops_of": 4 * 64 * 2048**2 * 128 / 1e12}),
        "copy": (lambda: y.copy_(x), {"bandwidth_of": 8 * x.numel() / 1e9}),
        "sum": (lambda: x.sum(), {"bandwidth_of": 4 * x.numel() / 1e9}),
        "softmax": (lambda: torch.softmax(rows, 1), moved),
        "layer_norm": (lambda: torch.nn.functional.layer_norm(rows, (8192,), scale, shift), moved),
    }


def vendor_figures(names=None):
    """Time (s) and energy (J) of one call by name, and what it does in our metric's unit; empty where there is no PyTorch."""
    try:
        import torch
    except ImportError:
        return {}
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return {name: measured(torch, call) | unit for name, (call, unit) in calls(torch).items() if names is None or name in names}
