// Hopper's copy engine, barriers and clusters (PTX ISA 8, compute capability 9.0a), for CUDA sources without any header of the toolkit.
// Addresses are those of shared memory (shared_address in tensor.cuh).
#ifndef HOPPER_CUH
#define HOPPER_CUH

// ---- barriers: they count arrivals and the bytes of copies, and their phase alternates
__device__ __forceinline__ void make_barrier(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void show_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ __forceinline__ void wait_for_phase(unsigned barrier, int parity) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished; bra again;\n"
      "finished: }" ::"r"(barrier), "r"(parity) : "memory");
}
__device__ __forceinline__ void arrive_and_expect(unsigned barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// At the same barrier of a block of the cluster.
__device__ __forceinline__ void arrive_at(unsigned barrier, int block) {
  asm volatile("{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1;\n"
               "mbarrier.arrive.shared::cluster.b64 _, [remote]; }" ::"r"(barrier), "r"(block) : "memory");
}
// Among some warps of the block, by number (0 is __syncthreads).
__device__ __forceinline__ void meet(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
__device__ __forceinline__ void let_pass(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// ---- clusters
__device__ __forceinline__ int block_of_cluster() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ __forceinline__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// ---- registers move from warpgroups that copy to those that multiply
template <int count>
__device__ __forceinline__ void give_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count)); }
template <int count>
__device__ __forceinline__ void take_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count)); }

// ---- tensor maps: what the copy engine knows of a matrix
struct __align__(128) TensorMap {
  unsigned words[32];
};
// The stride of a tensor map is in units of 16 bytes for assemblers up to CUDA 12.6, else in bytes.
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ <= 1206
#define MAP_STRIDE_UNIT 16
#else
#define MAP_STRIDE_UNIT 1
#endif

// A warp describes a matrix, row after row, that is copied in boxes: of halves in boxes of box_rows x 64 in the 128-byte swizzle, or of
// single precision (floats) in boxes of box_rows x box_columns without swizzle. `scratch` are 128 bytes of shared memory. The maps are
// made by the kernel itself, so that its arguments are plain pointers.
template <bool floats = false>
__device__ __forceinline__ void make_tensor_map(TensorMap* map, unsigned scratch, const void* matrix, unsigned rows, unsigned columns,
                                                unsigned box_rows, unsigned box_columns = 64) {
  const int lane = threadIdx.x % 32;
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(scratch + 4 * lane), "r"(0) : "memory");
  __syncwarp();
  if (lane == 0) {
    asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(scratch), "l"(matrix) : "memory");
    asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;" ::"r"(scratch) : "memory");
    asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(scratch), "r"(box_columns) : "memory");
    asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(scratch), "r"(box_rows) : "memory");
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" ::"r"(scratch), "r"(columns) : "memory");
    asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(scratch), "r"(rows) : "memory");
    asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"r"(scratch),
                 "l"((floats ? 4ull : 2ull) * columns / MAP_STRIDE_UNIT) : "memory");
    asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, 1;" ::"r"(scratch) : "memory");
    asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, 1;" ::"r"(scratch) : "memory");
    asm volatile("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], %1;" ::"r"(scratch), "n"(floats ? 7 : 6) : "memory");
    asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" ::"r"(scratch) : "memory");
    asm volatile("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], %1;" ::"r"(scratch), "n"(floats ? 0 : 3) : "memory");
    asm volatile("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 0;" ::"r"(scratch) : "memory");
  }
  __syncwarp();
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(map),
               "r"(scratch) : "memory");
}
// A thread that copies with the map calls this first.
__device__ __forceinline__ void see_tensor_map(const TensorMap* map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

// ---- copies of a box; one thread starts them. A policy says what the L2 cache gives up first, or last.
__device__ __forceinline__ unsigned long long normal_policy() {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ unsigned long long first_policy() {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ unsigned long long last_policy() {
  unsigned long long policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ void load_box(unsigned to, const TensorMap* map, int row, int column, unsigned barrier,
                                         unsigned long long policy) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
               "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to), "l"(map), "r"(column), "r"(row), "r"(barrier), "l"(policy) : "memory");
}
// To the same place of every block of the cluster whose bit is set, each of whose barriers counts the bytes.
__device__ __forceinline__ void load_box_for(unsigned blocks, unsigned to, const TensorMap* map, int row, int column, unsigned barrier,
                                             unsigned long long policy) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
               "[%0], [%1, {%2, %3}], [%4], %5, %6;" ::"r"(to), "l"(map), "r"(column), "r"(row), "r"(barrier),
               "h"((unsigned short)blocks), "l"(policy) : "memory");
}
__device__ __forceinline__ void store_box(const TensorMap* map, int row, int column, unsigned from, unsigned long long policy) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint [%0, {%1, %2}], [%3], %4;" ::"l"(map), "r"(column),
               "r"(row), "r"(from), "l"(policy) : "memory");
}
__device__ __forceinline__ void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Until shared memory may be written again.
__device__ __forceinline__ void wait_for_stores() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }

