/* One explicit step of the heat equation over the whole chip, in double precision; what lies outside is as warm as the edge. */
static double edge(const float* t, long y, long x) {
  y = y < 0 ? 0 : y >= HS_N ? HS_N - 1 : y;
  x = x < 0 ? 0 : x >= HS_N ? HS_N - 1 : x;
  return t[y * HS_N + x];
}

void hotspot_reference(const float* temperature, const float* power, float* next) {
  for (long y = 0; y < HS_N; ++y) {
    for (long x = 0; x < HS_N; ++x) {
      const double here = edge(temperature, y, x);
      const double around = edge(temperature, y, x - 1) + edge(temperature, y, x + 1) + edge(temperature, y - 1, x) +
                            edge(temperature, y + 1, x);
      next[y * HS_N + x] = (float)(here + 0.1 * (around - 4 * here) + 0.05 * power[y * HS_N + x] + 0.01 * (80 - here));
    }
  }
}
