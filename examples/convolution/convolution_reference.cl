// The same sum, one output per thread and nothing clever: what convolution.cl is verified against.
#include "portable.h"

KERNEL(16, 4, 1)
convolution_reference(GLOBAL float* out, GLOBAL const float* in, CONSTANT float* filter) {
  const int x = GROUP(0) * 16 + THREAD(0), y = GROUP(1) * 4 + THREAD(1);
  float sum = 0.0f;
  for (int j = 0; j < FILTER_HEIGHT; ++j)
    for (int i = 0; i < FILTER_WIDTH; ++i)
      sum += in[(y + j) * (WIDTH + FILTER_WIDTH - 1) + x + i] * filter[j * FILTER_WIDTH + i];
  out[y * WIDTH + x] = sum;
}