// ---- what persistent matrix products share: the ring of buffers, and the part of a block in its cluster. After tensor.cuh.
// A buffer is full when its bytes have come, and empty when all have released it that read what this block copies.
template <int stages>
struct Ring {
  unsigned full, empty;
  int stage = 0, phase = 0;
  __device__ __forceinline__ explicit Ring(unsigned barriers) : full(barriers), empty(barriers + 8 * stages) {}
  __device__ __forceinline__ void make(int releases) {
    for (int s = 0; s < stages; ++s) {
      make_barrier(full + 8 * s, 1);
      make_barrier(empty + 8 * s, releases);
    }
    show_barriers();
  }
  __device__ __forceinline__ void next() {
    if (++stage == stages) stage = 0, phase ^= 1;
  }
  __device__ __forceinline__ void wait_until_full() { wait_for_phase(full + 8 * stage, phase); }
  __device__ __forceinline__ unsigned fill(int bytes) {  // the barrier for the copies
    wait_for_phase(empty + 8 * stage, phase ^ 1);
    arrive_and_expect(full + 8 * stage, bytes);
    return full + 8 * stage;
  }
};

// Blocks of a cluster along M share a tile of B, those along N a tile of A: each copies a part and sends it to the others.
template <int along_m, int along_n>
struct Cluster {
  int rank = block_of_cluster(), m = rank / along_n, n = rank % along_n;
  // Whether this block gets what that block copies.
  __device__ __forceinline__ bool shares_with(int block) const { return block / along_n == m || block % along_n == n; }
  __device__ __forceinline__ void load_a(unsigned to, const TensorMap* map, int row, int column, unsigned barrier, unsigned long long policy) const {
    const unsigned blocks = ((1u << along_n) - 1) << m * along_n;
    along_n > 1 ? load_box_for(blocks, to, map, row, column, barrier, policy) : load_box(to, map, row, column, barrier, policy);
  }
  __device__ __forceinline__ void load_b(unsigned to, const TensorMap* map, int row, int column, unsigned barrier, unsigned long long policy) const {
    unsigned blocks = 0;
    for (int i = 0; i < along_m; ++i) blocks |= 1u << (i * along_n + n);
    along_m > 1 ? load_box_for(blocks, to, map, row, column, barrier, policy) : load_box(to, map, row, column, barrier, policy);
  }
  // Releases a buffer in all blocks that copy into it; `thread` counts the threads that do so together.
  __device__ __forceinline__ void release(unsigned empty, int thread) const {
    if (along_m * along_n == 1) {
      if (thread == 0) arrive(empty);
    } else if (thread < along_m * along_n && shares_with(thread)) {
      arrive_at(empty, thread);
    }
  }
};

// Four 8 x 8 matrices of halves from registers; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void store_matrices(unsigned address, unsigned r0, unsigned r1, unsigned r2, unsigned r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r0), "r"(r1), "r"(r2), "r"(r3)
               : "memory");
}

#endif
