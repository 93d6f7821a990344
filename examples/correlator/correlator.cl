// Correlator of a radio telescope, for OpenCL and CUDA: for all pairs of stations i <= j
//   out[b][c][p][q] = sum over t of in[i][c][t][p] * conj(in[j][c][t][q]),  b = j (j + 1) / 2 + i
// for channels c, times t and polarisations p and q, complex numbers in single precision. Channel 0 of several is left out:
// the filter that made the channels has spoilt it. What can be tuned:
//   NR_STATIONS_PER_THREAD   a thread computes the products of as many stations with as many others in its registers
//   block_size               threads of a block
//   time_block               times that are in local memory at once
//   time_unroll              of which so many are unrolled
#include "portable.h"

#define R NR_STATIONS_PER_THREAD
#define SETS ((STATIONS + R - 1) / R)          // of R stations
#define PAIRS (SETS * (SETS + 1) / 2)          // of sets, one for a thread
#define FIRST_CHANNEL (CHANNELS > 1 ? 1 : 0)
#define PLACES (SETS * R)

KERNEL(block_size, 1, 1) correlator(GLOBAL const float4* RESTRICT in, GLOBAL float4* RESTRICT out) {
  // A station's place: the first stations of all sets, then the second ones: threads side by side read side by side.
  LOCAL float4 samples[time_block][PLACES];
  const int channel = GROUP(1) + FIRST_CHANNEL, pair = min(GROUP(0) * block_size + THREAD(0), PAIRS - 1);
  int set_j = (int)((sqrt(8.0f * pair + 1.0f) - 1.0f) / 2.0f);
  if (set_j * (set_j + 1) / 2 > pair) --set_j;              // the root was rounded
  if ((set_j + 1) * (set_j + 2) / 2 <= pair) ++set_j;
  const int set_i = pair - set_j * (set_j + 1) / 2;

  float2 sum[R][R][4];
  UNROLL for (int i = 0; i < R; ++i) UNROLL for (int j = 0; j < R; ++j) UNROLL for (int p = 0; p < 4; ++p)
      sum[i][j][p] = FLOAT2(0.0f, 0.0f);

  for (int first = 0; first < SAMPLES; first += time_block) {
    for (int k = THREAD(0); k < time_block * PLACES; k += block_size) {
      const int station = k / time_block, time = k % time_block;
      samples[time][station % R * SETS + station / R] =
          station < STATIONS ? in[(station * CHANNELS + channel) * SAMPLES + first + time] : ZERO(float4);
    }
    BARRIER();
    UNROLL_BY(time_unroll) for (int time = 0; time < time_block; ++time) {
      float4 a[R], b[R];
      UNROLL for (int i = 0; i < R; ++i) a[i] = samples[time][i * SETS + set_i];
      UNROLL for (int j = 0; j < R; ++j) b[j] = samples[time][j * SETS + set_j];
      UNROLL for (int i = 0; i < R; ++i) UNROLL for (int j = 0; j < R; ++j) {
        const float2 ax = FLOAT2(a[i].x, a[i].y), ay = FLOAT2(a[i].z, a[i].w);
        const float2 bx = FLOAT2(b[j].x, b[j].y), by = FLOAT2(b[j].z, b[j].w);
        sum[i][j][0] = multiply_add_conjugate(ax, bx, sum[i][j][0]);
        sum[i][j][1] = multiply_add_conjugate(ax, by, sum[i][j][1]);
        sum[i][j][2] = multiply_add_conjugate(ay, bx, sum[i][j][2]);
        sum[i][j][3] = multiply_add_conjugate(ay, by, sum[i][j][3]);
      }
    }
    BARRIER();
  }

  if (GROUP(0) * block_size + THREAD(0) >= PAIRS) return;
  UNROLL for (int i = 0; i < R; ++i) UNROLL for (int j = 0; j < R; ++j) {
    const int station_i = set_i * R + i, station_j = set_j * R + j;
    if (station_j >= STATIONS || station_i > station_j) continue;
    const int k = ((station_j * (station_j + 1) / 2 + station_i) * CHANNELS + channel) * 2;
    out[k] = FLOAT4(sum[i][j][0].x, sum[i][j][0].y, sum[i][j][1].x, sum[i][j][1].y);
    out[k + 1] = FLOAT4(sum[i][j][2].x, sum[i][j][2].y, sum[i][j][3].x, sum[i][j][3].y);
  }
}
