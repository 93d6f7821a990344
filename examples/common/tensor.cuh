// Tensor-core instructions and asynchronous copies of NVIDIA GPUs (PTX ISA 8, "Warp Level Matrix Instructions"), for CUDA
// sources without any header of the toolkit. A register of 32 bits holds two halves, the first in its low bits.
#ifndef TENSOR_CUH
#define TENSOR_CUH

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// The tiles of a matrix product in the order in which they are computed: group_m tiles along M come before the next along N, so that the
// L2 cache sees them together. Where `back` is set every other group goes back along N, so that it begins with the tiles of B that
// the one before ended with.
struct Tile {
  int row, column;
};
template <int tiles_m, int tiles_n, int group_m, bool back = false>
__device__ __forceinline__ Tile tile_at(int number) {
  const int group = number / (group_m * tiles_n), within = number % (group_m * tiles_n);
  const int height = min(group_m, tiles_m - group * group_m), column = within / height;
  return {group * group_m + within % height, back && group % 2 == 1 ? tiles_n - 1 - column : column};
}
template <int tiles_m, int tiles_n, int group_m>
__device__ __forceinline__ Tile tile_of_block() {
  return tile_at<tiles_m, tiles_n, group_m>(blockIdx.x);
}

// 16 bytes from global to shared memory, behind the thread's back (compute capability 8.0 and up).
__device__ __forceinline__ void copy_async(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Four 8 x 8 matrices of halves; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void load_matrices(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(unsigned (&r)[4], unsigned address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

// c += a b with 16 x 8 results, 16 deep, halves multiplied and summed in single or half precision.
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void multiply(unsigned (&c)[2], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
               : "+r"(c[0]), "+r"(c[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// The same with bytes with a sign, 32 deep, summed in whole numbers: every operand has as many bytes as with halves.
__device__ __forceinline__ void multiply(int (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// c += a b in double precision (compute capability 9.0): 16 x 8 results, 8 or 16 deep. a[j][i] is column 4 j + lane % 4 of
// row 8 i + lane / 4, and b's number 2 j + i is row 8 j + 4 i + lane % 4 of column lane / 4.
__device__ __forceinline__ void multiply(double (&c)[4], const double (&a)[2][2], const double (&b)[1][2]) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
               : "d"(a[0][0]), "d"(a[0][1]), "d"(a[1][0]), "d"(a[1][1]), "d"(b[0][0]), "d"(b[0][1]));
}
__device__ __forceinline__ void multiply(double (&c)[4], const double (&a)[4][2], const double (&b)[2][2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, "
      "{%0,%1,%2,%3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0][0]), "d"(a[0][1]), "d"(a[1][0]), "d"(a[1][1]), "d"(a[2][0]), "d"(a[2][1]), "d"(a[3][0]), "d"(a[3][1]),
        "d"(b[0][0]), "d"(b[0][1]), "d"(b[1][0]), "d"(b[1][1]));
}

__device__ __forceinline__ unsigned pack_halves(float low, float high) {
  unsigned packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
__device__ __forceinline__ float2 unpack_halves(unsigned packed) {
  float2 values;
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
      : "=f"(values.x), "=f"(values.y)
      : "r"(packed));
  return values;
}

#endif
