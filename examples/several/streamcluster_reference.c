/* Coordinate by coordinate over all points, in double precision. */
#include <stdlib.h>

void streamcluster_reference(const float* points, const float* cost, float* gain) {
  double* distance = calloc(SC_N, sizeof(double));
  for (long d = 0; d < SC_DIM; ++d) {
    const double centre = points[d * SC_N];
    for (long i = 0; i < SC_N; ++i) distance[i] += (points[d * SC_N + i] - centre) * (points[d * SC_N + i] - centre);
  }
  for (long i = 0; i < SC_N; ++i) gain[i] = distance[i] < cost[i] ? (float)(cost[i] - distance[i]) : 0.0f;
  free(distance);
}
