// c = a + b on the processor: blocks of block_size elements, each in strides of `unroll`, non-temporal or plain stores.
// The macros are the parameters of vector_add_c.toml.
#if streaming == 1 && defined(__SSE2__)
#include <emmintrin.h>
#endif

void vector_add(int count, const float* restrict a, const float* restrict b, float* restrict c) {
  for (int block = 0; block < count; block += block_size) {
    const int end = block + block_size < count ? block + block_size : count;
    int i = block;
#if streaming == 1 && defined(__SSE2__)
    // stores that go past the caches: c is not read again soon
    for (; i + 4 * unroll <= end; i += 4 * unroll)
      for (int u = 0; u < unroll; ++u)
        _mm_stream_ps(c + i + 4 * u, _mm_add_ps(_mm_loadu_ps(a + i + 4 * u), _mm_loadu_ps(b + i + 4 * u)));
#else
    for (; i + unroll <= end; i += unroll)
      for (int u = 0; u < unroll; ++u) c[i + u] = a[i + u] + b[i + u];
#endif
    for (; i < end; ++i) c[i] = a[i] + b[i];
  }
}
