// Single-precision matrix product C = A^T B, tiled, for OpenCL and for CUDA (gemm.toml names this file for both).
// A is SIZE_K x SIZE_M, B is SIZE_K x SIZE_N, C is SIZE_N x SIZE_M, each row after row: so rows of A, B and C all run
// along the direction that neighbouring threads share.
//
// A work group computes a tile of MWG x NWG, going through K in steps of KWG. What can be tuned:
//   MWG, NWG, KWG    tile of a work group
//   MDIMC, NDIMC     threads of a work group; each computes MWI x NWI = MWG/MDIMC x NWG/NDIMC elements in registers
//   MDIMA, NDIMB     the same threads as MDIMA x KDIMA while they load A, as KDIMB x NDIMB while they load B
//   KWI              steps of the innermost loop that are unrolled
//   VWM, VWN         vector widths along M (A and C) and along N (B)
//   STRM, STRN       1: a thread's vectors lie MDIMC (NDIMC) vectors apart, 0: side by side
//   SA, SB           1: tiles of A (B) go through local memory, 0: read from global memory where they are needed
// The tiles in local memory are doubled: while one is used, the next is on its way through registers, so that one
// barrier per step is enough and the latency of global memory hides behind the arithmetic. With the constant BUFFERS = 1 there
// is one of each (half the local memory, two barriers), and with ALPHA_BETA = 1 it is C = alpha A^T B + beta C.

#ifndef BUFFERS
#define BUFFERS 2
#endif
#ifndef ALPHA_BETA
#define ALPHA_BETA 0
#endif

#define MWI (MWG / MDIMC)
#define NWI (NWG / NDIMC)
#define KDIMA ((MDIMC * NDIMC) / MDIMA)
#define KDIMB ((MDIMC * NDIMC) / NDIMB)
// vectors per thread: in the register tile, and while loading A and B
#define MVI (MWI / VWM)
#define NVI (NWI / VWN)
#define MVA (MWG / (MDIMA * VWM))
#define KWA (KWG / KDIMA)
#define NVB (NWG / (NDIMB * VWN))
#define KWB (KWG / KDIMB)

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#ifdef __OPENCL_VERSION__
#define KERNEL kernel __attribute__((reqd_work_group_size(MDIMC, NDIMC, 1))) void
#define GLOBAL global
#define LOCAL local
#define RESTRICT restrict
#define FUNCTION inline
#define THREAD_M get_local_id(0)
#define THREAD_N get_local_id(1)
#define GROUP_M get_group_id(0)
#define GROUP_N get_group_id(1)
#define SYNCHRONISE() barrier(CLK_LOCAL_MEM_FENCE)
#define UNROLL _Pragma("unroll")
#define MULTIPLY_ADD(sum, x, y) (sum) += (x) * (y)
#define ZERO_VECTOR (VectorM)(0.0f)
typedef float float1;
#else
#define KERNEL extern "C" __global__ void __launch_bounds__(MDIMC* NDIMC)
#define GLOBAL
#define LOCAL __shared__
#define RESTRICT __restrict__
#define FUNCTION __device__ __forceinline__
#define THREAD_M threadIdx.x
#define THREAD_N threadIdx.y
#define GROUP_M blockIdx.x
#define GROUP_N blockIdx.y
#define SYNCHRONISE() __syncthreads()
#define UNROLL _Pragma("unroll")
// eight floats are two loads of the widest kind that there is
struct __align__(16) float8 {
  float4 low, high;
};
FUNCTION void multiply_add(float& sum, float x, float y) { sum += x * y; }
FUNCTION void multiply_add(float1& sum, float1 x, float y) { sum.x += x.x * y; }
FUNCTION void multiply_add(float2& sum, float2 x, float y) { sum.x += x.x * y, sum.y += x.y * y; }
FUNCTION void multiply_add(float4& sum, float4 x, float y) {
  sum.x += x.x * y, sum.y += x.y * y, sum.z += x.z * y, sum.w += x.w * y;
}
FUNCTION void multiply_add(float8& sum, float8 x, float y) {
  multiply_add(sum.low, x.low, y), multiply_add(sum.high, x.high, y);
}
#define MULTIPLY_ADD(sum, x, y) multiply_add(sum, x, y)
#define ZERO_VECTOR VectorM()
#endif

typedef JOIN(float, VWM) VectorM;
typedef JOIN(float, VWN) VectorN;
typedef union {
  VectorN vector;
  float element[VWN];
} ElementsN;

// Where a thread's i-th vector lies in its tile's row, counted in vectors.
#if STRM == 1
#define COLUMN_A(i) (load_m + (i) * MDIMA)
#define COLUMN_M(i) (thread_m + (i) * MDIMC)
#else
#define COLUMN_A(i) (load_m * MVA + (i))
#define COLUMN_M(i) (thread_m * MVI + (i))
#endif
#if STRN == 1
#define COLUMN_B(i) (load_n + (i) * NDIMB)
#define COLUMN_N(i) (thread_n + (i) * NDIMC)
#else
#define COLUMN_B(i) (load_n * NVB + (i))
#define COLUMN_N(i) (thread_n * NVI + (i))
#endif

