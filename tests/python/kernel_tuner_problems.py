"""Problems as a Kernel Tuner user writes them. Each function takes the module to tune with: Kernel Tuner's own or ours."""

from collections import OrderedDict

import numpy as np

OPENCL = {"lang": "OpenCL", "platform": 0, "device": 0, "quiet": True, "iterations": 3}


def vector_add(kt):
    source = """
    __kernel void vector_add(__global float *c, __global const float *a, __global const float *b, int n) {
        int i = get_group_id(0) * block_size_x + get_local_id(0);
        if (i < n) c[i] = a[i] + b[i];
    }"""
    n = np.int32(100_000)
    rng = np.random.default_rng(1)
    a, b = rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32)
    tune_params = OrderedDict(block_size_x=[32, 64, 128, 256, 512])
    return kt.tune_kernel("vector_add", source, int(n), [np.zeros_like(a), a, b, n], tune_params,
                          answer=[a + b, None, None, None], **OPENCL)


def matmul(kt):
    source = """
    #define N 64
    __kernel void matmul(__global float *c, __global const float *a, __global const float *b) {
        __local float sa[block_size_y * tile_size_y][block_size_x];
        __local float sb[block_size_x][block_size_x * tile_size_x];
        int tx = get_local_id(0), ty = get_local_id(1);
        int x = get_group_id(0) * block_size_x * tile_size_x + tx, y = get_group_id(1) * block_size_y * tile_size_y + ty;
        float sum[tile_size_y][tile_size_x];
        for (int i = 0; i < tile_size_y; i++) for (int j = 0; j < tile_size_x; j++) sum[i][j] = 0.0f;
        for (int k = 0; k < N; k += block_size_x) {
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int i = 0; i < tile_size_y; i++) sa[ty + i * block_size_y][tx] = a[(y + i * block_size_y) * N + k + tx];
            for (int r = ty; r < block_size_x; r += block_size_y)
                for (int j = 0; j < tile_size_x; j++) sb[r][tx + j * block_size_x] = b[(k + r) * N + x + j * block_size_x];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int kb = 0; kb < block_size_x; kb++)
                for (int i = 0; i < tile_size_y; i++)
                    for (int j = 0; j < tile_size_x; j++)
                        sum[i][j] += sa[ty + i * block_size_y][kb] * sb[kb][tx + j * block_size_x];
        }
        for (int i = 0; i < tile_size_y; i++)
            for (int j = 0; j < tile_size_x; j++) c[(y + i * block_size_y) * N + x + j * block_size_x] = sum[i][j];
    }"""
    rng = np.random.default_rng(2)
    a, b = rng.random((64, 64), dtype=np.float32), rng.random((64, 64), dtype=np.float32)
    tune_params = OrderedDict(block_size_x=[8, 16], block_size_y=[4, 8], tile_size_x=[1, 2], tile_size_y=[1])
    return kt.tune_kernel("matmul", source, (64, 64), [np.zeros_like(a), a, b], tune_params,
                          grid_div_x=["block_size_x", "tile_size_x"], grid_div_y=["block_size_y", "tile_size_y"],
                          restrictions=["block_size_x >= block_size_y"], answer=[a @ b, None, None], atol=1e-3, **OPENCL)


