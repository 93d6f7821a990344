// What transpose.cl is verified against.
#include "portable.h"

KERNEL(32, 8, 1) transpose_reference(GLOBAL const float* in, GLOBAL float* out) {
  const size_t c = GROUP(0) * 32 + THREAD(0), r = GROUP(1) * 8 + THREAD(1);
  out[c * ROWS + r] = in[r * COLUMNS + c];
}
