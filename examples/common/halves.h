// Half-precision numbers in memory, two in 32 bits, without types that a compiler may lack. After portable.h.
#ifndef HALVES_H
#define HALVES_H

#ifdef __OPENCL_VERSION__
FUNCTION float2 unpack_halves(uint packed) { return vload_half2(0, (const half*)&packed); }
FUNCTION uint pack_halves(float2 values) {
  uint packed;
  vstore_half2_rte(values, 0, (half*)&packed);
  return packed;
}
#elif defined(__HIP__)
typedef _Float16 two_halves __attribute__((ext_vector_type(2)));
FUNCTION float2 unpack_halves(unsigned packed) {
  const two_halves values = __builtin_bit_cast(two_halves, packed);
  return make_float2(values.x, values.y);
}
FUNCTION unsigned pack_halves(float2 values) {
  const two_halves packed = {(_Float16)values.x, (_Float16)values.y};
  return __builtin_bit_cast(unsigned, packed);
}
#else
FUNCTION float2 unpack_halves(unsigned packed) {
  float2 values;
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
      : "=f"(values.x), "=f"(values.y)
      : "r"(packed));
  return values;
}
FUNCTION unsigned pack_halves(float2 values) {
  unsigned packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(values.y), "f"(values.x));
  return packed;
}
#endif

#endif