def convolution(kt):
    source = """
    #define FW 5
    #define FH 5
    __kernel void convolution(__global float *out, __global const float *in, __global const float *filter, int w, int h) {
        int x = get_group_id(0) * block_size_x * tile_size_x + get_local_id(0);
        int y = get_group_id(1) * block_size_y + get_local_id(1);
        for (int t = 0; t < tile_size_x; t++) {
            int xx = x + t * block_size_x;
            if (xx < w && y < h) {
                float sum = 0.0f;
                for (int i = 0; i < FH; i++)
                    for (int j = 0; j < FW; j++) sum += in[(y + i) * (w + FW - 1) + xx + j] * filter[i * FW + j];
                out[y * w + xx] = sum;
            }
        }
    }"""
    w, h = 128, 96
    rng = np.random.default_rng(3)
    image = rng.random((h + 4, w + 4), dtype=np.float32)
    filter_ = rng.random((5, 5), dtype=np.float32)
    expected = sum(image[i:i + h, j:j + w] * filter_[i, j] for i in range(5) for j in range(5)).astype(np.float32)
    tune_params = OrderedDict(block_size_x=[16, 32, 48, 64], block_size_y=[1, 2, 4], tile_size_x=[1, 2])
    return kt.tune_kernel("convolution", source, (w, h), [np.zeros((h, w), np.float32), image, filter_, np.int32(w), np.int32(h)],
                          tune_params, grid_div_x=["block_size_x", "tile_size_x"], grid_div_y=["block_size_y"],
                          answer=[expected, None, None, None, None], atol=1e-3, **OPENCL)


def reduction(kt):
    source = """
    __kernel void reduction(__global float *out, __global const float *in, int n) {
        __local float s[block_size_x];
        int t = get_local_id(0);
        float sum = 0.0f;
        for (int i = get_group_id(0) * block_size_x + t; i < n; i += num_blocks * block_size_x) sum += in[i];
        s[t] = sum;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int w = block_size_x / 2; w > 0; w >>= 1) {
            if (t < w) s[t] += s[t + w];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (t == 0) out[get_group_id(0)] = s[0];
    }"""
    n = 50_000
    values = np.random.default_rng(4).random(n, dtype=np.float32)
    tune_params = OrderedDict(block_size_x=[32, 64, 128], num_blocks=[4, 8, 16])

    def verify(answer, result, atol):
        return np.isclose(result[0].sum(), values.sum(dtype=np.float64), rtol=1e-4)

    return kt.tune_kernel("reduction", source, "num_blocks", [np.zeros(16, np.float32), values, np.int32(n)], tune_params,
                          grid_div_x=[], answer=[np.zeros(16, np.float32), None, None], verify=verify, **OPENCL)


def stencil(kt):
    source = """
    __kernel void stencil(__global float *y, __global const float *x) {
        int i = get_group_id(0) * block_size_x + get_local_id(0), j = get_group_id(1) * block_size_y + get_local_id(1);
        if (i > 0 && j > 0 && i < SIZE - 1 && j < SIZE - 1)
            y[j * SIZE + i] = 0.2f * (x[j * SIZE + i] + x[j * SIZE + i - 1] + x[j * SIZE + i + 1] + x[(j - 1) * SIZE + i] + x[(j + 1) * SIZE + i]);
    }"""
    size = 128
    x = np.random.default_rng(5).random((size, size), dtype=np.float32)
    y = np.zeros_like(x)
    y[1:-1, 1:-1] = 0.2 * (x[1:-1, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] + x[:-2, 1:-1] + x[2:, 1:-1])
    tune_params = OrderedDict(block_size_x=[8, 16, 32, 64], block_size_y=[1, 2, 4, 8, 16])
    return kt.tune_kernel("stencil", source, (size, size), [np.zeros_like(x), x], tune_params,
                          compiler_options=[f"-DSIZE={size}"], answer=[y, None], atol=1e-4, **OPENCL)


