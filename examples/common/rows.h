// Rows of halves, each done by the threads of one row of a block: vectors of pairs of halves, and what is the largest of, or the
// sum over, a row. After portable.h and halves.h; threads_per_row, rows_per_block and vector_width are macros.
#ifndef ROWS_H
#define ROWS_H

#if vector_width == 1
typedef unsigned int Vector;
#else
typedef JOIN(uint, vector_width) Vector;
#endif
typedef union {
  Vector vector;
  unsigned int pair[vector_width];
} Pairs;

// A vector that is used once need not stay in the caches; whether that helps is tuned.
#if streaming == 1 && !defined(__OPENCL_VERSION__) && !defined(__HIP__)
#define LOAD_VECTOR(p) __ldcs(p)
#define STORE_VECTOR(p, v) __stcs(p, v)
#else
#define LOAD_VECTOR(p) (*(p))
#define STORE_VECTOR(p, v) (*(p) = (v))
#endif

// value = COMBINE of all values over the threads of a row: within warps through registers where that is possible. Needs "row",
// "thread" and LOCAL float exchange[rows_per_block][threads_per_row].
#ifdef __OPENCL_VERSION__
#define OVER_THE_WARP(value, COMBINE)
#define MEMBERS threads_per_row
#define MEMBER thread
#else
#define OVER_THE_WARP(value, COMBINE)                  \
  UNROLL for (int distance = 16; distance > 0; distance /= 2) \
      value = COMBINE(value, FROM_ACROSS(value, distance));
#define MEMBERS (threads_per_row / 32)
#define MEMBER (thread / 32)
#endif
#define OVER_THE_ROW(value, COMBINE)                                                            \
  OVER_THE_WARP(value, COMBINE)                                                                 \
  if (MEMBERS > 1) {                                                                            \
    exchange[row][MEMBER] = value;                                                              \
    BARRIER();                                                                                  \
    value = exchange[row][0];                                                                   \
    UNROLL_BY(4) for (int i = 1; i < MEMBERS; ++i) value = COMBINE(value, exchange[row][i]);    \
    BARRIER();                                                                                  \
  }
#define ADD(a, b) ((a) + (b))

#endif
