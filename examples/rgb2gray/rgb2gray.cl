// Colour to grey (luma of ITU-R BT.601), three planes in, one out: nothing but memory traffic. For OpenCL and CUDA.
//   block_size_x, block_size_y   threads of a block
//   tile_x                       vectors that a thread takes along a row, one block width apart
//   tile_y                       rows that a thread takes
//   vector_width                 pixels per load and store
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#ifdef __OPENCL_VERSION__
#define KERNEL kernel __attribute__((reqd_work_group_size(block_size_x, block_size_y, 1))) void
#define GLOBAL global
#define GROUP(d) get_group_id(d)
#define THREAD(d) get_local_id(d)
typedef float float1;
#define LUMA(y, r, g, b) y = 0.299f * (r) + 0.587f * (g) + 0.114f * (b)
#else
#define KERNEL extern "C" __global__ void __launch_bounds__(block_size_x* block_size_y)
#define GLOBAL
#define GROUP(d) (d == 0 ? blockIdx.x : blockIdx.y)
#define THREAD(d) (d == 0 ? threadIdx.x : threadIdx.y)
__device__ float luma_of(float r, float g, float b) { return 0.299f * r + 0.587f * g + 0.114f * b; }
__device__ void luma(float1& y, float1 r, float1 g, float1 b) { y.x = luma_of(r.x, g.x, b.x); }
__device__ void luma(float2& y, float2 r, float2 g, float2 b) {
  y.x = luma_of(r.x, g.x, b.x), y.y = luma_of(r.y, g.y, b.y);
}
__device__ void luma(float4& y, float4 r, float4 g, float4 b) {
  y.x = luma_of(r.x, g.x, b.x), y.y = luma_of(r.y, g.y, b.y);
  y.z = luma_of(r.z, g.z, b.z), y.w = luma_of(r.w, g.w, b.w);
}
#define LUMA(y, r, g, b) luma(y, r, g, b)
#endif

typedef JOIN(float, vector_width) Pixels;

KERNEL rgb2gray(GLOBAL const Pixels* red, GLOBAL const Pixels* green, GLOBAL const Pixels* blue, GLOBAL Pixels* gray) {
  const int row_length = WIDTH / vector_width;
  const int first_x = GROUP(0) * (block_size_x * tile_x) + THREAD(0);
  const int first_y = GROUP(1) * (block_size_y * tile_y) + THREAD(1);
  for (int row = 0; row < tile_y; ++row) {
    const int y = first_y + row * block_size_y;
    for (int step = 0; step < tile_x; ++step) {
      const int x = first_x + step * block_size_x;
      if (x < row_length && y < HEIGHT) {
        const int i = y * row_length + x;
        LUMA(gray[i], red[i], green[i], blue[i]);
      }
    }
  }
}
