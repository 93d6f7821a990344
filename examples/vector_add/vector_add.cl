// c = a + b for OpenCL and CUDA: block_size_x threads per block, each with work_per_thread elements, `vector_width` at a time.
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#ifdef __OPENCL_VERSION__
#define KERNEL kernel void
#define GLOBAL global
#define GROUP get_group_id(0)
#define THREAD get_local_id(0)
typedef float float1;
#define ADD(c, a, b) c = (a) + (b)
#else
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define GROUP blockIdx.x
#define THREAD threadIdx.x
__device__ void add(float1& c, float1 a, float1 b) { c.x = a.x + b.x; }
__device__ void add(float2& c, float2 a, float2 b) { c.x = a.x + b.x, c.y = a.y + b.y; }
__device__ void add(float4& c, float4 a, float4 b) { c.x = a.x + b.x, c.y = a.y + b.y, c.z = a.z + b.z, c.w = a.w + b.w; }
#define ADD(c, a, b) add(c, a, b)
#endif

typedef JOIN(float, vector_width) Vector;

KERNEL vector_add(int count, GLOBAL const Vector* a, GLOBAL const Vector* b, GLOBAL Vector* c) {
  const int vectors = count / vector_width;  // vector_add.toml takes sizes that divide evenly
  const int first = GROUP * (block_size_x * work_per_thread / vector_width) + THREAD;
  for (int step = 0; step < work_per_thread / vector_width; ++step) {
    const int i = first + step * block_size_x;
    if (i < vectors) ADD(c[i], a[i], b[i]);
  }
}
