// Ray casting: every pixel sends a ray into a field of spheres above a checkered floor, lets it be mirrored up to
// MAX_BOUNCES times, and asks for shadow. Neighbouring rays soon go different ways, which is the point: the kernel is
// bound by divergence. For OpenCL and CUDA.
//   block_size_x, block_size_y   threads of a block: its shape decides which rays diverge together
//   tile_x                       pixels per thread, one block width apart
//   early_exit                   1: leave the loop over spheres for a shadow ray at the first hit
//   in_local_memory              1: the spheres are copied to local memory first
//   spheres_per_step             spheres tested per loop step
#ifdef __OPENCL_VERSION__
#define KERNEL kernel __attribute__((reqd_work_group_size(block_size_x, block_size_y, 1))) void
#define GLOBAL global
#define LOCAL local
#define FUNCTION inline
#define GROUP(d) get_group_id(d)
#define THREAD(d) get_local_id(d)
#define SYNCHRONISE() barrier(CLK_LOCAL_MEM_FENCE)
#if in_local_memory == 1
#define SPHERES local const float4*
#else
#define SPHERES global const float4*
#endif
#define SQRT(x) sqrt(x)
#define FLOOR(x) floor(x)
#else
#define KERNEL extern "C" __global__ void __launch_bounds__(block_size_x* block_size_y)
#define GLOBAL
#define LOCAL __shared__
#define FUNCTION __device__ __forceinline__
#define GROUP(d) (d == 0 ? blockIdx.x : blockIdx.y)
#define THREAD(d) (d == 0 ? threadIdx.x : threadIdx.y)
#define SYNCHRONISE() __syncthreads()
#define SPHERES const float4*
#define SQRT(x) sqrtf(x)
#define FLOOR(x) floorf(x)
#endif

#define FAR 1.0e9f
#define NEAR 1.0e-3f

typedef struct {
  float x, y, z;
} Vector;

FUNCTION Vector vector(float x, float y, float z) {
  Vector v;
  v.x = x, v.y = y, v.z = z;
  return v;
}
FUNCTION Vector along(Vector from, Vector direction, float t) {
  return vector(from.x + t * direction.x, from.y + t * direction.y, from.z + t * direction.z);
}
FUNCTION float dot_product(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
FUNCTION Vector normalised(Vector v) {
  const float scale = 1.0f / SQRT(dot_product(v, v));
  return vector(v.x * scale, v.y * scale, v.z * scale);
}

// Distance along a unit ray to a sphere (centre, radius in w), FAR when it misses.
FUNCTION float hit_sphere(Vector from, Vector direction, float4 sphere) {
  const Vector to = vector(sphere.x - from.x, sphere.y - from.y, sphere.z - from.z);
  const float middle = dot_product(to, direction);
  const float squared = sphere.w * sphere.w - (dot_product(to, to) - middle * middle);
  if (squared < 0.0f) return FAR;
  const float half_chord = SQRT(squared);
  if (middle - half_chord > NEAR) return middle - half_chord;
  return middle + half_chord > NEAR ? middle + half_chord : FAR;
}

FUNCTION float nearest_sphere(SPHERES spheres, Vector from, Vector direction, int* which) {
  float nearest = FAR;
  for (int i = 0; i < SPHERE_COUNT; i += spheres_per_step) {
    _Pragma("unroll") for (int u = 0; u < spheres_per_step; ++u) {
      const float t = hit_sphere(from, direction, spheres[i + u]);
      if (t < nearest) {
        nearest = t;
        *which = i + u;
      }
    }
  }
  return nearest;
}

FUNCTION int in_shadow(SPHERES spheres, Vector from, Vector direction) {
  int hit = 0;
  for (int i = 0; i < SPHERE_COUNT; i += spheres_per_step) {
    _Pragma("unroll") for (int u = 0; u < spheres_per_step; ++u) hit |= hit_sphere(from, direction, spheres[i + u]) < FAR;
#if early_exit == 1
    if (hit) return 1;
#endif
  }
  return hit;
}

FUNCTION float brightness(SPHERES spheres, Vector from, Vector direction) {
  const Vector light = normalised(vector(0.6f, 1.0f, -0.5f));
  float sum = 0.0f, weight = 1.0f;
  for (int bounce = 0; bounce <= MAX_BOUNCES; ++bounce) {
    int which = 0;
    float t = nearest_sphere(spheres, from, direction, &which);
    const float floor_t = direction.y < -1.0e-4f ? -from.y / direction.y : FAR;
    if (t >= FAR && (floor_t >= FAR || floor_t > 200.0f)) return sum + weight * (0.3f + 0.5f * direction.y);  // sky
    Vector normal = vector(0.0f, 1.0f, 0.0f);
    float own = 0.8f, mirrored = 0.0f;
    const int on_floor = floor_t < t;
    if (on_floor) t = floor_t;
    const Vector at = along(from, direction, t);
    if (on_floor) {
      const int check = ((int)FLOOR(at.x) + (int)FLOOR(at.z)) & 1;
      own = check ? 0.8f : 0.2f;
    } else {
      const float4 sphere = spheres[which];
      normal = normalised(vector(at.x - sphere.x, at.y - sphere.y, at.z - sphere.z));
      mirrored = 0.7f;
    }
    float lit = dot_product(normal, light);
    lit = lit > 0.0f && !in_shadow(spheres, along(at, normal, 2.0f * NEAR), light) ? lit : 0.0f;
    sum += weight * (1.0f - mirrored) * own * (0.2f + 0.8f * lit);
    if (mirrored == 0.0f) return sum;
    weight *= mirrored;
    const float twice = -2.0f * dot_product(direction, normal);
    direction = normalised(along(direction, normal, twice));
    from = along(at, normal, 2.0f * NEAR);
  }
  return sum;
}

KERNEL raycasting(GLOBAL const float4* spheres, GLOBAL float* image) {
#if in_local_memory == 1
  LOCAL float4 near_spheres[SPHERE_COUNT];
  for (int i = THREAD(1) * block_size_x + THREAD(0); i < SPHERE_COUNT; i += block_size_x * block_size_y)
    near_spheres[i] = spheres[i];
  SYNCHRONISE();
#define FIELD near_spheres
#else
#define FIELD spheres
#endif
  const int y = GROUP(1) * block_size_y + THREAD(1);
  for (int step = 0; step < tile_x; ++step) {
    const int x = (GROUP(0) * tile_x + step) * block_size_x + THREAD(0);
    if (x < WIDTH && y < HEIGHT) {
      const Vector direction = normalised(vector((x - 0.5f * WIDTH) / HEIGHT, (0.5f * HEIGHT - y) / HEIGHT - 0.2f, 1.0f));
      image[y * WIDTH + x] = brightness(FIELD, vector(0.0f, 4.0f, -10.0f), direction);
    }
  }
}
