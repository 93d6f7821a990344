/* Heat on a chip of HS_N x HS_N cells: one explicit step of the heat equation with a power map as its source. */
#include "portable.h"

KERNEL hotspot(GLOBAL const float* temperature, GLOBAL const float* power, GLOBAL float* next) {
  const int x = GLOBAL_X, y = GLOBAL_Y;
  if (x >= HS_N || y >= HS_N) return;
  const int i = y * HS_N + x;
  const float here = temperature[i];
  const float west = x > 0 ? temperature[i - 1] : here, east = x < HS_N - 1 ? temperature[i + 1] : here;
  const float north = y > 0 ? temperature[i - HS_N] : here, south = y < HS_N - 1 ? temperature[i + HS_N] : here;
  next[i] = here + 0.1f * (west + east + north + south - 4.0f * here) + 0.05f * power[i] + 0.01f * (80.0f - here);
}