def point_in_polygon(kt):
    source = """
    #define V 40
    __kernel void pnpoly(__global int *inside, __global const float2 *points, __global const float2 *vertices, int n) {
        int base = get_group_id(0) * block_size_x * tile_size + get_local_id(0);
        for (int t = 0; t < tile_size; t++) {
            int i = base + t * block_size_x;
            if (i >= n) return;
            float2 p = points[i];
            int c = 0;
            for (int j = 0, k = V - 1; j < V; k = j++) {
                float2 a = vertices[j], b = vertices[k];
                if (between_method == 0 ? ((a.y > p.y) != (b.y > p.y)) : ((a.y <= p.y && p.y < b.y) || (b.y <= p.y && p.y < a.y)))
                    if (p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x) c = !c;
            }
            inside[i] = c;
        }
    }"""
    n = 20_000
    rng = np.random.default_rng(6)
    points = rng.uniform(-1.2, 1.2, (n, 2)).astype(np.float32)
    angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    vertices = np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)
    expected = np.zeros(n, np.int32)
    k = 39
    for j in range(40):
        a, b = vertices[j], vertices[k]
        crosses = (a[1] > points[:, 1]) != (b[1] > points[:, 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            x = (b[0] - a[0]) * (points[:, 1] - a[1]) / (b[1] - a[1]) + a[0]
        expected ^= (crosses & (points[:, 0] < x)).astype(np.int32)
        k = j
    tune_params = OrderedDict(block_size_x=[32, 64, 128], tile_size=[1, 2, 4], between_method=[0, 1])

    def verify(answer, result, atol):  # a point on an edge may fall either way
        return np.count_nonzero(answer[0] != result[0]) <= 3

    return kt.tune_kernel("pnpoly", source, n, [np.zeros(n, np.int32), points, vertices, np.int32(n)], tune_params,
                          grid_div_x=["block_size_x", "tile_size"], answer=[expected, None, None, None], verify=verify, **OPENCL)


def transpose_with_expressions(kt):
    source = """
    __kernel void transpose(__global float *out, __global const float *in) {
        __local float tile[tile_dim][tile_dim + padding];
        int x = get_group_id(0) * tile_dim + get_local_id(0), y = get_group_id(1) * tile_dim + get_local_id(1);
        for (int j = 0; j < tile_dim; j += block_size_y) tile[get_local_id(1) + j][get_local_id(0)] = in[(y + j) * 128 + x];
        barrier(CLK_LOCAL_MEM_FENCE);
        x = get_group_id(1) * tile_dim + get_local_id(0); y = get_group_id(0) * tile_dim + get_local_id(1);
        for (int j = 0; j < tile_dim; j += block_size_y) out[(y + j) * 128 + x] = tile[get_local_id(0)][get_local_id(1) + j];
    }"""
    a = np.random.default_rng(7).random((128, 128), dtype=np.float32)
    tune_params = OrderedDict(block_size_x=[8, 16], block_size_y=[2, 4, 8, 16], tile_dim=[8, 16], padding=[0, 1])
    return kt.tune_kernel("transpose", source, (128, 128), [np.zeros_like(a), a], tune_params,
                          grid_div_x=["tile_dim"], grid_div_y=["tile_dim"],
                          restrictions=["block_size_x == tile_dim", "tile_dim % block_size_y == 0", "padding == 0 or tile_dim in (16,)",
                                        "32 <= block_size_x * block_size_y <= 256"],
                          answer=[a.T.copy(), None], **OPENCL)


def saxpy_with_lambdas(kt):
    source = """
    __kernel void saxpy(__global float *y, __global const float *x, float a, int n) {
        int base = get_group_id(0) * block_size_x * tile + get_local_id(0) * (contiguous ? tile : 1);
        for (int t = 0; t < tile; t++) {
            int i = base + t * (contiguous ? 1 : block_size_x);
            if (i < n) y[i] = a * x[i] + 1.0f;
        }
    }"""
    n = 30_000
    x = np.random.default_rng(8).random(n, dtype=np.float32)
    tune_params = OrderedDict(block_size_x=[32, 64, 128, 256], tile=[1, 2, 4, 8], contiguous=[0, 1])
    return kt.tune_kernel("saxpy", source, n, [np.zeros_like(x), x, np.float32(2.5), np.int32(n)], tune_params,
                          grid_div_x=["block_size_x", "tile"],
                          restrictions=lambda p: p["block_size_x"] * p["tile"] <= 512 and (p["tile"] > 1 or p["contiguous"] == 0),
                          answer=[2.5 * x + 1, None, None, None], atol=1e-5, **OPENCL)


def rgb2gray_with_metrics(kt):
    source = """
    __kernel void rgb2gray(__global uchar *gray, __global const uchar *rgb, int n) {
        int i = get_group_id(0) * block_size_x + get_local_id(0);
        if (i < n) gray[i] = (uchar)(0.299f * rgb[3 * i] + 0.587f * rgb[3 * i + 1] + 0.114f * rgb[3 * i + 2]);
    }"""
    n = 60_000
    rgb = np.random.default_rng(9).integers(0, 256, 3 * n, dtype=np.uint8)
    metrics = OrderedDict()
    metrics["GB/s"] = lambda p: 4 * n / (p["time"] / 1e3) / 1e9
    metrics["ns_per_pixel"] = lambda p: p["time"] * 1e6 / n
    return kt.tune_kernel("rgb2gray", source, n, [np.zeros(n, np.uint8), rgb, np.int32(n)], OrderedDict(block_size_x=[32, 64, 128, 256]),
                          metrics=metrics, objective="GB/s", objective_higher_is_better=True, **OPENCL)


def dot_with_observer(kt):
    source = """
    __kernel void scale(__global float *y, __global const float *x) {
        int i = get_group_id(0) * block_size_x + get_local_id(0);
        y[i] = 3.0f * x[i];
    }"""
    base = kt.BenchmarkObserver if hasattr(kt, "BenchmarkObserver") else __import__(
        "kernel_tuner.observers", fromlist=["BenchmarkObserver"]).BenchmarkObserver

    class Counter(base):
        def __init__(self):
            self.starts = self.finishes = 0
            self.params = {}

        def register_configuration(self, params):
            self.params = dict(params)

        def before_start(self):
            self.starts += 1

        def after_finish(self):
            self.finishes += 1

        def get_results(self):
            result = {"starts": self.starts, "finishes": self.finishes, "seen_block": self.params.get("block_size_x", -1)}
            self.starts = self.finishes = 0
            return result

    x = np.random.default_rng(10).random(16_384, dtype=np.float32)
    return kt.tune_kernel("scale", source, x.size, [np.zeros_like(x), x], OrderedDict(block_size_x=[32, 64, 128]),
                          observers=[Counter()], answer=[3 * x, None], atol=1e-5, **OPENCL)


def search_with_budget(kt):
    source = """
    __kernel void copy(__global float *y, __global const float *x, int n) {
        int base = (get_group_id(0) * block_size_x + get_local_id(0)) * work;
        for (int k = 0; k < work; k++) if (base + k < n) y[base + k] = x[base + k];
    }"""
    x = np.random.default_rng(11).random(40_000, dtype=np.float32)
    tune_params = OrderedDict(block_size_x=[16, 32, 64, 128, 256], work=[1, 2, 3, 4, 5, 6, 7, 8])
    return kt.tune_kernel("copy", source, x.size, [np.zeros_like(x), x, np.int32(x.size)], tune_params,
                          grid_div_x=["block_size_x", "work"], strategy="random_sample", strategy_options={"max_fevals": 12},
                          answer=[x, None, None], **OPENCL)


def partly_failing(kt):
    source = """
    __kernel void fill(__global float *y, int n) {
    #if method == 2
        this does not compile
    #endif
        int i = get_group_id(0) * block_size_x + get_local_id(0);
        if (i < n) y[i] = 1.0f;
    }"""
    tune_params = OrderedDict(block_size_x=[32, 64], method=[1, 3])
    return kt.tune_kernel("fill", source, 10_000, [np.zeros(10_000, np.float32), np.int32(10_000)], tune_params,
                          answer=[np.ones(10_000, np.float32), None], **OPENCL)


PROBLEMS = [vector_add, matmul, convolution, reduction, stencil, point_in_polygon, transpose_with_expressions, saxpy_with_lambdas,
            rgb2gray_with_metrics, dot_with_observer, partly_failing]
