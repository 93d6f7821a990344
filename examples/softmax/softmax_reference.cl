// A row per thread, in two passes of nothing clever: what softmax.cl is verified against.
#include "portable.h"
#include "halves.h"

KERNEL(32, 1, 1) softmax_reference(GLOBAL const unsigned int* in, GLOBAL unsigned int* out) {
  const long row = (GROUP(0) * 32L + THREAD(0)) * (COLUMNS / 2);
  float largest = -1e30f, sum = 0.0f;
  for (int p = 0; p < COLUMNS / 2; ++p) {
    const float2 x = unpack_halves(in[row + p]);
    largest = fmax(largest, fmax(x.x, x.y));
  }
  for (int p = 0; p < COLUMNS / 2; ++p) {
    const float2 x = unpack_halves(in[row + p]);
    sum += exp(x.x - largest) + exp(x.y - largest);
  }
  for (int p = 0; p < COLUMNS / 2; ++p) {
    const float2 x = unpack_halves(in[row + p]);
    out[row + p] = pack_halves(FLOAT2(exp(x.x - largest) / sum, exp(x.y - largest) / sum));
  }
}