KERNEL gemm(GLOBAL const VectorM* RESTRICT a, GLOBAL const VectorN* RESTRICT b, GLOBAL VectorM* RESTRICT c
#if ALPHA_BETA == 1
            , const float alpha, const float beta
#endif
) {
  const int row_a = SIZE_M / VWM, row_b = SIZE_N / VWN;  // in vectors
  const int thread_m = THREAD_M, thread_n = THREAD_N;
  const int tile_m = GROUP_M * (MWG / VWM), tile_n = GROUP_N * (NWG / VWN);
#if SA == 1 || SB == 1
  const int thread = thread_n * MDIMC + thread_m;
#endif

#if SA == 1
  LOCAL VectorM local_a[BUFFERS * KWG * (MWG / VWM)];
  const int load_m = thread % MDIMA, load_ka = thread / MDIMA;
  VectorM next_a[KWA * MVA];
#define FETCH_A(k0)                                                            \
  UNROLL for (int k = 0; k < KWA; ++k) UNROLL for (int m = 0; m < MVA; ++m)    \
      next_a[k * MVA + m] = a[((k0) + load_ka + k * KDIMA) * row_a + tile_m + COLUMN_A(m)]
#define STORE_A(stage)                                                          \
  UNROLL for (int k = 0; k < KWA; ++k) UNROLL for (int m = 0; m < MVA; ++m)    \
      local_a[((stage) * KWG + load_ka + k * KDIMA) * (MWG / VWM) + COLUMN_A(m)] = next_a[k * MVA + m]
#define READ_A(k, m) local_a[(stage * KWG + (k)) * (MWG / VWM) + COLUMN_M(m)]
#else
#define FETCH_A(k0)
#define STORE_A(stage)
#define READ_A(k, m) a[(k0 + (k)) * row_a + tile_m + COLUMN_M(m)]
#endif

#if SB == 1
  LOCAL VectorN local_b[BUFFERS * KWG * (NWG / VWN)];
  const int load_n = thread % NDIMB, load_kb = thread / NDIMB;
  VectorN next_b[KWB * NVB];
#define FETCH_B(k0)                                                            \
  UNROLL for (int k = 0; k < KWB; ++k) UNROLL for (int n = 0; n < NVB; ++n)    \
      next_b[k * NVB + n] = b[((k0) + load_kb + k * KDIMB) * row_b + tile_n + COLUMN_B(n)]
#define STORE_B(stage)                                                          \
  UNROLL for (int k = 0; k < KWB; ++k) UNROLL for (int n = 0; n < NVB; ++n)    \
      local_b[((stage) * KWG + load_kb + k * KDIMB) * (NWG / VWN) + COLUMN_B(n)] = next_b[k * NVB + n]
#define READ_B(k, n) local_b[(stage * KWG + (k)) * (NWG / VWN) + COLUMN_N(n)]
#else
#define FETCH_B(k0)
#define STORE_B(stage)
#define READ_B(k, n) b[(k0 + (k)) * row_b + tile_n + COLUMN_N(n)]
#endif

  VectorM sum[NWI][MVI];
  UNROLL for (int n = 0; n < NWI; ++n) UNROLL for (int m = 0; m < MVI; ++m) sum[n][m] = ZERO_VECTOR;

#if SA == 1 || SB == 1
  FETCH_A(0);
  FETCH_B(0);
  STORE_A(0);
  STORE_B(0);
  SYNCHRONISE();
  int stage = 0;
#endif
  for (int k0 = 0; k0 < SIZE_K; k0 += KWG) {
#if SA == 1 || SB == 1
    const int more = k0 + KWG < SIZE_K;
    if (more) {
      FETCH_A(k0 + KWG);
      FETCH_B(k0 + KWG);
    }
#endif
    for (int k1 = 0; k1 < KWG; k1 += KWI) {
      UNROLL for (int k = 0; k < KWI; ++k) {
        VectorM x[MVI];
        ElementsN y[NVI];
        UNROLL for (int m = 0; m < MVI; ++m) x[m] = READ_A(k1 + k, m);
        UNROLL for (int n = 0; n < NVI; ++n) y[n].vector = READ_B(k1 + k, n);
        UNROLL for (int n = 0; n < NWI; ++n) UNROLL for (int m = 0; m < MVI; ++m)
            MULTIPLY_ADD(sum[n][m], x[m], y[n / VWN].element[n % VWN]);
      }
    }
#if SA == 1 || SB == 1
#if BUFFERS == 2
    stage = 1 - stage;
#else
    SYNCHRONISE();
#endif
    if (more) {
      STORE_A(stage);
      STORE_B(stage);
    }
    SYNCHRONISE();
#endif
  }

  UNROLL for (int n = 0; n < NWI; ++n) {
    const int row = (tile_n + COLUMN_N(n / VWN)) * VWN + n % VWN;
    UNROLL for (int m = 0; m < MVI; ++m) {
      VectorM result = sum[n][m];
#if ALPHA_BETA == 1
      result = ZERO_VECTOR;
      MULTIPLY_ADD(result, sum[n][m], alpha);
      MULTIPLY_ADD(result, c[row * row_a + tile_m + COLUMN_M(m)], beta);
#endif
      c[row * row_a + tile_m + COLUMN_M(m)] = result;
    }
  }
}
