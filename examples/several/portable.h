/* One source for OpenCL and CUDA: the few words in which they differ. */
#ifdef __OPENCL_VERSION__
#define KERNEL __kernel void
#define GLOBAL __global
#define LOCAL __local
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define LOCAL_X (int)get_local_id(0)
#define LOCAL_Y (int)get_local_id(1)
#define GROUP_X (int)get_group_id(0)
#define GROUP_Y (int)get_group_id(1)
#define GLOBAL_X (int)get_global_id(0)
#define GLOBAL_Y (int)get_global_id(1)
#else
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define LOCAL __shared__
#define BARRIER __syncthreads()
#define LOCAL_X (int)threadIdx.x
#define LOCAL_Y (int)threadIdx.y
#define GROUP_X (int)blockIdx.x
#define GROUP_Y (int)blockIdx.y
#define GLOBAL_X (int)(blockIdx.x * blockDim.x + threadIdx.x)
#define GLOBAL_Y (int)(blockIdx.y * blockDim.y + threadIdx.y)
#endif
