// A step of heat conduction on a grid of height x width cells: every inner cell moves towards the mean of its neighbours. A work item
// computes ROWS cells of a column. BLOCK_X, BLOCK_Y and ROWS are what can be tuned.
#ifndef ROWS
#define ROWS 1
#endif

kernel void heat(int width, int height, float rate, global const float* now, global float* next) {
  const int x = get_global_id(0);
  const int first = get_global_id(1) * ROWS;
  for (int row = 0; row < ROWS; ++row) {
    const int y = first + row;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) continue;
    const int i = y * width + x;
    next[i] = now[i] + rate * (now[i - 1] + now[i + 1] + now[i - width] + now[i + width] - 4.0f * now[i]);
  }
}
