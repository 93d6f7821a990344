// A row per thread, in passes of nothing clever: what layer_norm.cl is verified against.
#include "portable.h"
#include "halves.h"

KERNEL(32, 1, 1)
layer_norm_reference(GLOBAL const unsigned int* in, GLOBAL const unsigned int* scale, GLOBAL const unsigned int* shift,
                     GLOBAL unsigned int* out) {
  const long row = (GROUP(0) * 32L + THREAD(0)) * (COLUMNS / 2);
  float sum = 0.0f, squares = 0.0f;
  for (int p = 0; p < COLUMNS / 2; ++p) {
    const float2 x = unpack_halves(in[row + p]);
    sum += x.x + x.y;
  }
  const float mean = sum / COLUMNS;
  for (int p = 0; p < COLUMNS / 2; ++p) {
    const float2 x = unpack_halves(in[row + p]);
    squares += (x.x - mean) * (x.x - mean) + (x.y - mean) * (x.y - mean);
  }
  const float deviation = sqrt(squares / COLUMNS + (float)EPSILON);
  for (int p = 0; p < COLUMNS / 2; ++p) {
    const float2 x = unpack_halves(in[row + p]), a = unpack_halves(scale[p]), b = unpack_halves(shift[p]);
    out[row + p] = pack_halves(FLOAT2((x.x - mean) / deviation * a.x + b.x, (x.y - mean) / deviation * a.y + b.y));
  }
}
