// Inclusive prefix sum of SIZE numbers in one pass, for OpenCL and CUDA: the decoupled look-back of Merrill and Garland (2016). A block
// sums its tile, publishes the sum, adds up what the tiles before it have published until one of them knows the sum of all
// before, and publishes its own. Memory is read and written once. What can be tuned:
//   block_size   threads of a block
//   loads        vectors of four numbers of a thread
//   look_back    tiles before it that a block looks at together
//   streaming    1: loads and stores that do not stay in the caches (CUDA)
// Tiles are numbered as blocks start, so that a block waits only for blocks that run. Each launch marks what it publishes with its number,
// so that `state` is never cleared: state[0] holds launch and next tile, the others launch, kind and, as bits, sum of a tile.
#include "portable.h"
#define vector_width 4
#include "rows.h"

#define ROW (32 * loads)  // vectors of 32 threads that exchange sums
#define TILES (SIZE / (4 * loads * block_size))
#define SUM_OF_TILE 1
#define SUM_OF_ALL 2

#ifdef __OPENCL_VERSION__
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
typedef ulong Word;
typedef volatile global Word* State;
#define ADD_TO(p, value) atom_add(p, value)
#define READ(p) atom_add(p, 0)
#define WRITE(p, value) atom_xchg(p, value)
#define BITS(value) as_uint(value)
#define FROM_BITS(bits) as_float(bits)
#else
typedef unsigned long long Word;
typedef volatile Word* State;
#define ADD_TO(p, value) atomicAdd((Word*)(p), value)
#define READ(p) (*(p))
#define WRITE(p, value) (*(p) = (value))
#define BITS(value) __float_as_uint(value)
#define FROM_BITS(bits) __uint_as_float(bits)
#endif

KERNEL(block_size, 1, 1) scan(GLOBAL const float4* RESTRICT in, State state, GLOBAL float4* RESTRICT out) {
  LOCAL Word ticket, published[look_back];
  LOCAL float sums[block_size / 32], of_all;  // the sum of all tiles before
  LOCAL int known;
#ifdef __OPENCL_VERSION__
  LOCAL float of_threads[block_size];
#endif
  const int thread = THREAD(0), lane = thread % 32, warp = thread / 32;
  if (thread == 0) {
    ticket = ADD_TO(state, 1);
    if ((unsigned int)ticket == TILES - 1) ADD_TO(state, ((Word)1 << 32) - TILES);  // for the next launch
  }
  BARRIER();
  const int tile = (int)ticket;
  const unsigned int launch = ((unsigned int)(ticket >> 32) + 1) << 2;
#define PUBLISH(kind, value) WRITE(state + 1 + tile, (Word)(launch | (kind)) << 32 | BITS(value))

  // Sums within a vector, then over the threads of a warp, then over its vectors.
  const int first = (tile * (block_size / 32) + warp) * ROW + lane;
  float4 x[loads];
  float below[loads], sum = 0;
  UNROLL for (int i = 0; i < loads; ++i) x[i] = LOAD_VECTOR(in + first + 32 * i);
  UNROLL for (int i = 0; i < loads; ++i) {
    x[i].y += x[i].x;
    x[i].z += x[i].y;
    x[i].w += x[i].z;
#ifdef __OPENCL_VERSION__
    of_threads[thread] = x[i].w;
    BARRIER();
    float all = 0;
    below[i] = sum;
    for (int other = 0; other < 32; ++other) {
      if (other == lane) below[i] += all;
      all += of_threads[thread - lane + other];
    }
    sum += all;
    BARRIER();
#else
    float up_to = x[i].w;
    UNROLL for (int distance = 1; distance < 32; distance *= 2) {
      const float other = FROM_BELOW(up_to, distance);
      if (lane >= distance) up_to += other;
    }
    below[i] = sum + up_to - x[i].w;
    sum += FROM_LANE(up_to, 31);
#endif
  }
  if (lane == 0) sums[warp] = sum;
  BARRIER();
  float before = 0, of_tile = 0;  // sums of what is before the warp in its tile, of the tile
  UNROLL for (int i = 0; i < block_size / 32; ++i) {
    if (i == warp) before = of_tile;
    of_tile += sums[i];
  }
  if (thread == 0) PUBLISH(tile == 0 ? SUM_OF_ALL : SUM_OF_TILE, of_tile);

  if (thread == 0) of_all = 0, known = tile == 0;
  BARRIER();
  for (int last = tile - 1; !known; last -= look_back) {
    if (thread < look_back) {
      Word word = (Word)SUM_OF_ALL << 32;  // before the first tile: 0
      while (thread <= last && (unsigned int)(word >> 34) != launch >> 2) word = READ(state + 1 + last - thread);
      published[thread] = word;
    }
    BARRIER();
    if (thread == 0) {
      float sum_of_them = 0;
      int found = 0;
      UNROLL_BY(8) for (int i = 0; i < look_back; ++i) {
        if (!found) sum_of_them += FROM_BITS((unsigned int)published[i]);
        found |= (published[i] >> 32 & 3) == SUM_OF_ALL;
      }
      of_all += sum_of_them;
      known = found;
      if (found) PUBLISH(SUM_OF_ALL, of_all + of_tile);
    }
    BARRIER();
  }

  UNROLL for (int i = 0; i < loads; ++i) {
    const float base = of_all + before + below[i];
    x[i].x += base;
    x[i].y += base;
    x[i].z += base;
    x[i].w += base;
    STORE_VECTOR(out + first + 32 * i, x[i]);
  }
}
