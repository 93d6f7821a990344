// What OpenCL C and CUDA C++ call by different names, so that one source serves both; CUDA C++ also compiles as HIP.
//   KERNEL(x, y, z) name(...)   a kernel for blocks of exactly that shape
//   KERNEL_AT_LEAST(x, y, z, n) the same, with registers for at least n blocks per multiprocessor (CUDA)
//   GLOBAL, LOCAL, CONSTANT     where a pointer points; LOCAL before an array: shared by the threads of a block
//   THREAD(d), GROUP(d)         indices within the block and of the block, d = 0, 1, 2
//   BARRIER()                   all threads of the block, their writes to LOCAL memory included
//   UNROLL, UNROLL_BY(n)        before a loop
//   READ_ONLY(p)                *p through the read-only cache, where there is one
//   FROM_ACROSS(v, d), FROM_ABOVE(v, d, w)   v of the thread whose number differs in bit d, or is higher by d, of 32 (w) neighbours
//   FROM_BELOW(v, d), FROM_LANE(v, l)        or is lower by d, or is l, of 32 neighbours (not OpenCL, as those before)
#ifndef PORTABLE_H
#define PORTABLE_H

#define PORTABLE_PRAGMA(x) _Pragma(#x)
#define UNROLL _Pragma("unroll")
#define UNROLL_BY(n) PORTABLE_PRAGMA(unroll n)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define CEIL_DIV(a, b) (((a) + (b)-1) / (b))

#ifdef __OPENCL_VERSION__
#define KERNEL(x, y, z) kernel __attribute__((reqd_work_group_size(x, y, z))) void
#define KERNEL_AT_LEAST(x, y, z, n) KERNEL(x, y, z)
#define FUNCTION inline
#define GLOBAL global
#define LOCAL local
#define CONSTANT constant
#define RESTRICT restrict
#define THREAD(d) ((int)get_local_id(d))
#define GROUP(d) ((int)get_group_id(d))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define READ_ONLY(p) (*(p))
#define FLOAT2(x, y) ((float2)(x, y))
#define FLOAT4(x, y, z, w) ((float4)(x, y, z, w))
#define ZERO(type) ((type)(0))
#define FUSED(a, b, c) fma(a, b, c)
#define FAST_SIN(x) native_sin(x)
#define FAST_COS(x) native_cos(x)
#define FAST_EXP(x) native_exp(x)
typedef float float1;
typedef double double1;
#else
#define KERNEL(x, y, z) extern "C" __global__ void __launch_bounds__((x) * (y) * (z))
#define KERNEL_AT_LEAST(x, y, z, n) extern "C" __global__ void __launch_bounds__((x) * (y) * (z), n)
#define FUNCTION __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
#define CONSTANT const
#define RESTRICT __restrict__
#define THREAD(d) ((int)((d) == 0 ? threadIdx.x : (d) == 1 ? threadIdx.y : threadIdx.z))
#define GROUP(d) ((int)((d) == 0 ? blockIdx.x : (d) == 1 ? blockIdx.y : blockIdx.z))
#define BARRIER() __syncthreads()
#define READ_ONLY(p) __ldg(p)
#define FLOAT2(x, y) make_float2(x, y)
#define FLOAT4(x, y, z, w) make_float4(x, y, z, w)
#define ZERO(type) (type{})
#define FUSED(a, b, c) __fmaf_rn(a, b, c)
#define FAST_SIN(x) __sinf(x)
#define FAST_COS(x) __cosf(x)
#define FAST_EXP(x) __expf(x)
#ifdef __HIP__
#define FROM_ACROSS(value, distance) __shfl_xor(value, distance, 32)
#define FROM_ABOVE(value, distance, width) __shfl_down(value, distance, width)
#define FROM_BELOW(value, distance) __shfl_up(value, distance, 32)
#define FROM_LANE(value, lane) __shfl(value, lane, 32)
#else
#define FROM_ACROSS(value, distance) __shfl_xor_sync(0xFFFFFFFFu, value, distance)
#define FROM_ABOVE(value, distance, width) __shfl_down_sync(0xFFFFFFFFu, value, distance, width)
#define FROM_BELOW(value, distance) __shfl_up_sync(0xFFFFFFFFu, value, distance)
#define FROM_LANE(value, lane) __shfl_sync(0xFFFFFFFFu, value, lane)
// sums of vectors, as OpenCL has them
FUNCTION float1 operator+(float1 a, float1 b) { return make_float1(a.x + b.x); }
FUNCTION float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
FUNCTION float2 operator*(float2 a, float b) { return make_float2(a.x * b, a.y * b); }
FUNCTION float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
FUNCTION float4 operator*(float4 a, float b) { return make_float4(a.x * b, a.y * b, a.z * b, a.w * b); }
#endif
#endif

// Complex numbers are float2: a b + sum and a conj(b) + sum.
FUNCTION float2 multiply_add_complex(float2 a, float2 b, float2 sum) {
  return FLOAT2(FUSED(a.x, b.x, FUSED(-a.y, b.y, sum.x)), FUSED(a.x, b.y, FUSED(a.y, b.x, sum.y)));
}
FUNCTION float2 multiply_add_conjugate(float2 a, float2 b, float2 sum) {
  return FLOAT2(FUSED(a.x, b.x, FUSED(a.y, b.y, sum.x)), FUSED(a.y, b.x, FUSED(-a.x, b.y, sum.y)));
}

#endif
