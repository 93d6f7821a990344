// A first problem file from a kernel's source: it can be read, and it describes that kernel.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>

#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "error_of.hpp"
#include "problem/draft/problem_draft.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Draft : public testing::Test {
 protected:
  ProblemDraft draft(const std::string& name, const std::string& source, const std::string& kernel = "") {
    std::ofstream(folder_ / name) << source;
    return draft_problem(folder_ / name, kernel, folder_);
  }
  Problem problem(const std::string& name, const std::string& source, const std::string& kernel = "") {
    return parse_problem(draft(name, source, kernel).text, folder_ / "problem.toml");
  }
  const TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

std::vector<std::string> counts(const Problem& problem) {
  std::vector<std::string> texts;
  for (const Argument& argument : problem.kernel().arguments)
    if (argument.kind == Argument::Kind::buffer) texts.push_back(argument.count.text());
  return texts;
}

std::vector<std::string> parameters(const Problem& problem) {
  std::vector<std::string> names;
  for (const Parameter& parameter : problem.parameters) names.push_back(parameter.name);
  return names;
}

TEST_F(Draft, OfAnElementwiseKernelIsComplete) {
  const char* source =
      "__global__ void add(float *c, const float *a, const float *b, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < n) c[i] = a[i] + b[i];  // c[i] += n would be something else\n}\n";
  EXPECT_THAT(draft("add.cu", source).questions, ElementsAre(HasSubstr("N_SIZE")));
  const Problem add = problem("add.cu", source);
  const auto& arguments = add.kernel().arguments;
  ASSERT_EQ(arguments.size(), 4u);
  EXPECT_EQ(arguments[0].access, Access::write);
  EXPECT_EQ(arguments[1].access, Access::read);
  EXPECT_EQ(arguments[3].type, ElementType::int32);
  EXPECT_THAT(counts(add), ElementsAre("N_SIZE", "N_SIZE", "N_SIZE"));
  EXPECT_THAT(parameters(add), ElementsAre("BLOCK_SIZE_X"));
  EXPECT_EQ(add.kernel().launch.global.size(), 1u);
}

// The launch is what runs today; a bound in the body may be of something else, as the detector's "nv" is here.
TEST_F(Draft, TakesSizesOfTheGridFromTheLaunch) {
  const char* kernel =
      "__global__ void project(float* vol, int nx, int nz, const float* det, int nv) {\n"
      "  const int ix = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  const int iz0 = blockIdx.y * VZ;\n  if (ix >= nx) return;\n"
      "  for (int k = 0; k < VZ; ++k) {\n    const int iv = (iz0 + k) / 2;\n    if (iv + 1 >= nv) continue;\n"
      "    if (iz0 + k < nz) vol[(iz0 + k) * nx + ix] = det[iv];\n  }\n}\n"
      "#ifndef __CUDACC_RTC__\n#define VZ 4\nint main() {\n  const int nx = 256, nz = 128, nv = 64;\n  ";
  const auto with = [&](const std::string& grid) { return kernel + ("project<<<" + grid) + "\n}\n#endif\n"; };
  const std::string rest = ", 64>>>(vol, nx, nz, det, nv);";
  const ProblemDraft launched = draft("bp.cu", with("dim3((nx + 63) / 64, (nz + VZ - 1) / VZ)" + rest));
  EXPECT_THAT(launched.questions, Contains(AllOf(HasSubstr("grid"), HasSubstr("NZ"), HasSubstr("NV"))));
  const auto grid = [&](const std::string& text) {
    return parse_problem(text, folder_ / "problem.toml").kernel().launch.grid;
  };
  ASSERT_EQ(grid(launched.text).size(), 2u);
  EXPECT_EQ(grid(launched.text)[1].text(), "(NZ + VZ - 1) // VZ");
  // a number decides where it covers exactly one of the sizes
  EXPECT_EQ(grid(draft("bp.cu", with("dim3((nx + 63) / 64, 32)" + rest)).text)[1].text(), "(NZ + VZ - 1) // VZ");
  const ProblemDraft other = draft("bp.cu", with("dim3((nx + 63) / 64, nz / 7)" + rest));
  EXPECT_EQ(grid(other.text)[1].text(), "(NV + VZ - 1) // VZ");
  EXPECT_THAT(other.questions, Contains(AllOf(HasSubstr("grid"), HasSubstr("16 blocks"), HasSubstr("18"))));
  // one thread for each position
  const std::string source =
      "__global__ void blur(float* out, const float* in, int w, int h) {\n"
      "  int x = blockIdx.x * blockDim.x + threadIdx.x;\n  int left = x - 1;\n"
      "  if (left >= h) return;\n  out[x] = in[left];\n}\n"
      "#ifndef __CUDACC_RTC__\nint main() { int w = 900, h = 700; blur<<<(w + 255) / 256, 256>>>(out, in, w, h); }\n"
      "#endif\n";
  const Problem blur = problem("blur.cu", source);
  ASSERT_EQ(blur.kernel().launch.global.size(), 1u);
  EXPECT_EQ(blur.kernel().launch.global[0].text(), "W_SIZE");
  EXPECT_THAT(draft("blur.cu", source).questions, Contains(AllOf(HasSubstr("W_SIZE"), HasSubstr("H_SIZE"))));
}

TEST_F(Draft, FillsWithZerosWhatTheHostSetsToZero) {
  const auto with = [&](const std::string& statements) {
    const Problem sum = problem("sum.cu",
                                "__global__ void sum(const float *a, int *total, int n) {\n"
                                "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                "  if (i < n && a[i] > 0) atomicAdd(&total[0], 1);\n}\n"
                                "int main() { int n = 4096; float *a; int *d, *h; cudaMalloc(&d, 4);\n" +
                                    statements + "\n  sum<<<(n + 255) / 256, 256>>>(a, d, n); }\n");
    return sum.kernel().arguments[1].fill.kind;
  };
  const auto random = with("");
  EXPECT_NE(with("cudaMemset(d, 0u, sizeof(int));"), random);
  EXPECT_EQ(with("cudaMemset(d, 1, sizeof(int));"), random);
  EXPECT_EQ(with("cudaMemset(d, 0, 4); cudaMemcpy(d, h, 4, cudaMemcpyHostToDevice);"), random);
}

TEST_F(Draft, WritesTheNumberOfBlocksByTheBlock) {
  const Problem damage =
      problem("damage.cu",
              "__global__ void damage(int n, const int *list, int *count) {\n"
              "  const int local = threadIdx.x, size = blockDim.x, node = blockIdx.x;\n"
              "  const int i = node * size + local;\n  int own = i < n ? list[i] : 0;\n"
              "  if (__syncthreads_or(own) && local == 0) count[node] = 1;\n}\n"
              "#define BS 256\n"
              "int main(int, char **argv) { const int n = atoi(argv[1]); const int m = (n + BS - 1) / BS;\n"
              "  int *list, *count; cudaMalloc(&list, 4 * n); cudaMalloc(&count, 4 * m);\n"
              "  dim3 blocks(BS), grids(m); damage<<<grids, blocks>>>(n, list, count); }\n");
  ASSERT_EQ(damage.kernel().launch.grid.size(), 1u);
  EXPECT_THAT(damage.kernel().launch.grid[0].text(), HasSubstr("// BLOCK_SIZE_X"));
}

TEST_F(Draft, CountsAnElementForEachOfTheSmallestBlocks) {
  const auto count = [&](const std::string& host) {
    return counts(problem("sum.cu",
                          "#define BS 256\n__global__ void sum(const float *a, float *b, int n) {\n"
                          "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  float t = i < n ? a[i] : 0;\n"
                          "  t = warp_sum(t);\n  if (threadIdx.x == 0) b[blockIdx.x] = t;\n}\n"
                          "int main() { int n = 1 << 20; float *a, *b; " +
                              host + " sum<<<m, BS>>>(a, b, n); }\n"))[1];
  };
  EXPECT_EQ(count("int m = (n + BS - 1) / BS; cudaMalloc(&b, m * sizeof(float));"), "(N_SIZE + 8 - 1) // 8");
  EXPECT_EQ(count("int m = (n + 255) / 256; cudaMalloc(&b, m * sizeof(float));"), "(N_SIZE + 8 - 1) // 8");
}

TEST_F(Draft, GivesABufferWithTheSquareOfASizeFewerElements) {
  const Problem turn = problem("turn.cu",
                               "__global__ void turn(float *m, const int n) {\n"
                               "  int layer = blockIdx.x * blockDim.x + threadIdx.x;\n"
                               "  if (layer < n/2) for (int i = layer; i < n; ++i) m[layer*n+i] = m[i*n+layer];\n}\n");
  EXPECT_LE(turn.kernel().arguments[0].count.evaluate(turn.constants).as_integer(), 1 << 28);
}

// A count follows constants only.
TEST_F(Draft, MakesTemplateParametersOfAllocationsConstants) {
  const Problem product =
      problem("mv.cu",
              "constexpr int N = 1024, K = 2048;\n"
              "template <int n, int k> __global__ void mv(const float *a, float *b) {\n"
              "  int c = blockIdx.x * blockDim.x + threadIdx.x;\n"
              "  if (c < k) { float s = 0; for (int i = 0; i < n; i++) s += a[i * k + c]; b[c] = s; }\n}\n"
              "int main() { float *a, *b; cudaMalloc(&a, sizeof(float) * N * K); cudaMalloc(&b, sizeof(float) * K);\n"
              "  mv<N, K><<<(K + 255) / 256, 256>>>(a, b); }\n");
  EXPECT_THAT(counts(product), ElementsAre("N_VALUE * K_VALUE", "K_VALUE"));
  EXPECT_THAT(parameters(product), ElementsAre("BLOCK_SIZE_X"));
  EXPECT_EQ(product.constants.at("K_VALUE").as_integer(), 2048);
  const Problem rows = problem("rows.cu",
                               "template <int R> __global__ void k(const float *a, float *b, int n) {\n"
                               "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                               "  if (i < n) for (int j = 0; j < R; j++) b[i * R + j] = a[i * R + j] * 2.f;\n}\n"
                               "void run(float *a, float *b, int n) { k<8><<<n / 256, 256>>>(a, b, n); }\n");
  EXPECT_THAT(counts(rows), ElementsAre("N_SIZE * 32", "N_SIZE * 32"));
  EXPECT_THAT(parameters(rows), Contains("R_VALUE"));
}

// The bound of a sample that is rounded from a coordinate is none of the coordinate.
TEST_F(Draft, TakesNoBoundOfARoundedValue) {
  for (const char* start : {"blockIdx.z * VZ", "blockIdx.z * VZ + 0"}) {
    const Problem project = problem(
        "fdk.cu",
        fmt::format("__global__ void project(float* vol, int nx, int nz, const float* det, int nv, float s) {{\n"
                    "  const int ix = blockIdx.x * blockDim.x + threadIdx.x;\n  const int iz0 = {};\n"
                    "  if (ix >= nx) return;\n  for (int k = 0; k < VZ; ++k) {{\n"
                    "    const float z = (iz0 + k) * s;\n    const int v0 = (int)floorf(z);\n"
                    "    if (v0 < 0 || v0 + 1 >= nv) continue;\n"
                    "    if (iz0 + k < nz) vol[(iz0 + k) * nx + ix] = det[v0];\n  }}\n}}\n",
                    start));
    const Launch& launch = project.kernel().launch;
    ASSERT_EQ(launch.grid.size(), 3u) << start;
    EXPECT_THAT(launch.grid[2].text(), HasSubstr("NZ")) << start;
    EXPECT_EQ(launch.grid[1].text(), "1") << start;
    EXPECT_EQ(counts(project)[0], "NZ * NX") << start;
  }
}

// An array of shared memory that the kernel declares and does not use needs none.
TEST_F(Draft, GivesUnusedSharedArraysNoMemory) {
  const auto with = [](const std::string& use) {
    return "__global__ void k(float* out, int n) {\n  extern __shared__ float2 sa[];\n"
           "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n" +
           use + "  if (i < n) out[i] = 1;\n}\n";
  };
  EXPECT_THAT(draft("k.cu", with("")).text, Not(HasSubstr("shared_memory_bytes")));
  EXPECT_THAT(draft("k.cu", with("  sa[threadIdx.x].x = i;\n")).text, HasSubstr("shared_memory_bytes"));
}

TEST_F(Draft, TakesBlockAndTileFromTheSource) {
  const Problem product = problem("product.cu", R"(
#ifndef TILE
#define TILE 16
#endif
/* __global__ void product(int* no) */
extern "C" __global__ void product(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a[TILE][TILE];
  int row = blockIdx.y * TILE + threadIdx.y;
  int col = blockIdx.x * TILE + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < K / TILE; ++t) { a[threadIdx.y][threadIdx.x] = A[row * K + t * TILE + threadIdx.x]; sum += B[(t * TILE + threadIdx.y) * N + col]; }
  if (row < M && col < N) C[row * N + col] = sum;
}
)");
  EXPECT_THAT(parameters(product), ElementsAre("TILE"));
  const Launch& launch = product.kernel().launch;
  ASSERT_EQ(launch.block.size(), 2u);
  EXPECT_EQ(launch.block[0].text(), "TILE");
  EXPECT_EQ(launch.global[0].text(), "N_SIZE");
  EXPECT_EQ(launch.global[1].text(), "M_SIZE");
  EXPECT_EQ(counts(product)[0], "M_SIZE * K_SIZE");
  EXPECT_EQ(counts(product)[2], "M_SIZE * N_SIZE");
}

TEST_F(Draft, OfAnOpenClKernelKnowsVectorsAndLocalMemory) {
  const Problem blur = problem("blur.cl", R"(
kernel void blur(global const uchar4* in, global float2* out, local float* tile, int width, int height, float weight) {
  const int x = get_global_id(0), y = get_global_id(1);
  if (x >= width || y >= height) return;
  tile[get_local_id(0)] = in[y * width + x].x;
  out[y * width + x] = tile[0] * weight;
}
)");
  const auto& arguments = blur.kernel().arguments;
  ASSERT_EQ(arguments.size(), 6u);
  EXPECT_EQ(arguments[0].type, ElementType::uint8);
  EXPECT_EQ(arguments[1].type, ElementType::float32);
  EXPECT_EQ(arguments[2].kind, Argument::Kind::local_memory);
  EXPECT_THAT(counts(blur), ElementsAre("4 * (HEIGHT * WIDTH)", "2 * (HEIGHT * WIDTH)"));
  EXPECT_THAT(parameters(blur), ElementsAre("BLOCK_SIZE_X", "BLOCK_SIZE_Y"));
  std::int64_t threads = 1;  // gains are relative to the default: one that nobody would write makes them look large
  for (const Parameter& parameter : blur.parameters) threads *= parameter.default_value.value().as_integer();
  EXPECT_GE(threads, 64);
}

TEST_F(Draft, FillsConditionsWithZerosAndOnes) {
  const std::string text =
      draft("masked.cu",
            "__global__ void masked(const int* mask, const int* valid, const int* count, float* x, int n) {\n"
            "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
            "  if (i < n && mask[i]) x[i] = valid[i] ? 1.f : 2.f;\n  if (count[i]) x[i] *= count[i];\n}\n")
          .text;
  EXPECT_THAT(text, ContainsRegex("\"mask\".*random = \\[0, 1\\].*CHECK"));
  EXPECT_THAT(text, ContainsRegex("\"valid\".*random = \\[0, 1\\].*CHECK"));
  EXPECT_THAT(text, Not(ContainsRegex("\"count\"[^\n]*random"))) << "its values are used";
}

TEST_F(Draft, MarksBuffersWhoseElementsIndexOthersOrBoundLoops) {
  const std::string text =
      draft(
          "k.cu",
          "__global__ void k(float* y, const float* x, const int* column, const int* begin, const int* weight, int n) "
          "{\n  int row = blockIdx.x * blockDim.x + threadIdx.x;\n  if (row >= n) return;\n  float sum = 0;\n"
          "  const int end = begin[row + 1];\n  for (int i = begin[row]; i < end; ++i) {\n"
          "    const int c = column[i];\n    sum += weight[i] * x[c];\n  }\n  y[row] = sum;\n}\n")
          .text;
  EXPECT_THAT(text, ContainsRegex("\"column\"[^\n]*CHECK[^\n]* x[ ,:][^\n]*file"));
  EXPECT_THAT(text, ContainsRegex("\"begin\"[^\n]*CHECK[^\n]*loop[^\n]*file"));
  for (const char* data : {"weight", "x", "y"})
    EXPECT_THAT(text, Not(ContainsRegex("\"" + std::string(data) + "\"[^\n]*file"))) << data;
  EXPECT_THAT(draft("v.cu",
                    "__global__ void v(float* y, const float* x, const int2* range, int n) {\n"
                    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n"
                    "  const int first = range[i].x, last = range[i].y;\n"
                    "  for (int k = first; k < last; ++k) y[i] += x[k];\n}\n")
                  .text,
              ContainsRegex("\"range\"[^\n]*CHECK[^\n]*loop[^\n]*file"))
      << "lengths in a vector";
}

TEST_F(Draft, MarksBuffersWhoseElementsIndexOthersThroughALocalArray) {
  const std::string text =
      draft("s.cl",
            "kernel void s(global const uchar* query, global const uchar* weight, global const char* profile, global "
            "int* "
            "y, int n) {\n  const int i = get_global_id(0);\n  if (i >= n) return;\n  int sum = 0, w[8], q[8];\n"
            "  for (int k = 0; k < 8; ++k) { q[k] = query[i] * 24; w[k] = weight[i]; }\n"
            "  for (int k = 0; k < 8; ++k) sum += w[k] * profile[q[k] + k];\n  y[i] = sum;\n}\n")
          .text;
  EXPECT_THAT(text, ContainsRegex("\"query\"[^\n]*CHECK[^\n]*profile[^\n]*file"));
  EXPECT_THAT(text, Not(ContainsRegex("\"(weight|profile)\"[^\n]*file")));
}

TEST_F(Draft, RestrictsATileThatALoopCounts) {
  const std::string source =
      "#ifndef TILE\n#define TILE 16\n#endif\n__global__ void rows(const float* x, float* y, int n, int m) {\n"
      "  const int row = blockIdx.x * blockDim.x + threadIdx.x;\n  if (row >= m) return;\n  float s = 0;\n"
      "  for (int t = 0; t < LOOP; ++t)\n    for (int k = 0; k < TILE; ++k) s += x[row * n + t * TILE + k];\n"
      "  y[row] = s;\n}\n";
  const auto with = [&](const std::string& bound) {
    return draft("rows.cu", std::regex_replace(source, std::regex("LOOP"), bound));
  };
  EXPECT_THAT(with("n / TILE").text, HasSubstr("\"N_SIZE % TILE == 0\""));
  EXPECT_THAT(with("n / TILE").questions, Contains(HasSubstr("N_SIZE % TILE == 0")));
  EXPECT_THAT(with("(n + TILE - 1) / TILE").text, Not(HasSubstr("N_SIZE % TILE")));
}

TEST_F(Draft, TakesBoundsOfLoopsForLocalMemoryAndIncludesTheLast) {
  const Problem price = problem(
      "price.cl",
      "kernel void price(global const float* spot, global float* value, global float* w, const int steps, local float* "
      "v)"
      " {\n  const int lid = get_local_id(0);\n  const float s = spot[get_group_id(0)];\n"
      "  for (int i = lid; i <= steps; i += get_local_size(0)) v[i] = s * w[i];\n  barrier(CLK_LOCAL_MEM_FENCE);\n"
      "  for (int t = steps - 1; t >= 0; --t)\n    for (int i = lid; i <= t; i += get_local_size(0)) v[i] += v[i + "
      "1];\n"
      "  if (lid == 0) value[get_group_id(0)] = v[0];\n}\n");
  const auto& arguments = price.kernel().arguments;
  EXPECT_EQ(arguments[4].count.text(), "STEPS + 1");
  EXPECT_EQ(arguments[2].count.text(), "STEPS + 1");
  ASSERT_EQ(price.kernel().launch.grid.size(), 1u);
  EXPECT_EQ(price.kernel().launch.grid[0].text(), arguments[1].count.text());
  // counted from one
  EXPECT_THAT(counts(problem("y.c", "void f(float* y, int n) {\n  for (int i = 1; i <= n; ++i) y[i - 1] = 1;\n}\n")),
              ElementsAre("N_SIZE"));
}

TEST_F(Draft, RestrictsSizesOfKernelsWithoutAGuard) {
  const auto with = [&](const std::string& index, const std::string& guard, const std::string& launch = "") {
    return draft("rows.cu",
                 "#ifndef ROWS\n#define ROWS 4\n#endif\n"
                 "__global__ void matvec(int n, const float* a, const float* x, float* y) {\n"
                 "  const int r0 = " +
                     index + ";\n" + guard +
                     "  float s[ROWS] = {0};\n  for (int k = 0; k < n; ++k)\n"
                     "    for (int r = 0; r < ROWS; ++r) s[r] += a[(r0 + r) * n + k] * x[k];\n"
                     "  for (int r = 0; r < ROWS; ++r) y[r0 + r] = s[r];\n}\n" +
                     launch)
        .text;
  };
  const std::string index = "(blockIdx.x * blockDim.x + threadIdx.x) * ROWS";
  const std::string restriction = "N_SIZE % (BLOCK_SIZE_X * ROWS) == 0";
  EXPECT_THAT(with(index, ""), HasSubstr(restriction));
  for (const char* guard : {"  if (r0 >= n) return;\n", "  const int last = r0 + ROWS;\n  if (n < last) return;\n"})
    EXPECT_THAT(with(index, guard), Not(HasSubstr(restriction))) << guard;
  const std::string launch =
      "#ifndef __CUDACC_RTC__\nint main() { matvec<<<(1000 + 255) / 256, 64>>>(1000, a, x, y); }\n#endif\n";
  EXPECT_THAT(with(index, "", launch), Not(HasSubstr(restriction))) << "the launch would not satisfy it";
}

TEST_F(Draft, RestrictsBlocksToWholeWarps) {
  const auto with = [&](const std::string& sum, const std::string& threads = "") {
    return draft("warp.cu", "__device__ float total(float x) {\n  return " + sum +
                                ";\n}\n__global__ void rows(const float* x, float* y, int n) {\n"
                                "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n"
                                "  y[i] = total(x[i]);\n}\n" +
                                (threads.empty() ? "" : "void run() { rows<<<9, " + threads + ">>>(x, y, 99); }\n"))
        .text;
  };
  const std::string restriction = "BLOCK_SIZE_X % 32 == 0";
  EXPECT_THAT(with("x + __shfl_xor_sync(0xffffffff, x, 1)"), HasSubstr(restriction));
  EXPECT_THAT(with("x"), Not(HasSubstr(restriction)));
  EXPECT_THAT(with("x + __shfl_xor_sync(0xffff, x, 1)", "16"), Not(HasSubstr(restriction))) << "of a part of a warp";
  EXPECT_THAT(draft("lane.cu",
                    "__global__ void k(float* y, int n) {\n  const int lane = threadIdx.x & 31;\n"
                    "  const int w = (blockIdx.x * blockDim.x + threadIdx.x) / 32;\n  if (w < n) y[w] = lane;"
                    "\n}\n")
                  .text,
              HasSubstr(restriction));
}

TEST_F(Draft, TakesStepsAndLengthsOfLocalArraysForParameters) {
  const auto with = [&](const std::string& body) {
    return draft("f.c", "#ifndef COLS\n#define COLS 8\n#endif\nvoid f(int* img, int w, int h) {\n" + body + "}\n");
  };
  for (const char* body :
       {"for (int x = 0; x + COLS <= w; x += COLS)\n  for (int k = 0; k < COLS; ++k) img[h * w + x + k] += 1;\n",
        "int sums[COLS] = {0};\nfor (int k = 0; k < COLS; ++k) sums[k] = w * h;\nimg[0] = sums[3];\n"}) {
    const Problem strips = parse_problem(with(body).text, folder_ / "problem.toml");
    EXPECT_THAT(parameters(strips), Contains("COLS")) << body;
    EXPECT_EQ(counts(strips).size(), 1u);
    EXPECT_THAT(counts(strips)[0], Not(HasSubstr("COLS"))) << body;
  }
  const ProblemDraft rows = with(
      "for (int y = 0; y < h; ++y)\n  for (int i = y * COLS; i < (y + 1) * COLS; i += w) img[i] = img[y * COLS];\n"
      "for (int i = 0; i < h * COLS; i += COLS) img[i] = 0;\n");
  EXPECT_THAT(parameters(parse_problem(rows.text, folder_ / "problem.toml")), Not(Contains("COLS")));
  EXPECT_THAT(rows.questions, Contains(AllOf(HasSubstr("COLS"), HasSubstr("[parameters]"))));
}

TEST_F(Draft, CountsTheNumbersOfVectorsInLocalMemory) {
  const Problem sum = problem("sum.cl",
                              "kernel void sum(global float4* x, local float4* tile) {\n  int i = get_global_id(0);\n"
                              "  tile[get_local_id(0)] = x[i];\n  x[i] += tile[0];\n}\n");
  const Constants sizes{{"BLOCK_SIZE_X", Value(64)}};
  EXPECT_EQ(sum.kernel().arguments[1].count.evaluate(sizes).as_integer(), 4 * 64);
}

TEST_F(Draft, TakesNumbersThatTheHostPasses) {
  std::ofstream(folder_ / "k.cl") << "kernel void k(global float* x, float a, float b, int mode) {\n"
                                     "  int i = get_global_id(0);\n  if (mode == 3) x[i] = a * x[i] + b;\n}\n";
  std::ofstream(folder_ / "run.py")
      << "b = 1e-6\np.k(queue, (64,), None, x, np.float32(-2.5), np.float32(b), np.int32(3))\n";
  const std::string text = draft_problem(folder_ / "k.cl", "", folder_, folder_ / "run.py").text;
  for (const char* passed : {"value = -2.5", "value = 1e-06", "MODE = 3", "N_SIZE = 64"})
    EXPECT_THAT(text, HasSubstr(passed)) << text;
  EXPECT_THAT(text, Not(ContainsRegex("value = [^\n]*CHECK")));
  for (const char* passed : {"value = -2.5", "MODE = 3", "N_SIZE = 64"})
    EXPECT_THAT(text, ContainsRegex(std::string(passed) + "[^\n]*run\\.py"));
}

TEST_F(Draft, ComputesRealNumbersThatTheHostPasses) {
  const auto with = [&](const std::string& passed) {
    return draft("f.cpp",
                 "void f(double* x, int n, double r) {\n  for (int i = 0; i < n; ++i) x[i] *= r;\n}\n"
                 "int main() {\n  const double box = 31.0, skin = box * 0.1f;\n  double unknown = read();\n"
                 "  f(x, 1000, " +
                     passed + ");\n}\n")
        .text;
  };
  EXPECT_THAT(with("box / 2"), HasSubstr("value = 15.5"));
  EXPECT_THAT(with("-(skin + 1e-1)"), HasSubstr("value = -3.2"));
  for (const char* passed : {"unknown / 2", "sqrt(box)", "box / 0", "cell.box / 2", "1 / 2 * box"})
    EXPECT_THAT(with(passed), ContainsRegex("value = 1.0 [^\n]*CHECK")) << passed;
}

TEST_F(Draft, MarksLocalMemoryUnlessEachWorkItemHasItsOwnElement) {
  const auto text = [&](const std::string& index) {
    return draft("sum.cl",
                 "kernel void sum(global const float* x, global float* y, local float* part, int n) {\n"
                 "  int lid = get_local_id(0), i = get_global_id(0);\n  part[lid] = i < n ? x[i] : 0;\n"
                 "  y[i] = part[" +
                     index + "];\n}\n")
        .text;
  };
  EXPECT_THAT(text("0"), Not(ContainsRegex("local_count = [^\n]*CHECK")));
  EXPECT_THAT(text("lid + 1"), ContainsRegex("local_count = [^\n]*CHECK")) << "a halo";
}

TEST_F(Draft, TakesTheLocalMemoryThatAnOpenClHostPasses) {
  std::ofstream(folder_ / "tile.cl") << R"(
kernel void tile(global const float* in, global float* out, int width, int height, local float* t) {
  int lx = get_local_id(0), ly = get_local_id(1), w = get_local_size(0) * 2 + 16;
  int x = get_global_id(0), y = get_global_id(1);
  t[ly * w + lx + 8] = in[y * width + x];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (x < width && y < height) out[y * width + x] = t[ly * w + lx];
})";
  const auto draft_for = [&](const std::string& host, const std::string& program) {
    std::ofstream(folder_ / host) << program;
    return draft_problem(folder_ / "tile.cl", "", folder_, folder_ / host);
  };
  const auto in_c = [](const std::string& bytes) {
    return "cl_kernel k = clCreateKernel(p, \"tile\", &e);\nconst size_t local[2] = {64, 2}, global[2] = {2048, "
           "1024};\n"
           "clSetKernelArg(k, 4, " +
           bytes + ", NULL);\nclEnqueueNDRangeKernel(q, k, 2, NULL, global, local, 0, 0, 0);";
  };
  const std::string in_cpp =
      "#define BX 64\n#define BY 2\ncl::Kernel k(p, \"tile\");\nk.setArg(4, BYTES);\n"
      "queue.enqueueNDRangeKernel(k, cl::NullRange, cl::NDRange(2048, 1024), cl::NDRange(BX, BY));";
  const std::regex bytes("BYTES");
  for (const auto& [host, program] :
       {std::pair<std::string, std::string>{"c.c", in_c("sizeof(cl_float) * local[1] * (local[0] * 2 + 16)")},
        {"c.c", "size_t bytes = local[1] * sizeof(float) * (local[0] * 2 + 16);\n" + in_c("bytes")},
        {"cpp.cpp", std::regex_replace(in_cpp, bytes, "cl::Local(sizeof(float) * BY * (BX * 2 + 16))")},
        {"cpp.cpp", std::regex_replace(in_cpp, bytes, "BY * (BX * 2 + 16) * sizeof(float), nullptr")},
        {"py.py",
         "wg = (64, 2)\n"
         "p.tile(q, (2048, 1024), wg, a, b, 2048, 1024, cl.LocalMemory(4 * wg[1] * (wg[0] * 2 + 16)))\n"}}) {
    const ProblemDraft draft = draft_for(host, program);
    EXPECT_THAT(draft.questions, Not(Contains(testing::StartsWith("t: ")))) << program;
    const Problem problem = parse_problem(draft.text, folder_ / "p.toml");
    const Constants block{{"BLOCK_SIZE_X", Value(32)}, {"BLOCK_SIZE_Y", Value(4)}};
    EXPECT_EQ(problem.kernel().arguments[4].count.evaluate(block).as_integer(), 4 * (32 * 2 + 16)) << draft.text;
  }
  for (const char* number : {"sizeof(float) * 2 * (64 * 2 + 16)", "4 * local[1] * (64 * 2 + 16)", "64 * 2 * 4"})
    EXPECT_THAT(draft_for("c.c", in_c(number)).questions, Contains(testing::StartsWith("t: "))) << number;
}

TEST_F(Draft, OfOneBlockForEachRowCountsBlocks) {
  const auto softmax = draft("softmax.cu", R"(
template <typename T, int VEC>
__global__ void softmax(const T* __restrict__ x, T* y, int cols) {
  int row = blockIdx.x;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) y[row * cols + c] = expf(x[row * cols + c]) * VEC;
}
)");
  const Problem problem = parse_problem(softmax.text, folder_ / "p.toml");
  EXPECT_THAT(counts(problem), ElementsAre("ROWS * COLS", "ROWS * COLS"));
  EXPECT_EQ(problem.kernel().launch.grid[0].text(), "ROWS");
  EXPECT_THAT(problem.kernel().function.text(), HasSubstr("softmax<float, {{VEC_VALUE}}>"));
  EXPECT_THAT(parameters(problem), Not(Contains("VEC"))) << "as a macro it would replace the template's own";
}

TEST_F(Draft, OfAFunctionOnTheHostTriesCompilerOptions) {
  const Problem scale = problem("scale.c", R"(
static void helper(int x) {}
void scale(double* y, const double* x, long n) { for (long i = 0; i < n; ++i) y[i] += 2 * x[i]; }
)");
  EXPECT_EQ(scale.kernel().arguments[0].access, Access::read_write);
  EXPECT_EQ(scale.kernel().arguments[2].type, ElementType::int64);
  EXPECT_THAT(parameters(scale), ElementsAre("OPTIMISE"));
}

TEST_F(Draft, TakesSizesFromACallOnTheHost) {
  for (const char* allocation :
       {"std::vector<float> in(WIDTH * 3, 1.0f), out(WIDTH * 3);\n",
        "float* in = (float*)malloc(sizeof(float) * WIDTH * 3); float *out = malloc(WIDTH * 12);\n"}) {
    const bool vectors = std::string(allocation).starts_with("std");
    const Problem gather =
        problem("gather.cpp", fmt::format(R"(
#define WIDTH 1024
void gather(const float* in, float* out, const int n);
void gather(const float* in, float* out, const int n) {{
  for (int i = 0; i < n; ++i) out[where(i)] = in[where(i)];
}}
int main() {{
  const int n = WIDTH;
  {}
  gather({}, n);
}})",
                                          allocation, vectors ? "in.data(), out.data()" : "in, out"));
    EXPECT_EQ(gather.constants.begin()->second.as_integer(), 1024) << allocation;
    for (const Argument& argument : gather.kernel().arguments)
      if (argument.kind == Argument::Kind::buffer) {
        EXPECT_EQ(argument.count.evaluate(gather.constants).as_integer(), 3 * 1024) << allocation << argument.name;
      }
  }
}

TEST_F(Draft, TakesTemplateArgumentsFromACallOnTheHost) {
  std::ofstream(folder_ / "lif.cpp") << R"(
template <int TILE, typename T>
void step(T* v, const T* in, std::size_t n, T tau) {
  for (std::size_t b = 0; b < n; b += TILE)
    for (std::size_t i = b; i < b + TILE && i < n; ++i) v[i] += (in[i] - v[i]) / tau;
}
)";
  const auto with_call = [&](const std::string& call) {
    std::ofstream(folder_ / "main.cpp") << "#include \"lif.cpp\"\nconst std::size_t N = 3e5;\nint main() {\n"
                                           "std::vector<double> v(N), in(N);\n"
                                        << call << "\n}\n";
    return draft_problem(folder_ / "lif.cpp", "", folder_, folder_ / "main.cpp");
  };
  const Problem lif =
      parse_problem(with_call("step<256, double>(v.data(), in.data(), N, 20.0);").text, folder_ / "p.toml");
  EXPECT_EQ(lif.parameters.front().default_value->as_integer(), 256);
  EXPECT_EQ(lif.constants.begin()->second.as_integer(), 300000);
  EXPECT_EQ(lif.kernel().arguments[0].type, ElementType::float64);
  EXPECT_EQ(lif.kernel().arguments[3].value.evaluate(Constants{}).as_real(), 20.0);
  EXPECT_THAT(with_call("step<256, double>(v.data(), 4);").questions, Contains(HasSubstr("main.cpp")));
  EXPECT_THAT(with_call("step<TILES, double>(v.data(), in.data(), N, 20.0);").questions,
              Contains(ContainsRegex("TILE_VALUE.*TILES of main.cpp")));
}

TEST_F(Draft, TakesMacrosThatTheHostFormatsIntoOptions) {
  std::ofstream(folder_ / "sum.cl") << R"(
__kernel void sum(__global const float* x, __global float* y, int n) {
  int i = get_global_id(0) * CHUNK;
  for (int k = 0; k < CHUNK; ++k) if (i + k < n) y[i + k] = x[i + k] * SCALE;
}
)";
  const std::string python = "N = 50_000\nCHUNK = int(48)\nOTHER = 3\n",
                    launch = "p.sum(q, (N,), (64,), x, y, np.int32(N))\n";
  for (const auto& [name, host] : std::vector<std::pair<std::string, std::string>>{
           {"h.py",
            python + "p = cl.Program(c, s).build(options=[\"-DSCALE=%d -DCHUNK=%d\" % (OTHER, CHUNK)])\n" + launch},
           {"h.py", python + "p = cl.Program(c, s).build(options=['-DCHUNK=%d' % CHUNK])\n" + launch},
           {"h.py", python + "p = cl.Program(c, s).build(options=[\"-DCHUNK=\" + str(CHUNK)])\n" + launch},
           {"h.py",
            python + "p = cl.Program(c, s).build(options=[\"-DSCALE={} -DCHUNK={}\".format(OTHER, CHUNK)])\n" + launch},
           {"h.c",
            "#define CHUNK 48\nint main() {\nchar o[99]; snprintf(o, sizeof(o), \"-DSCALE=%d \"\n"
            "\"-DCHUNK=%d\", 3, CHUNK);\n}\n"},
       }) {
    std::ofstream(folder_ / name) << host;
    const Problem sum =
        parse_problem(draft_problem(folder_ / "sum.cl", "", folder_, folder_ / name).text, folder_ / "p.toml");
    const auto chunk = std::ranges::find(sum.parameters, std::string("CHUNK"), &Parameter::name);
    ASSERT_NE(chunk, sum.parameters.end()) << host;
    ASSERT_TRUE(chunk->default_value) << host;
    EXPECT_EQ(chunk->default_value->as_integer(), 48) << host;
    if (name == "h.py") {
      EXPECT_EQ(sum.constants.begin()->second.as_integer(), 50000) << host;
    }
  }
  std::ofstream(folder_ / "h.py") << python
                                  << "p = cl.Program(c, s).build(options=[f\"-DCHUNK={size_of(x)}\"])\n" + launch;
  EXPECT_THAT(draft_problem(folder_ / "sum.cl", "", folder_, folder_ / "h.py").questions,
              Contains(ContainsRegex("CHUNK.*h.py")));
}

TEST_F(Draft, CountsArraysOfArraysByTheirDeclaration) {
  const Problem relax =
      problem("relax.c",
              "#include <complex.h>\n#define K 3\n"
              "void relax(int n, int m, double complex u[restrict n][m], const float rhs[n][m], const float w[][K]) {\n"
              "  for (int i = 1; i < n - 1; i++) for (int j = 1; j < m - 1; j++) u[i][j] += w[i][0] * rhs[i][j];\n}\n");
  const auto& arguments = relax.kernel().arguments;
  EXPECT_EQ(arguments[2].type, ElementType::float64);
  for (const auto& [argument, elements] : {std::pair(2, 2 * 512 * 512), std::pair(3, 512 * 512), std::pair(4, 512 * 3)})
    EXPECT_EQ(arguments[static_cast<std::size_t>(argument)].count.evaluate(relax.constants).as_integer(), elements);
}

TEST_F(Draft, DeclaresBuffersOfStructuresAsBytes) {
  std::ofstream(folder_ / "pulse.h") << "struct Pulse { float x, y[2]; double t; char kind; };\n";  // 32 bytes
  const std::string source = R"(
#include "pulse.h"
typedef struct { float2 a; float b; } Pair;  // 16 bytes
__global__ void f(const Pulse* pulses, Pair* pairs, int n) {
  extern __shared__ Pulse stage[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) { stage[threadIdx.x] = pulses[i]; pairs[i].b = stage[threadIdx.x].x; }
})";
  const Problem f = problem("f.cu", source + "int main() { f<<<100, 64, 64 * sizeof(Pulse)>>>(p, q, 6400); }");
  EXPECT_THAT(counts(f), ElementsAre("32 * N_SIZE", "16 * N_SIZE"));
  EXPECT_EQ(f.kernel().arguments[0].type, ElementType::uint8);
  EXPECT_THAT(problem("g.cu", source).kernel().launch.shared_memory_bytes.text(), HasSubstr("32 * "));
  for (const char* space : {"global", "__global", "constant"}) {
    const Problem hit = problem(
        "hit.cl", fmt::format("typedef struct {{ float x, y[2], r2; }} Sphere;\nkernel void hit({} const Sphere* s, "
                              "global float* t, int n) {{ int i = get_global_id(0); if (i < n) t[i] = s[i].x; }}",
                              space));
    EXPECT_THAT(counts(hit), ElementsAre("4 * N_SIZE", "N_SIZE")) << space;
    EXPECT_EQ(hit.kernel().arguments[0].type, ElementType::float32) << "random ones are meaningful, " << space;
  }
  EXPECT_THAT(draft("n.cu",
                    "struct A { double a; char b; }; struct B { char c; A a; };\n"
                    "__global__ void n(B* u, int n) { u[threadIdx.x].c = n; }")
                  .questions,
              Contains(HasSubstr("\"B\" is not known")));
  EXPECT_THAT(draft("h.cu", "__global__ void h(Unknown* u, int n) { u[threadIdx.x].x = n; }").questions,
              Contains(HasSubstr("uint8")));
}

TEST_F(Draft, DescribesAStructureByValueByItsMembers) {
  const std::string kernel =
      "struct Grid { float h; int width, height; };\n__global__ void blur(Grid g, const float* a, float* b) {\n"
      "  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n"
      "  if (x >= g.width || y >= g.height) return;\n  b[y * g.width + x] = a[y * g.width + x] * g.h;\n}\n";
  for (const char* grid : {"Grid g{0.5f, width, height};", "Grid g = {.h = 0.5f, .width = width, .height = height};",
                           "Grid g; g.h = 0.5f; g.width = width; g.height = height;"}) {
    const Problem blur = problem(
        "blur.cu", kernel + "void run(float* a, float* b) {\n  const int width = 1920, height = 1080;\n  " + grid +
                       "\n  blur<<<dim3((width + 31) / 32, (height + 7) / 8), dim3(32, 8)>>>(g, a, b);\n}\n");
    const Argument& argument = blur.kernel().arguments.front();
    EXPECT_EQ(argument.type_name, "Grid");
    ASSERT_EQ(argument.fields.size(), 3u);
    const Constants& constants = blur.constants;
    EXPECT_EQ(argument.fields[0].value.evaluate(constants).as_real(), 0.5) << grid;
    EXPECT_EQ(argument.fields[1].value.evaluate(constants).as_integer(), 1920) << grid;
    ASSERT_EQ(blur.kernel().launch.global.size(), 2u) << grid;
    EXPECT_EQ(blur.kernel().launch.global[1].evaluate(constants).as_integer(), 1080) << grid;
    EXPECT_EQ(blur.kernel().arguments[1].count.evaluate(constants).as_integer(), 1920 * 1080);
  }
}

TEST_F(Draft, NamesWhatCannotBeTunedYet) {
  const auto questions = draft("fixed.cu", R"(
#define RADIUS 3
__global__ void f(float* x, int n) { int i = blockIdx.x * 32 + threadIdx.x; if (i < n) x[i] *= RADIUS; }
int main() { return 0; }
)")
                             .questions;
  EXPECT_THAT(questions, Contains(HasSubstr("RADIUS")));
  EXPECT_THAT(questions, Not(Contains(HasSubstr("main()")))) << "compilation leaves it out";
}

std::vector<std::int64_t> values(const Problem& problem, const std::string& name) {
  std::vector<std::int64_t> list;
  for (const Parameter& parameter : problem.parameters)
    if (parameter.name == name)
      for (const Value& value : parameter.values) list.push_back(value.as_integer());
  return list;
}

// What -D defines is what its author tunes.
const char* const kRows = R"(
#define EPSILON 1e-6f
enum { ALIGN = 4 };
__global__ void rows(const float* __restrict__ x, float* y, const int cols) {
  __shared__ float part[BLOCK_SIZE];
  const float* in = x + (size_t)blockIdx.x * cols;
  float* out = y + (size_t)blockIdx.x * cols;
  int LAST = cols - 1, tid = threadIdx.x;
  float sum = EPSILON;
  #pragma unroll UNROLL
  for (int c = tid; c < cols; c += BLOCK_SIZE) sum += in[c] * ALIGN + FLT_EPSILON;
  part[tid] = sum;
  __syncthreads();
#if EXACT
  sum = part[0] + LAST;
#endif
  for (int c = tid; c < cols; c += BLOCK_SIZE) out[c] = in[c] / sum + EXTRA;
}
)";

TEST_F(Draft, ProposesWhatTheSourceLeavesOpen) {
  const Problem open = problem("rows.cu", kRows);
  EXPECT_THAT(parameters(open), ElementsAre("BLOCK_SIZE", "UNROLL", "EXACT", "EXTRA"));
  EXPECT_THAT(values(open, "UNROLL"), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(values(open, "EXACT"), ElementsAre(0, 1));
  for (const std::int64_t size : values(open, "BLOCK_SIZE")) EXPECT_EQ(size & (size - 1), 0) << size;
}

TEST_F(Draft, SeesRowsAndOutputsThroughPointers) {
  const Problem rows = problem("rows.cu", kRows);
  EXPECT_THAT(counts(rows), ElementsAre("ROWS * COLS", "ROWS * COLS"));
  EXPECT_EQ(rows.kernel().arguments[1].access, Access::write);
  EXPECT_EQ(rows.kernel().launch.grid[0].text(), "ROWS");
  EXPECT_EQ(rows.kernel().launch.block[0].text(), "BLOCK_SIZE");
}

TEST_F(Draft, SeesWritesToMembersAndThroughReferences) {
  const auto drafted = [&](const std::string& body) {
    return draft("k.cu",
                 "struct P { float x, y; int n[2]; };\n__global__ void k(P* p, float4* v, const P* c, int n) {"
                 "\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i >= n) return;\n" +
                     body + "\n}\n");
  };
  for (const char* written : {"p[i].x += c[i].x;", "p[i].n[1] = 1; p[i].x += 1;", "P& q = p[i]; q.x += c[i].x;",
                              "auto &q = p[i]; q.n[0]++;", "float& x = p[i].x; x -= 1;", "P* q = &p[i]; q->x += 1;",
                              "P* q = p + i; (*q).x += 1;", "++p[i].n[0];", "p[i].n[0] <<= 1;"}) {
    const ProblemDraft draft = drafted(written);
    const Problem k = parse_problem(draft.text, folder_ / "p.toml");
    EXPECT_EQ(k.kernel().arguments[0].access, Access::read_write) << written;
    EXPECT_THAT(draft.questions, Not(Contains(ContainsRegex("^p: .*number of elements")))) << written;
    EXPECT_EQ(counts(k)[0], "16 * N_SIZE") << written;
  }
  for (const char* written : {"v[i].x = p[i].x;", "float4& w = v[i]; w.x = p[i].y; w.y = 1;", "v[i] = {0, 0, 0, 0};"}) {
    const Problem k = parse_problem(drafted(written).text, folder_ / "p.toml");
    EXPECT_EQ(k.kernel().arguments[1].access, Access::write) << written;
  }
  for (const char* read : {"const P& q = p[i]; v[i].x = q.x;", "auto& q = p[i]; v[i].x = q.x == 1 ? q.x : q.y;",
                           "P q = p[i]; q.x += 1; v[i].x = q.x;", "if (i < n && p[i].x <= 1) v[i].x = 1;"})
    EXPECT_THAT(drafted(read).text, Not(ContainsRegex("\"p\"[^\n]*access"))) << read;
  EXPECT_EQ(
      problem("v.cl", "kernel void v(global float4* x) { x[get_global_id(0)].xyz += 1; }").kernel().arguments[0].access,
      Access::read_write);
}

TEST_F(Draft, AnOutputWithoutAnIndexHasOneElement) {
  const auto drafted = [&](const std::string& store) {
    return draft("sum.cpp",
                 "void sum(const float* x, int n, double* out) {\n  double s = 0;\n  for (int i = 0; i < n; ++i) s += "
                 "x[i];\n  " +
                     store + "\n}\n");
  };
  for (const char* store : {"*out = s;", "if (n > 0) *out = s; else *out = 0;", "*out += s;"}) {
    const ProblemDraft draft = drafted(store);
    const Problem sum = parse_problem(draft.text, folder_ / "p.toml");
    EXPECT_THAT(counts(sum), ElementsAre("N_SIZE", "1")) << store;
    EXPECT_NE(sum.kernel().arguments[2].access, Access::read) << store;
    EXPECT_THAT(draft.questions, Not(Contains(HasSubstr("number of elements")))) << store;
  }
  for (const char* store : {"*out++ = s;", "*out = s; out += 1;"})  // it does not stay at the first
    EXPECT_THAT(drafted(store).questions, Contains(ContainsRegex("^out: .*number of elements"))) << store;
}

TEST_F(Draft, AsksForTheOutputsWhereNothingIsWritten) {
  const auto questions = [&](const std::string& statement) {
    return draft("k.cu", "__global__ void k(float* x, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  " +
                             statement + "\n}\n")
        .questions;
  };
  EXPECT_THAT(questions("if (i < n && x[i] < 0) __trap();"), Contains(HasSubstr("access = ")));
  EXPECT_THAT(questions("if (i < n) x[i] = 0;"), Not(Contains(HasSubstr("access = "))));
}

TEST_F(Draft, MarksTheLaunchUnlessAPositionIsTheNumberOfTheThread) {
  const auto asks = [&](const std::string& row) {
    const std::string source =
        "__kernel void sums(__global const float* x, __global float* y, int rows) {\n  int row = " + row +
        ";\n  if (row < rows) y[row] = x[row];\n}\n";
    return draft("k.cl", source).questions;
  };
  for (const char* row :
       {"get_global_id(0)", "(int) get_global_id(0)", "get_group_id(0) * get_local_size(0) + get_local_id(0)"})
    EXPECT_THAT(asks(row), Not(Contains(HasSubstr("launch")))) << row;
  for (const char* row :
       {"get_global_id(0) / 16", "get_group_id(0) * 4 + get_local_id(0) / 32", "2 * get_global_id(0)"})
    EXPECT_THAT(asks(row), Contains(HasSubstr("launch"))) << row;
}

TEST_F(Draft, TakesTheGridFromTheLaunchWhereTheBodyDoesNotShowIt) {
  const auto launched = [&](const std::string& host) {
    return draft("rows.cu", R"(
__global__ void rows(const float* x, float* y, int n, int m) {
  int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= n) return;
  for (int c = threadIdx.x; c < m; c += blockDim.x) y[row * m + c] = x[row * m + c];
}
#ifndef __CUDACC_RTC__
void run(float* x, float* y, int rows_here, int cols) { )" +
                                host + " }\n#endif\n")
        .text;
  };
  for (const char* host :
       {"rows<<<(rows_here + 3) / 4, dim3(64, 4)>>>(x, y, rows_here, cols);",
        "dim3 block(64, 4); rows<<<dim3((rows_here + block.y - 1) / block.y), block>>>(x, y, rows_here, cols);",
        "dim3 b(64, 4); int g = (rows_here + 3) / 4; rows<<<g, b>>>(x, y, rows_here, cols);"}) {
    const std::string text = launched(host);
    const Problem problem = parse_problem(text, folder_ / "p.toml");
    ASSERT_EQ(problem.kernel().launch.grid.size(), 1u) << text;
    const Expression& grid = problem.kernel().launch.grid[0];
    const Constants sizes{{"N_SIZE", Value(10)}, {"BLOCK_SIZE_Y", Value(4)}};
    EXPECT_EQ(grid.evaluate(sizes).as_integer(), 3) << text;
    EXPECT_EQ(problem.kernel().launch.block.size(), 2u);
    EXPECT_THAT(text, Not(ContainsRegex("grid = [^\n]*CHECK")));
    for (const Parameter& parameter : problem.parameters)
      EXPECT_EQ(parameter.default_value.value(), Value(parameter.name == "BLOCK_SIZE_Y" ? 4 : 64)) << text;
  }
  const Problem exact =
      parse_problem(launched("rows<<<rows_here / 4, dim3(64, 4)>>>(x, y, rows_here, cols);"), folder_ / "p.toml");
  EXPECT_GE(exact.restrictions.size(), 2u) << "the block divides the rows";
  for (const char* host : {"rows<<<(rows_here + 255) / 256, dim3(64, 4)>>>(x, y, rows_here, cols);",  // not the block's
                           "rows<<<ceil(rows_here / 4), dim3(64, 4)>>>(x, y, rows_here, cols);",      // a function
                           "rows<<<25, dim3(64, 4)>>>(x, y, rows_here, cols);"})  // covers less with another block
    EXPECT_THAT(launched(host), HasSubstr("# CHECK: what the launch covers")) << host;
}

TEST_F(Draft, TakesTheGridHoweverTheHostDivides) {
  const auto grid = [&](const std::string& host) {
    const std::string text =
        draft("k.cu",
              "#ifndef ITEMS\n#define ITEMS 4\n#endif\n"
              "template <int THREADS> __global__ void k(const float* x, float* y, unsigned n) {\n"
              "  const unsigned base = blockIdx.x * THREADS * ITEMS + threadIdx.x;\n"
              "  for (int it = 0; it < ITEMS; ++it) {\n    const unsigned i = base + unsigned(it) * THREADS;\n"
              "    if (i >= n) break;\n    y[i] = x[i];\n  }\n}\n"
              "void run(int argc, const float* x, float* y) {\n  const unsigned n = argc > 1 ? atoi(\"9\") : 1 << 20;\n"
              "  constexpr int threads = 256;\n  constexpr int tile = threads * ITEMS;\n" +
                  host + "\n  k<threads><<<blocks, threads>>>(x, y, n);\n}\n")
            .text;
    const Problem problem = parse_problem(text, folder_ / "p.toml");
    const Launch& launch = problem.kernel().launch;
    const Constants sizes{{"N_SIZE", Value(10000)}, {"THREADS_VALUE", Value(64)}, {"ITEMS", Value(8)}};
    EXPECT_EQ(problem.constants.at("N_SIZE"), Value(1 << 20)) << text;
    return launch.grid.empty() ? 0 : launch.grid[0].evaluate(sizes).as_integer();
  };
  for (const char* host :
       {"unsigned blocks = unsigned((n + threads * ITEMS - 1) / (threads * ITEMS));",
        "auto blocks = static_cast<unsigned>((n + threads * ITEMS - 1) / (threads * ITEMS));",
        "int blocks = div_up(n, threads * ITEMS);", "size_t blocks = (n + tile - 1) / tile;",
        "size_t blocks = (n - 1) / tile + 1;", "int blocks = std::ceil(double(n) / (threads * ITEMS));",
        "auto blocks = std::min<size_t>((n + tile - 1) / tile, 65535);"})
    EXPECT_EQ(grid(host), 20) << host;
}

// The divisor is the block's size with one element per thread only, which is the default here.
TEST_F(Draft, TakesTheWholeDivisorOfTheLaunch) {
  const auto drafted = [&](const std::string& block, const std::string& launch) {
    return draft("k.cu",
                 "#ifndef BLOCK\n#define BLOCK 256\n#endif\n#ifndef PER\n#define PER 1\n#endif\n"
                 "__global__ void k(int n, const float* x, float* y) {\n  int i = blockIdx.x * " +
                     block + " * PER + threadIdx.x;\n  for (int k = 0; k < PER; ++k, i += " + block +
                     ")\n    if (i < n) y[i] = x[i];\n}\nint main() {\n  int n = 1000000;\n  " + launch + "\n}\n");
  };
  const auto blocks = [&](const std::string& block, const std::string& host) {
    const std::string text = drafted(block, host).text;
    EXPECT_THAT(text, Not(ContainsRegex("(grid|global) = [^\n]*CHECK"))) << text;
    const Problem problem = parse_problem(text, folder_ / "p.toml");
    EXPECT_EQ(problem.restrictions.size(), 1u) << text;
    const Launch& launch = problem.kernel().launch;
    const Constants values{{"N_SIZE", Value(1000000)}, {"BLOCK", Value(64)}, {"PER", Value(4)}};
    return launch.grid.empty() ? (launch.global.at(0).evaluate(values).as_integer() + 63) / 64
                               : launch.grid[0].evaluate(values).as_integer();
  };
  for (const char* host : {"k<<<(n + BLOCK * PER - 1) / (BLOCK * PER), BLOCK>>>(n, x, y);",
                           "k<<<(n - 1) / (PER * BLOCK) + 1, BLOCK>>>(n, x, y);",
                           "const int per = BLOCK * PER, blocks = (n + per - 1) / per; k<<<blocks, BLOCK>>>(n, x, y);"})
    EXPECT_EQ(blocks("BLOCK", host), 3907) << host;
  EXPECT_EQ(blocks("blockDim.x", "k<<<(n + 256 * PER - 1) / (256 * PER), 256>>>(n, x, y);"), 3907);
}

// With the default of one element per thread, all these launches start as many blocks as the body needs.
TEST_F(Draft, ComparesTheLaunchWithOtherValuesOfItsParameters) {
  const auto launch = [&](const std::string& position, const std::string& grid) {
    const std::string text =
        draft("k.cu",
              "#ifndef BLOCK\n#define BLOCK 256\n#endif\n#ifndef PER\n#define PER 1\n#endif\n"
              "__global__ void k(int n, float* y) {\n  const int i = " +
                  position +
                  ";\n  for (int k = 0; k < PER; ++k)\n    if (i + k < n) y[i + k] = k;\n}\nint main() {\n"
                  "  int n = 1000000;\n  k<<<" +
                  grid + ", BLOCK>>>(n, y);\n}\n")
            .text;
    return text.substr(text.find("[kernel.launch]"));
  };
  const std::string thread = "blockIdx.x * BLOCK + threadIdx.x", whole = "(n + BLOCK * PER - 1) / (BLOCK * PER)";
  EXPECT_THAT(launch(thread, "(n + BLOCK - 1) / BLOCK"), HasSubstr("global = [\"N_SIZE\"]"));
  EXPECT_THAT(launch(thread, whole), HasSubstr("// (BLOCK * PER)"));
  EXPECT_THAT(launch("(" + thread + ") * PER", whole), Not(HasSubstr("CHECK")));
  EXPECT_THAT(launch("(" + thread + ") * PER", "(n * PER + BLOCK - 1) / BLOCK"),
              ContainsRegex("(grid|global) = [^\n]*CHECK[^\n]*PER = 2[^\n]*1954[^\n]*7813"));
}

TEST_F(Draft, WritesRestrictionsThatTheDefaultsSatisfy) {
  const auto drafted = [&](int per) {
    return draft("k.cl",
                 fmt::format("#ifndef ROWS\n#define ROWS {}\n#endif\n"
                             "kernel void k(int n, global const float* a, global float* y) {{\n"
                             "  const int r0 = get_global_id(0) * ROWS;\n  float s[ROWS] = {{0}};\n"
                             "  for (int k = 0; k < n; ++k)\n    for (int r = 0; r < ROWS; ++r) s[r] += a[(r0 + "
                             "r) * n + k];\n  for (int r = 0; r < ROWS; ++r) y[r0 + r] = s[r];\n}}\n",
                             per));
  };
  const Problem rows = parse_problem(drafted(4).text, folder_ / "p.toml");
  Constants defaults = rows.constants;
  for (const Parameter& parameter : rows.parameters)
    defaults.insert_or_assign(parameter.name, *parameter.default_value);
  EXPECT_TRUE(std::ranges::any_of(rows.restrictions, [&](const Restriction& one) {
    return one.expression.text().find("ROWS") != std::string::npos && one.expression.evaluate(defaults).truthy();
  }));
  const ProblemDraft none = drafted(7);  // no block has a whole number of rows
  EXPECT_THAT(none.text, Not(ContainsRegex("restrictions = [^\n]*ROWS")));
  EXPECT_THAT(none.questions, Contains(AllOf(HasSubstr("restrictions"), HasSubstr("ROWS"))));
}

TEST_F(Draft, AQuotientOfAPositionDoesNotBoundTheThreads) {
  const auto launch = [&](const std::string& body, const std::string& host) {
    const std::string text =
        draft("rows.cu", "__global__ void rows(const float* x, float* y, int n, int m) {\n  " + body +
                             "\n}\nvoid run(float* x, float* y) {\n  int n = 4096, m = 64;\n" + "  rows<<<" + host +
                             ", 64>>>(x, y, n, m);\n}\n")
            .text;
    return text.substr(text.find("[kernel.launch]"));
  };
  const std::string quotient =
      "int t = blockIdx.x * blockDim.x + threadIdx.x; int row = t / 4; if (row < n) y[row * 4 + t % 4] = x[row];";
  const std::string product = "int t = blockIdx.x * blockDim.x + threadIdx.x; if (t >= n * m) return; y[t] = x[t];";
  EXPECT_THAT(launch(quotient, "n * 4 / 64"), HasSubstr("grid = [\"(N_SIZE * 4) // BLOCK_SIZE_X\"]"));
  EXPECT_THAT(launch(product, "(n * m + 63) / 64"), HasSubstr("(N_SIZE * M_SIZE + BLOCK_SIZE_X - 1) // BLOCK_SIZE_X"));
  EXPECT_THAT(launch(quotient, "256"), ContainsRegex("(grid|global) = [^\n]*CHECK"));
  EXPECT_THAT(launch(product, "4096"), ContainsRegex("(grid|global) = [^\n]*CHECK"));
}

TEST_F(Draft, MarksALaunchOfAnotherNumberOfThreads) {
  const auto launch = [&](const char* grid) {
    const std::string text =
        draft("k.cu",
              "__global__ void k(float* x, int n) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
              "  if (i < n) x[i] = 1;\n}\nvoid run(float* x) {\n  int n = 1000;\n  k<<<" +
                  std::string(grid) + ", 64>>>(x, n);\n}\n")
            .text;
    return text.substr(text.find("[kernel.launch]"));
  };
  for (const char* same : {"(n + 63) / 64", "n / 64", "16"}) EXPECT_THAT(launch(same), Not(HasSubstr("CHECK"))) << same;
  EXPECT_THAT(launch("4"), ContainsRegex("global = [^\n]*CHECK[^\n]*1000[^\n]*256"));
}

TEST_F(Draft, DoesNotMarkALaunchThatTheSourceAgreesWith) {
  const auto launch = [&](const char* grid) {
    const std::string text =
        draft("filter.cu",
              "#ifndef TX\n#define TX 16\n#endif\n#define R 1\n"
              "__global__ void filter(const float* in, float* out, int w) {\n  __shared__ float tile[TX + 2 * R];\n"
              "  int x0 = blockIdx.x * TX - R;\n"
              "  for (int i = threadIdx.x; i < TX + 2 * R; i += TX) tile[i] = in[min(max(x0 + i, 0), w - 1)];\n"
              "  __syncthreads();\n  int x = x0 + R + threadIdx.x;\n"
              "  if (x < w) out[x] = tile[threadIdx.x] + tile[threadIdx.x + 2 * R];\n}\n"
              "void run(float* in, float* out) {\n  int w = 4000;\n  filter<<<" +
                  std::string(grid) + ", TX>>>(in, out, w);\n}\n")
            .text;
    return text.substr(text.find("[kernel.launch]"));
  };
  EXPECT_THAT(launch("(w + TX - 1) / TX"), Not(HasSubstr("CHECK")));
  EXPECT_THAT(launch("(w + TX - 3) / (TX - 2)"), ContainsRegex("(grid|global) = [^\n]*CHECK"));
}

TEST_F(Draft, AsksWhatItMarksAndNothingElse) {
  for (const char* source : {kRows,
                             "#include <cstdio>\ntemplate <typename T, int V, bool B> __global__ void f(T* x, int n, "
                             "float a, int mode) {\n#ifdef FAST\n  if (mode) fill(x, n);\n#endif\n"
                             "  extern __shared__ T s[];\n  x[blockIdx.x] += V * s[threadIdx.x];\n}\n"}) {
    const ProblemDraft draft = this->draft("k.cu", source);
    std::size_t marks = 0;
    for (std::size_t at = 0; (at = draft.text.find("# CHECK:", at)) != std::string::npos; ++at) ++marks;
    EXPECT_EQ(marks, draft.questions.size()) << draft.text;
    EXPECT_GT(marks, 3u);
  }
}

TEST_F(Draft, OfATiledTransposeHasFewerThreadsThanTheTile) {
  const Problem transpose = problem("transpose.cu", R"(
__global__ void transpose(float *odata, const float *idata, int width, int height) {
  __shared__ float tile[TILE_DIM][TILE_DIM + 1];
  int x = blockIdx.x * TILE_DIM + threadIdx.x, y = blockIdx.y * TILE_DIM + threadIdx.y;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS) tile[threadIdx.y + j][threadIdx.x] = idata[(y + j) * width + x];
  __syncthreads();
  x = blockIdx.y * TILE_DIM + threadIdx.x;
  for (int j = 0; j < TILE_DIM; j += BLOCK_ROWS)
    if (x < height && y + j < width) odata[(y + j) * height + x] = tile[threadIdx.x][threadIdx.y + j];
}
)");
  EXPECT_EQ(transpose.kernel().launch.block[0].text(), "TILE_DIM");
  EXPECT_EQ(transpose.kernel().launch.block[1].text(), "BLOCK_ROWS");
  EXPECT_THAT(transpose.kernel().launch.grid[1].text(), HasSubstr("TILE_DIM"));
}

TEST_F(Draft, OfPartialResultsComparesTheirSum) {
  const Problem sum = problem("sum.cl", R"(
kernel void sum(global const float* in, global float* partial, local float* tmp, const uint n) {
  uint lid = get_local_id(0);
  float acc = 0;
  for (uint i = get_global_id(0); i < n; i += get_global_size(0)) acc += in[i];
  tmp[lid] = acc;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lid == 0) partial[get_group_id(0)] = tmp[0];
}
)");
  EXPECT_TRUE(sum.verification.compare.contains("partial"));
}

TEST_F(Draft, ComparesPartialResultsAsTheKernelCombinesThem) {
  const auto compared = [&](const std::string& own, const std::string& shared) {
    return problem("r.cu",
                   "__global__ void r(int n, const float* x, float* partial) {\n  extern __shared__ float s[];\n"
                   "  float m = 1e30f;\n  for (int c = blockIdx.x * blockDim.x + threadIdx.x; c < n; c += "
                   "gridDim.x * blockDim.x) " +
                       own +
                       ";\n  s[threadIdx.x] = m;\n  __syncthreads();\n"
                       "  for (int k = blockDim.x / 2; k > 0; k /= 2) {\n    if (threadIdx.x < k) " +
                       shared +
                       ";\n    __syncthreads();\n  }\n"
                       "  if (threadIdx.x == 0) partial[blockIdx.x] = s[0];\n}\n")
        .verification.compare.at("partial");
  };
  const std::string least = "s[threadIdx.x] = fminf(s[threadIdx.x], s[threadIdx.x + k])";
  EXPECT_EQ(compared("m = fminf(m, 0.4f * x[c])", least), Compare::minimum);
  EXPECT_EQ(compared("m = max(m, x[c])", "s[threadIdx.x] = max(s[threadIdx.x], s[threadIdx.x + k])"), Compare::maximum);
  EXPECT_EQ(compared("m += x[c]", least), Compare::sum);
  EXPECT_EQ(compared("m = m + fminf(x[c], 1)", "s[threadIdx.x] += s[threadIdx.x + k]"), Compare::sum);
}

// Any number of blocks covers the same, so that of the application is the best guess.
TEST_F(Draft, KeepsTheStatedNumberOfBlocksOfALoopOverTheGrid) {
  const auto drafted = [&](const std::string& host) {
    return draft(
               "r.cu",
               "__global__ void r(int n, const float* x, float* partial) {\n  float s = 0;\n"
               "  for (int c = blockIdx.x * blockDim.x + threadIdx.x; c < n; c += gridDim.x * blockDim.x) s += x[c];\n"
               "  if (threadIdx.x == 0) partial[blockIdx.x] = s;\n}\nvoid run(int n) {\n  " +
                   host + ", 256>>>(n, x, partial);\n}\n")
        .text;
  };
  for (const char* host : {"r<<<320", "const int blocks = 320;\n  r<<<blocks"}) {
    const std::string text = drafted(host);
    EXPECT_THAT(text, HasSubstr("grid = [\"320\"]")) << host;
    EXPECT_THAT(text, Not(ContainsRegex("grid = [^\n]*CHECK"))) << host;
    const Problem problem = parse_problem(text, folder_ / "p.toml");
    EXPECT_THAT(counts(problem), ElementsAre("N_SIZE", "320")) << host;
    EXPECT_TRUE(problem.verification.compare.contains("partial")) << host;
  }
  EXPECT_THAT(drafted("r<<<(n + 255) / 256"), HasSubstr("global = [\"N_SIZE\"]"));
}

// A sum would hide outputs that have changed places, and wrong ones whose differences cancel.
TEST_F(Draft, ComparesOutputsThatEachBlockOwnsByElement) {
  const auto compared = [&](const std::string& own, const std::string& block) {
    return problem("price.cl", "kernel void price(global const float4* options, global float* value, int n) {\n  " +
                                   own + "\n  float sum = 0;\n  for (int i = get_global_id(0); i < n; i += " + block +
                                   ") sum += options[i].y;\n  if (get_local_id(0) == 0) value[get_group_id(0)] = sum;"
                                   "\n}\n")
        .verification.compare;
  };
  EXPECT_TRUE(compared("", "get_global_size(0)").contains("value"));
  EXPECT_TRUE(compared("const float4 o = options[get_group_id(0)];", "get_global_size(0)").empty());
  // a work-group for each option: their number is a constant
  const Problem options = problem(
      "e.cl",
      "kernel void price(global const float4* options, global float* value, local float* v) {\n"
      "  const float4 o = options[get_group_id(0)];\n  for (int i = get_local_id(0); i < 256; i += WG) v[i] = o.x * i;"
      "\n  barrier(CLK_LOCAL_MEM_FENCE);\n  if (get_local_id(0) == 0) value[get_group_id(0)] = v[7] + v[9];\n}\n");
  EXPECT_TRUE(options.verification.compare.empty());
  ASSERT_EQ(options.kernel().launch.grid.size(), 1u);
  EXPECT_THAT(counts(options),
              ElementsAre("4 * " + options.kernel().launch.grid[0].text(), options.kernel().launch.grid[0].text()));
}

TEST_F(Draft, OfAnOpenMpFunctionCompilesWithOpenMp) {
  const Problem transpose = problem("t.cpp", R"(
#include <algorithm>
extern "C" void t(float* out, const float* in, int n) {
#pragma omp parallel for schedule(SCHEDULE) num_threads(THREADS)
  for (int ii = 0; ii < n; ii += TILE)
    for (int i = ii; i < std::min(n, ii + TILE); ++i)
      for (int j = 0; j < n; ++j) out[j * n + i] = in[i * n + j];
}
)");
  EXPECT_THAT(parameters(transpose), ElementsAre("SCHEDULE", "THREADS", "TILE", "OPTIMISE"));
  EXPECT_THAT(counts(transpose), ElementsAre("N_SIZE * N_SIZE", "N_SIZE * N_SIZE"));
  EXPECT_THAT(draft("t.cpp", "void f(int* x) {\n#pragma omp parallel\n x[0] = 1; }").text, HasSubstr("-fopenmp"));
  std::ofstream(folder_ / "work.hpp") << "inline void work(int* x) {\n#pragma omp parallel\n  x[0] = 1;\n}\n";
  EXPECT_THAT(draft("w.cpp", "#include \"work.hpp\"\nvoid f(int* x) { work(x); }").text, HasSubstr("-fopenmp"));
}

TEST_F(Draft, TakesTheOneFunctionWithAResultWhereNoneReturnsVoid) {
  const char* dot = "double dot(const double* a, const double* b, int n) { return n > 0 ? a[0] * b[0] : 0; }\n";
  EXPECT_EQ(draft("dot.cpp", dot).kernel, "dot");
  EXPECT_THAT(draft("dot.cpp", dot).questions, Contains(HasSubstr("verified")));
  EXPECT_EQ(draft("dot.cpp", std::string(dot) + "void scale(double* a, int n) { a[n - 1] *= 2; }\n").kernel, "scale");
}

TEST_F(Draft, OffersNoFunctionThatOnlyItsOwnFileCalls) {
  const std::string body = "(float* y, int n) { for (int i = 0; i < n; ++i) y[i] = 1; }\n";
  const std::string source = "namespace outer {\nnamespace {\nvoid inner" + body + "}  // namespace\nvoid work" + body +
                             "}\nstatic void hidden" + body;
  EXPECT_EQ(draft("s.cpp", source).kernel, "work");
  EXPECT_EQ(draft("s.cpp", source, "inner").kernel, "inner") << "it is compiled with its file, so it can be tuned";
  EXPECT_EQ(draft("s.cpp", source, "hidden").kernel, "hidden");
  const std::string error = error_of([&] { (void)draft("two.cpp", source + "void more" + body); });
  EXPECT_THAT(error, AllOf(HasSubstr("work"), HasSubstr("more"), Not(HasSubstr("inner")), Not(HasSubstr("hidden"))));
  EXPECT_THAT(error, HasSubstr("two.cpp --kernel work")) << "the whole command";
}

TEST_F(Draft, RefusesAFunctionThatOnlyKernelsCall) {
  const char* source =
      "__device__ void store(float* y, int i) { y[i] = 1; }\n"
      "__global__ void work(float* y, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) store(y, i); }\n";
  EXPECT_EQ(draft("k.cu", source).kernel, "work");
  EXPECT_THAT(error_of([&] { (void)draft("k.cu", source, "store"); }),
              AllOf(HasSubstr("__device__"), HasSubstr("__global__")));
}

TEST_F(Draft, OfFixedTilesIsAProblem) {
  const Problem box = problem("box.cu", R"(
#define TILE_W 16
#define TILE_H 16
__global__ void box(const float* in, float* out, int w, int h) {
  int x = blockIdx.x * TILE_W + threadIdx.x, y = blockIdx.y * TILE_H + threadIdx.y;
  if (x < w && y < h) out[y * w + x] = in[y * w + x];
}
)");
  EXPECT_THAT(values(box, "BLOCK_SIZE_X"), ElementsAre(256)) << "all values are fixed in the source";
  EXPECT_EQ(box.kernel().launch.block[1].text(), "16");
}

std::int64_t constant(const Problem& problem, const std::string& name) {
  for (const auto& [key, value] : problem.constants)
    if (key == name) return value.as_integer();
  return -1;
}

std::int64_t default_of(const Problem& problem, const std::string& name) {
  for (const Parameter& parameter : problem.parameters)
    if (parameter.name == name && parameter.default_value) return parameter.default_value->as_integer();
  return -1;
}

// One step of a sort: the host enqueues it in loops, each time with other values.
TEST_F(Draft, MarksWhatChangesFromLaunchToLaunch) {
  std::ofstream(folder_ / "step.cl") << R"(
#ifndef PAIRS
#define PAIRS 1
#endif
kernel void step(global uint* keys, uint n, uint stage, uint pass) {
  for (uint p = 0; p < PAIRS; ++p) {
    const uint t = get_global_id(0) * PAIRS + p;
    if (t >= n / 2) return;
    if ((t >> stage) & 1) keys[t + (1u << (stage - pass))] = t;
  }
})";
  std::ofstream(folder_ / "main.c") << R"(
int main(void) {
  const char* options = "-DPAIRS=2";
  cl_kernel k = clCreateKernel(prog, "step", &err);
  cl_uint n = 4096;
  for (cl_uint other = 0; other < n; ++other) x[other] = 0;
  for (cl_uint stage = 3; stage < 18; ++stage)
    for (cl_uint pass = 0; pass <= stage; ++pass) {
      size_t local = 128, global = n / 2 / 2;
      clSetKernelArg(k, 0, sizeof keys, &keys); clSetKernelArg(k, 1, sizeof n, &n);
      clSetKernelArg(k, 2, sizeof stage, &stage); clSetKernelArg(k, 3, sizeof pass, &pass);
      clEnqueueNDRangeKernel(q, k, 1, NULL, &global, &local, 0, NULL, NULL);
    }
})";
  const ProblemDraft step = draft_problem(folder_ / "step.cl", "", folder_, folder_ / "main.c");
  const Problem problem = parse_problem(step.text, folder_ / "p.toml");
  EXPECT_EQ(constant(problem, "STAGE"), 3) << step.text;
  EXPECT_EQ(constant(problem, "PASS"), 0);
  EXPECT_EQ(constant(problem, "N_SIZE"), 4096);
  EXPECT_THAT(problem.kernel().launch.global[0].text(), HasSubstr("PAIRS"));
  for (const char* marked : {"STAGE: one of.*main.c", "PASS: one of.*main.c", "global: .*main.c"})
    EXPECT_THAT(step.questions, Contains(ContainsRegex(marked)));
  EXPECT_THAT(step.questions, Not(Contains(HasSubstr("N_SIZE"))));
}

TEST_F(Draft, CountsElementsAsTheHostAllocatesThem) {
  const ProblemDraft sweep = draft("sweep.cpp", R"(
template <int LANES>
void sweep(int rows, int n, const double* a, double* x) {
  for (int i = 1; i < n; ++i)
    for (int r = 0; r < rows; ++r) {
      const int k = i * rows + r;
      x[k] = a[k] + x[k + rows];
    }
}
int main() {
  const int rows = 64, n = 32;
  std::vector<double> a(rows * n), x(rows * n);
  sweep<8>(rows, n, a.data(), x.data());
})");
  const Problem problem = parse_problem(sweep.text, folder_ / "p.toml");
  for (const Argument& argument : problem.kernel().arguments)
    if (argument.kind == Argument::Kind::buffer) {
      EXPECT_EQ(argument.count.evaluate(problem.constants).as_integer(), 64 * 32) << sweep.text;
    }
  EXPECT_THAT(sweep.questions, Contains(ContainsRegex("^x: as allocated")));
  EXPECT_THAT(sweep.questions, Not(Contains(ContainsRegex("^a:"))));
  const ProblemDraft pick = draft("pick.cpp", R"(
void pick(const uint8_t* image, int width, int height, int16_t* out) {
  for (int b = 0; b < width * height / 64; ++b) out[b] = image[b * 64 + image[b]];
}
int main() {
  int width = 64, height = 32;
  std::vector<uint8_t> image(width * height);
  std::vector<int16_t> out(width * height);
  pick(image.data(), width, height, out.data());
})");
  EXPECT_THAT(counts(parse_problem(pick.text, folder_ / "p.toml")), ElementsAre("WIDTH * HEIGHT", "WIDTH * HEIGHT"));
}

TEST_F(Draft, DoesNotTakeTheBoundOfAnotherLoopWithTheSameCounter) {
  const std::string kernel = R"(
#ifndef BINS
#define BINS 32
#endif
kernel void histogram(global const uchar* image, global uint* hist, const int pixels) {
  local uint table[BINS * BINS];
  for (int i = get_local_id(0); i < BINS * BINS; i += get_local_size(0)) table[i] = 0;
  for (int i = get_global_id(0); i < pixels; i += get_global_size(0)) atomic_inc(&table[image[i] * BINS]);
  for (int i = get_local_id(0); i < BINS * BINS; i += get_local_size(0)) atomic_add(&hist[i], table[i]);
}
)";
  const std::string program = R"(
#define BINS 32
int main() {
  int pixels = 1024 * 2048;
  cl_kernel k = clCreateKernel(p, "histogram", &err);
  cl_mem image = clCreateBuffer(c, 0, pixels, NULL, &err), hist = clCreateBuffer(c, 0, BINS * BINS * sizeof(cl_uint), NULL, &err);
  clSetKernelArg(k, 0, 8, &image);
  clSetKernelArg(k, 1, 8, &hist);
  clSetKernelArg(k, 2, 4, &pixels);
  size_t local = 64, global = 65536;
  clEnqueueNDRangeKernel(q, k, 1, NULL, &global, &local, 0, NULL, NULL);
}
)";
  std::ofstream(folder_ / "h.cl") << kernel;
  const ProblemDraft draft =
      draft_problem_from_text(kernel, folder_ / "h.cl", "", folder_, {folder_ / "main.c", program});
  EXPECT_THAT(counts(parse_problem(draft.text, folder_ / "p.toml")), ElementsAre("PIXELS", "BINS * BINS"))
      << draft.text;
  EXPECT_THAT(draft.questions, Not(Contains(ContainsRegex("^(image|hist): .*(body|number of elements|stands)"))));
}

TEST_F(Draft, ABlockHasNoMoreThreadsThanSharedMemoryHasElements) {
  for (const char* length : {"64", "2 * 32", "WG"}) {
    const Problem device = problem("rev.cu", fmt::format(R"(
#define WG 64
__global__ void rev(const float* in, float* out, int n) {{
  __shared__ float other[32], s[{}];
  int i = blockIdx.x * blockDim.x + threadIdx.x, l = threadIdx.x;
  s[l] = i < n ? in[i] : 0;
  __syncthreads();
  if (i < n) out[i] = s[l];
}}
void run() {{ rev<<<n / 64, 64>>>(in, out, n); }})",
                                                         length));
    if (std::string(length) != "WG") {
      EXPECT_THAT(values(device, "BLOCK_SIZE_X"), ElementsAre(8, 16, 32, 64)) << length;
    }
    const Problem opencl = problem("rev.cl", fmt::format(R"(
#define WG 64
__kernel void rev(__global const float* in, __global float* out, int n) {{
  __local float s[{} + 1];
  s[get_local_id(0) + 1] = in[get_global_id(0)];
  if (get_global_id(0) < n) out[get_global_id(0)] = s[get_local_id(0)];
}})",
                                                         length));
    EXPECT_EQ(values(opencl, "BLOCK_SIZE_X").back(), 64) << length << "; the default of 256 is larger";
  }
  const Problem named = problem("named.cu", R"(
#ifndef BLOCK
#define BLOCK 128
#endif
__global__ void rev(const float* in, float* out, int n) {
  __shared__ float s[256];
  int i = blockIdx.x * BLOCK + threadIdx.x;
  s[threadIdx.x] = in[i];
  if (i < n) out[i] = s[threadIdx.x];
})");
  EXPECT_THAT(named.restrictions, Contains(testing::ResultOf([](const auto& r) { return r.label(); }, "BLOCK <= 256")));
}

// The block loops over a tile; host code beside the kernel shows the rest.
const char* const kConvolution = R"(
#ifndef __CUDACC_RTC__
#endif
#ifndef RADIUS
#define RADIUS 4
#endif
#ifndef TILE_W
#define TILE_W 32
#endif
template <typename T, int STEP>
__global__ void conv(const T* in, T* out, int width, int height) {
  __shared__ T tile[8][TILE_W + 2 * RADIUS];
  const int x0 = blockIdx.x * TILE_W, y = blockIdx.y * blockDim.y + threadIdx.y;
  for (int x = threadIdx.x; x < TILE_W + 2 * RADIUS; x += blockDim.x) tile[threadIdx.y][x] = in[y * width + x0 + x];
  for (int x = threadIdx.x; x < TILE_W; x += blockDim.x)
    if (x0 + x < width && y < height) out[y * width + x0 + x] = tile[threadIdx.y][x + RADIUS] * STEP;
}
#if !defined(__CUDACC_RTC__)
int main() {
  const int w = 1 << 11, h = 300 * 2;
  dim3 block(24, 2), grid((w + TILE_W - 1) / TILE_W, h / 2);
  conv<double, 3><<<grid, block>>>(in, out, w, h);
}
#endif
)";

TEST_F(Draft, AnArrayThatFewThreadsUseBoundsNoBlock) {
  for (const char* use :
       {"if (threadIdx.x < 4) sums[threadIdx.x] = 0;", "int t = threadIdx.x; if (t < 4) sums[t] = 0;"}) {
    const std::string text = draft("k.cu",
                                   "#ifndef WG\n#define WG 256\n#endif\n"
                                   "__global__ void k(int n, const int* a, int* bins) {\n"
                                   "  __shared__ int sums[4];\n  " +
                                       std::string(use) +
                                       "\n  __syncthreads();\n  int i = blockIdx.x * WG + threadIdx.x;\n"
                                       "  if (i < n) atomicAdd(&sums[a[i] & 3], 1);\n  __syncthreads();\n"
                                       "  if (threadIdx.x < 4) atomicAdd(&bins[threadIdx.x], sums[threadIdx.x]);\n}\n")
                                 .text;
    const Problem problem = parse_problem(text, folder_ / "p.toml");
    EXPECT_EQ(problem.restrictions.size(), 1u) << text;
    EXPECT_EQ(problem.kernel().arguments[2].count.evaluate(Constants{}), Value(4)) << text;
  }
}

TEST_F(Draft, CountsWhatTheNumbersOfAVariableReach) {
  const std::string text =
      draft("k.cl",
            "__kernel void k(int n, __global const float* x, __global int* bins) {\n  int i = get_global_id(0);\n"
            "  if (i < n) {\n    int bin = -1;\n    while (bin < 0) { if (x[i] > 1) bin = 0; else bin = 2; }\n"
            "    atomic_inc(&bins[bin]);\n  }\n}\n")
          .text;
  EXPECT_EQ(parse_problem(text, folder_ / "p.toml").kernel().arguments[2].count.evaluate(Constants{}), Value(3))
      << text;
}

TEST_F(Draft, CountsTheEndsOfRows) {
  const std::string text =
      draft("k.cu",
            "__global__ void k(const int* row, const float* x, float* y, int n) {\n"
            "  int v = blockIdx.x * blockDim.x + threadIdx.x;\n  if (v < n) {\n    float sum = 0;\n"
            "    for (int e = row[v]; e < row[v + 1]; ++e) sum += x[v];\n    y[v] = sum;\n  }\n}\n")
          .text;
  const Problem problem = parse_problem(text, folder_ / "p.toml");
  const auto& arguments = problem.kernel().arguments;
  EXPECT_EQ(arguments[0].count.evaluate(Constants{{"N_SIZE", Value(10)}}), Value(11)) << text;
  EXPECT_EQ(arguments[2].count.evaluate(Constants{{"N_SIZE", Value(10)}}), Value(10)) << text;
}

TEST_F(Draft, QualifiesAKernelWithItsNamespaces) {
  const std::string body = "__global__ void k(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] = 1; }\n";
  const auto function = [&](const std::string& source) {
    return parse_problem(draft("k.cu", source).text, folder_ / "p.toml").kernel().function.text();
  };
  EXPECT_EQ(function("namespace other { struct S { int a; }; }\nnamespace a::b {\nnamespace {\n" + body + "}\n}\n"),
            "a::b::k");
  EXPECT_EQ(function("namespace other { struct S { int a; }; }\n" + body), "k");
}

TEST_F(Draft, AMacroAroundMainIsNoParameter) {
  const std::string text = draft("f.cpp",
                                 "void f(int n, float* x) {\n#ifdef FAST\n  n += 0;\n#endif\n"
                                 "  for (int i = 0; i < n; ++i) x[i] *= 2;\n}\n"
                                 "#ifdef MAIN\n#ifdef PRINT\n#endif\nint main() { return 0; }\n#endif\n")
                               .text;
  EXPECT_THAT(text, HasSubstr("-DFAST"));
  EXPECT_THAT(text, Not(HasSubstr("-DMAIN")));
}

TEST_F(Draft, RefusesContainersAsArguments) {
  EXPECT_THROW(draft("f.cpp", "#include <vector>\nvoid f(const std::vector<float>& x, float* y) { y[0] = x[0]; }\n"),
               UserError);
}

TEST_F(Draft, TakesDefaultsFromTheLaunchInTheSource) {
  const ProblemDraft conv = draft("conv.cu", kConvolution);
  const Problem problem = parse_problem(conv.text, folder_ / "p.toml");
  EXPECT_EQ(constant(problem, "WIDTH"), 2048);
  EXPECT_EQ(constant(problem, "HEIGHT"), 600);
  EXPECT_EQ(default_of(problem, "STEP_VALUE"), 3);
  EXPECT_EQ(default_of(problem, "BLOCK_SIZE_X"), 24);
  EXPECT_EQ(default_of(problem, "BLOCK_SIZE_Y"), 2);
  EXPECT_EQ(problem.kernel().arguments[0].type, ElementType::float64);
  for (const std::string& question : conv.questions) {
    EXPECT_THAT(question, Not(HasSubstr("__CUDACC_RTC__"))) << "the host code is enclosed";
    EXPECT_THAT(question, Not(HasSubstr("WIDTH"))) << "read from the source, not guessed";
  }
}

// Host programs of OpenCL kernels are files of their own.
TEST_F(Draft, TakesTheLaunchOfAnOpenClKernelFromItsHostProgram) {
  const std::string kernel = R"(
kernel void rows(global const float* x, global float* y, int n, int m) {
  int row = get_group_id(0) * get_local_size(1) + get_local_id(1);
  if (row >= n) return;
  for (int c = get_local_id(0); c < m; c += get_local_size(0)) y[row * m + c] = 2 * x[row * m + c];
}
)";
  const std::string in_c = R"(
  const int n = 10, m = 700; cl_int error;
  cl_kernel k = clCreateKernel(program, "rows", &error);
  clSetKernelArg(k, 2, sizeof(int), &n);
  clSetKernelArg(k, 3, sizeof(int), &m);
  size_t local[2] = {64, 4}, global[2];
)";
  const std::string in_python = "n = 5  # rows\nn = 2 * 5\nm = 700\nlocal = (64, 4)\n";
  for (const auto& [host, program] : {
           std::pair<std::string, std::string>{
               "c.c", in_c + "global[0] = (n + 3) / 4 * 64; global[1] = 4;\n"
                             "clEnqueueNDRangeKernel(queue, k, 2, NULL, global, local, 0, NULL, NULL);"},
           {"c.c", in_c + "clEnqueueNDRangeKernel(q, k, 2, 0, (size_t[]){(n + 3) / 4 * local[0], 4}, local, 0, 0, 0);"},
           {"cpp.cpp",
            "int n = 10, m = 700; cl::Kernel k(program, \"rows\"); k.setArg(2, n); k.setArg(3, m);\n"
            "queue.enqueueNDRangeKernel(k, cl::NullRange, cl::NDRange((n + 3) / 4 * 64, 4), cl::NDRange(64, 4));"},
           {"py.py",
            in_python + "program.rows(queue, ((n + 3) // 4 * 64, 4), local, x, y, np.int32(n), np.int32(m))\n"},
           {"py.py",
            "n, m = 10, 700\nprogram.rows(queue, ((n + 3) // 4 * 64, 4), (64, 4), x, y, np.int32(n), np.int32(m))\n"},
           {"py.py", in_python + "k = program.rows\nk(q, ((n + 3) // 4 * local[0], local[1]), local, x, y, n, m)\n"},
           {"py.py", in_python +
                         "k = cl.Kernel(program, 'rows')\nk.set_args(x, y, n, m)\nsize = ((n + 3) // 4 * 64, 4)\n"
                         "cl.enqueue_nd_range_kernel(queue, k, size, local)\n"},
       }) {
    std::ofstream(folder_ / "rows.cl") << kernel;
    std::ofstream(folder_ / host) << program;
    const std::string text = draft_problem(folder_ / "rows.cl", "", folder_, folder_ / host).text;
    EXPECT_THAT(text, Not(HasSubstr("CHECK:"))) << program;
    const Problem problem = parse_problem(text, folder_ / "p.toml");
    EXPECT_EQ(constant(problem, "N_SIZE"), 10) << program;
    EXPECT_EQ(constant(problem, "M_SIZE"), 700) << program;
    EXPECT_EQ(default_of(problem, "BLOCK_SIZE_X"), 64) << program;
    EXPECT_EQ(default_of(problem, "BLOCK_SIZE_Y"), 4) << program;
    ASSERT_FALSE(problem.kernel().launch.grid.empty()) << text;
    const Constants sizes{{"N_SIZE", Value(10)}, {"BLOCK_SIZE_Y", Value(2)}};
    EXPECT_EQ(problem.kernel().launch.grid[0].evaluate(sizes).as_integer(), 5) << text;
  }
  for (const char* program :
       {"program.rows(queue, x.shape, None, x, y, n, m)\n", "program.other(queue, (4,), (2,), x)\n"}) {
    std::ofstream(folder_ / "py.py") << program;
    EXPECT_THAT(draft_problem(folder_ / "rows.cl", "", folder_, folder_ / "py.py").questions,
                Contains(HasSubstr("launch")))
        << program;
  }
}

TEST_F(Draft, TakesSizesOfBuffersAndMacrosFromTheHost) {
  std::ofstream(folder_ / "rle.cl") << R"(
#ifndef CHUNK
#define CHUNK 8
#endif
kernel void rle(const int width, global const uchar* bits, global ushort* starts, global int* runs) {
  const int row = get_group_id(0);
  int base = 0;
  for (int x0 = 0; x0 < width; x0 += 64 * CHUNK * STEP) {
    const int x = x0 + get_local_id(0) * CHUNK;
    if (x < width) starts[row * width + base++] = bits[row * width + x];
  }
  if (get_local_id(0) == 0) runs[row] = base;
})";
  const std::string in_c =
      "enum { HEIGHT = 768, WIDTH = 2048 };\nclBuildProgram(p, 1, &d, \"-DCHUNK=16 -D STEP=2\", 0, 0);\n"
      "cl_kernel k = clCreateKernel(p, \"rle\", &e);\nconst int other = 1, width = WIDTH;\nALLOCATE\n"
      "clSetKernelArg(k, 0, sizeof width, &width);\nclSetKernelArg(k, 1, sizeof(cl_mem), &bits);\n"
      "clSetKernelArg(k, 2, sizeof(cl_mem), &starts);\nclSetKernelArg(k, 3, sizeof(cl_mem), &runs);\n"
      "size_t local = 64, global = HEIGHT * 64;\nclEnqueueNDRangeKernel(q, k, 1, 0, &global, &local, 0, 0, 0);";
  const std::string in_python =
      "HEIGHT, WIDTH, CHUNK = 768, 2048, 16\np = cl.Program(c, s).build(options=[f'-DCHUNK={CHUNK}', '-DSTEP=2'])\n"
      "bits = cl.Buffer(c, f, WIDTH * HEIGHT)\nstarts = cl.Buffer(c, f, size=2 * WIDTH * HEIGHT)\n"
      "runs = cl.Buffer(c, f, 4 * HEIGHT)\np.rle(q, (HEIGHT * 64,), (64,), WIDTH, bits, starts, runs)\n";
  const std::regex allocate("ALLOCATE");
  for (const auto& [host, program] :
       {std::pair<std::string, std::string>{
            "c.c", std::regex_replace(
                       in_c, allocate,
                       "cl_mem bits = clCreateBuffer(c, 1, WIDTH * HEIGHT, 0, &e);\n"
                       "cl_mem starts = clCreateBuffer(c, 2, sizeof(cl_ushort) * WIDTH * HEIGHT, 0, &e);\n"
                       "size_t bytes = HEIGHT * sizeof(int); cl_mem runs = clCreateBuffer(c, 2, bytes, 0, 0);")},
        {"cpp.cpp", std::regex_replace(in_c, allocate,
                                       "cl::Buffer bits(c, 1, WIDTH * HEIGHT), other(c, 1, 7);\n"
                                       "cl::Buffer starts(c, 2, 2 * HEIGHT * WIDTH);\n"
                                       "runs = cl::Buffer(c, 2, sizeof(cl_int) * HEIGHT);")},
        {"py.py", in_python}}) {
    std::ofstream(folder_ / host) << program;
    const ProblemDraft draft = draft_problem(folder_ / "rle.cl", "", folder_, folder_ / host);
    const Problem problem = parse_problem(draft.text, folder_ / "p.toml");
    EXPECT_EQ(constant(problem, "WIDTH"), 2048) << draft.text;
    EXPECT_EQ(default_of(problem, "CHUNK"), 16) << draft.text;
    EXPECT_EQ(default_of(problem, "STEP"), 2) << draft.text;
    const Constants sizes{{"WIDTH", Value(2048)}};
    std::vector<std::int64_t> elements;
    for (const Argument& argument : problem.kernel().arguments)
      if (argument.kind == Argument::Kind::buffer) elements.push_back(argument.count.evaluate(sizes).as_integer());
    EXPECT_THAT(elements, ElementsAre(2048 * 768, 2048 * 768, 768)) << draft.text;
  }
  std::ofstream(folder_ / "c.c") << std::regex_replace(in_c, allocate, "");
  const ProblemDraft guessed = draft_problem(folder_ / "rle.cl", "", folder_, folder_ / "c.c");
  for (const char* buffer : {"bits: ", "starts: ", "runs: "})
    EXPECT_THAT(guessed.questions, Contains(testing::StartsWith(buffer))) << guessed.text;
}

TEST_F(Draft, KeepsTheOptionsOfTheHostsBuild) {
  std::filesystem::create_directories(folder_ / "parts");
  std::ofstream(folder_ / "two.cl") << "kernel void two(global float* x) { x[get_global_id(0)] *= 2; }";
  for (const auto& [host, program] :
       {std::pair<std::string, std::string>{"c.c",
                                            "puts(\"-h: help\");\nclBuildProgram(p, 1, &d, \"-I parts -cl-mad-enable "
                                            "-cl-std=CL1.2 -cl-mad-enable\", 0, 0);\n"},
        {"py.py",
         "p = cl.Program(c, s).build(options=['-Iparts', '-cl-mad-enable', "
         "'-cl-std=CL1.2'])\n"}}) {
    std::ofstream(folder_ / host) << program;
    const ProblemDraft draft = draft_problem(folder_ / "two.cl", "", folder_, folder_ / host);
    const Problem read = parse_problem(draft.text, folder_ / "p.toml");
    std::vector<std::string> options;
    for (const Template& option : read.kernel().options.at("opencl")) options.push_back(option.text());
    EXPECT_THAT(options, ElementsAre("-cl-mad-enable", "-cl-std=CL1.2")) << draft.text;
    EXPECT_EQ(read.kernel().sources.at(0).include_folders.back().filename(), "parts") << draft.text;
  }
}

TEST_F(Draft, ReadsWhatMacrosWithArgumentsStandFor) {
  const Problem lu = problem("lu.cl", R"(
#define AT(r, c) a[(r) * lda + \
                   (c)]
#define DIAGONAL(k) AT(k, k)
kernel void scale(global float* a, global const float* b, int n, int lda) {
  const int r = get_global_id(0);
  if (r < n) AT(r, 0) *= b[r] / DIAGONAL(r);
})");
  EXPECT_EQ(lu.kernel().arguments[0].access, Access::read_write);
  EXPECT_THAT(counts(lu), ElementsAre("N_SIZE * LDA", "N_SIZE"));
}

TEST_F(Draft, KeepsTheSharedMemoryOfTheLaunch) {
  const std::string kernel = R"(
template <int TILE> __global__ void pass(float* d, int n, int pivot) {
  extern __shared__ float raw[];
  const int bi = blockIdx.y, bj = blockIdx.x;
  raw[threadIdx.y * (TILE + 1) + threadIdx.x] = d[(bi * TILE + threadIdx.y) * n + bj * TILE + threadIdx.x];
  if (bi == pivot * TILE) return;
  d[(bi * TILE + threadIdx.y) * n + bj * TILE + threadIdx.x] = raw[threadIdx.y * (TILE + 1) + threadIdx.x];
}
)";
  const Problem literal =
      problem("pass.cu", kernel +
                             "void run() { pass<32><<<dim3(n / 32, n / 32), dim3(32, 8), 2 * 32 * 33 * "
                             "sizeof(float)>>>(d, n, p); }\n");
  EXPECT_EQ(literal.kernel().launch.shared_memory_bytes.evaluate(Constants{}).as_integer(), 2 * 32 * 33 * 4);
  for (const std::string block : {"dim3 grid(n / tile, n / tile), block(tile, tile / work);",
                                  "dim3 grid(n / tile, n / tile); const dim3 block(tile, tile / work);"}) {
    const ProblemDraft draft = this->draft(
        "pass.cu",
        kernel + "void run() { constexpr int tile = 32, work = 4; " + block +
            "size_t bytes = 2 * tile * (tile + 1) * sizeof(float); pass<tile><<<grid, block, bytes>>>(d, n, p); }\n");
    const Problem named = parse_problem(draft.text, folder_ / "p.toml");
    const Constants tile{{"TILE_VALUE", Value(16)}};
    EXPECT_EQ(named.kernel().launch.shared_memory_bytes.evaluate(tile).as_integer(), 2 * 16 * 17 * 4) << draft.text;
    EXPECT_EQ(named.kernel().launch.block[0].text(), "TILE_VALUE") << draft.text;
    EXPECT_EQ(default_of(named, "TILE_VALUE"), 32) << draft.text;
    EXPECT_EQ(default_of(named, "BLOCK_SIZE_Y"), 8) << draft.text;
    EXPECT_THAT(draft.questions, Contains(testing::StartsWith("d: the source does not show"))) << draft.text;
    for (const Restriction& restriction : named.restrictions)
      EXPECT_THAT(restriction.expression.text(), Not(HasSubstr("PIVOT"))) << draft.text;
  }
}

TEST_F(Draft, FollowsAVariableWithACastToTheSizesOfABuffer) {
  std::ofstream(folder_ / "s.cu") << R"(
__global__ void scale(float* f, int nx, int ny) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x;
  for (int q = 0; q < 9; ++q) if (x < nx) f[place(q, x, ny)] *= 2.0f;
})";
  std::ofstream(folder_ / "m.cu") << R"(
int main() {
  const int nx = 2048, ny = 1024;
  const size_t cells = (size_t)nx * ny;
  float* f;
  cudaMalloc(&f, 9 * cells * sizeof(float));
  scale<<<nx / 32, 32>>>(f, nx, ny);
})";
  const ProblemDraft draft = draft_problem(folder_ / "s.cu", "", folder_, folder_ / "m.cu");
  EXPECT_THAT(draft.text, testing::HasSubstr("9 * (NX * NY)"));
}

TEST_F(Draft, NamesItsSourceFromTheFolderOfTheProblem) {
  std::filesystem::create_directory(folder_ / "other");
  std::ofstream(folder_ / "k.c") << "void f(float* x, int n) { for (int i = 0; i < n; ++i) x[i] = 1; }\n";
  const std::filesystem::path here = std::filesystem::current_path();
  std::filesystem::current_path(folder_);
  const std::string text = draft_problem("k.c", "", folder_ / "other").text;
  std::filesystem::current_path(here);
  EXPECT_NO_THROW(parse_problem(text, folder_ / "other/p.toml")) << text;
}

// Else another size would leave a part of the output without work, which no comparison with the first one shows.
TEST_F(Draft, NamesTheSizesThatTheHostWritesAsMacros) {
  std::ofstream(folder_ / "wide.cl") << R"(
kernel void wide(global const float* in, global float* out, int width, int height) {
  int x = 2 * get_global_id(0), y = get_global_id(1);
  out[y * width + x] = in[y * width + x];
  out[y * width + x + 1] = in[y * width + x + 1];
})";
  const std::string begin =
      "#define W 2048\n#define H 1024\ncl_int width = W, height = H;\ncl_kernel k = clCreateKernel(p, \"wide\", &e);\n"
      "clSetKernelArg(k, 2, 4, &width); clSetKernelArg(k, 3, 4, &height);\nsize_t local[2] = {32, 4}, global[2] = ";
  const std::string end = ";\nclEnqueueNDRangeKernel(q, k, 2, NULL, global, local, 0, NULL, NULL);";
  const auto draft_for = [&](const std::string& global) {
    std::ofstream(folder_ / "main.c") << begin << global << end;
    return draft_problem(folder_ / "wide.cl", "", folder_, folder_ / "main.c");
  };
  for (const char* global : {"{W / 2, H}", "{(size_t)width / 2, H}"}) {
    const ProblemDraft draft = draft_for(global);
    EXPECT_THAT(draft.questions, Not(Contains(HasSubstr("grid"))));
    const Problem problem = parse_problem(draft.text, folder_ / "p.toml");
    const Constants sizes{
        {"WIDTH", Value(512)}, {"HEIGHT", Value(4096)}, {"BLOCK_SIZE_X", Value(16)}, {"BLOCK_SIZE_Y", Value(2)}};
    ASSERT_EQ(problem.kernel().launch.grid.size(), 2u) << draft.text;
    EXPECT_EQ(problem.kernel().launch.grid[0].evaluate(sizes).as_integer(), 16) << draft.text;
    EXPECT_EQ(problem.kernel().launch.grid[1].evaluate(sizes).as_integer(), 2048) << draft.text;
  }
  EXPECT_THAT(draft_for("{2048 / 2, H}").questions, Contains(HasSubstr("grid"))) << "a number follows no constant";
}

TEST_F(Draft, KeepsWhatOnlyTheSizeOfTheLaunchEnsures) {
  const std::string kernel = "kernel void scale(global float* x) { int i = get_global_id(0); x[i] *= 2; }";
  std::ofstream(folder_ / "scale.cl") << kernel;
  std::ofstream(folder_ / "run.py") << "program.scale(queue, (1000,), (50,), x)\n";
  const Problem problem =
      parse_problem(draft_problem(folder_ / "scale.cl", "", folder_, folder_ / "run.py").text, folder_ / "p.toml");
  EXPECT_EQ(constant(problem, "N_SIZE"), 1000);
  EXPECT_EQ(problem.restrictions.front().expression.names().size(), 2u) << "the block divides the size";
}

TEST_F(Draft, KeepsWhatSeemsToChangeTheResultConstant) {
  const Problem conv = problem("conv.cu", kConvolution);
  EXPECT_EQ(constant(conv, "RADIUS"), 4);
  EXPECT_THAT(parameters(conv), Not(Contains("RADIUS")));
}

TEST_F(Draft, ThreadsThatLoopOverTheWorkOfABlockAreNotThatWork) {
  const Problem conv = problem("conv.cu", kConvolution);
  EXPECT_EQ(conv.kernel().launch.block[0].text(), "BLOCK_SIZE_X");
  EXPECT_THAT(conv.kernel().launch.grid[0].text(), HasSubstr("TILE_W"));
  const char* source = R"(
#ifndef WG
#define WG 64
#endif
#ifndef RPG
#define RPG 1
#endif
__kernel void matvec(__global const float* A, __global const float* x, __global float* y, const int rows, const int cols) {
  __local float part[WG];
  const int lid = get_local_id(0);
  for (int r = 0; r < RPG; ++r) {
    const int row = get_group_id(0) * RPG + r;
    float s = 0;
    for (int k = lid; k < cols; k += WG) s += A[row * cols + k] * x[k];
    part[lid] = s;
    if (lid == 0) y[row] = part[0];
  }
}
)";
  const ProblemDraft draft = this->draft("matvec.cl", source);
  const Problem matvec = parse_problem(draft.text, folder_ / "p.toml");
  EXPECT_EQ(matvec.kernel().launch.block[0].text(), "WG");
  EXPECT_THAT(matvec.kernel().launch.grid[0].text(), HasSubstr("RPG"));
  for (const Restriction& restriction : matvec.restrictions)
    EXPECT_THAT(restriction.expression.names(), Not(Contains("RPG")));
  EXPECT_THAT(draft.questions, Contains(testing::StartsWith("block:")));
}

TEST_F(Draft, RowsOfABlockInAGridOfOneDimensionAreItsSecondDimension) {
  const auto drafted = [&](const std::string& rows, const std::string& launch) {
    return draft("norm.cu", R"(
#ifndef ROWS
#define ROWS 2
#endif
template <typename T, int THREADS> __global__ void norm(T* x, int height, int width) {
  extern __shared__ float partial[];
  const int row = blockIdx.x * )" +
                                rows + R"( + threadIdx.y;
  float* s = partial + threadIdx.y * THREADS;
  if (row < height)
    for (int c = threadIdx.x; c < width; c += THREADS) s[threadIdx.x] += x[row * width + c];
  __syncthreads();
  if (row < height) x[row * width] = s[0];
}
)" + launch);
  };
  const std::string host =
      "#ifndef __CUDACC_RTC__\nint main() {\n  const int height = 8192, width = 1024;\n  norm<float, 128>"
      "<<<(height + ROWS - 1) / ROWS, dim3(128, ROWS), 128 * ROWS * sizeof(float)>>>(x, height, width);\n}\n#endif\n";
  for (const std::string& launch : {host, std::string()}) {
    const ProblemDraft draft = drafted("ROWS", launch);
    const Problem norm = parse_problem(draft.text, folder_ / "p.toml");
    EXPECT_THAT(parameters(norm), ElementsAre("THREADS_VALUE", "ROWS")) << draft.text;
    EXPECT_EQ(norm.kernel().launch.block[0].text(), "THREADS_VALUE") << draft.text;
    EXPECT_EQ(norm.kernel().launch.block[1].text(), "ROWS") << draft.text;
    ASSERT_FALSE(norm.kernel().launch.grid.empty()) << draft.text;
    EXPECT_EQ(norm.kernel().launch.grid[0].text(), "(HEIGHT + ROWS - 1) // ROWS") << draft.text;
    EXPECT_TRUE(norm.kernel().launch.grid.size() == 1 || norm.kernel().launch.grid[1].text() == "1") << draft.text;
    EXPECT_THAT(draft.questions, Not(Contains(testing::StartsWith("block:"))));
    const Constants values{{"THREADS_VALUE", Value(256)}, {"ROWS", Value(4)}};
    EXPECT_EQ(norm.kernel().launch.shared_memory_bytes.evaluate(values).as_integer(), 256 * 4 * 4) << draft.text;
  }
  const Problem any = parse_problem(drafted("blockDim.y", "").text, folder_ / "p.toml");
  EXPECT_EQ(any.kernel().launch.grid[0].text(), "(HEIGHT + BLOCK_SIZE_Y - 1) // BLOCK_SIZE_Y");
  EXPECT_THAT(drafted("blockDim.y", "void run() { norm<float, 128><<<n / 4, dim3(128, 4), 128 * 4 * 4>>>(x, n, m); }")
                  .questions,
              Contains(ContainsRegex("shared_memory_bytes: .*BLOCK_SIZE_Y")));
}

TEST_F(Draft, TakesTheBlockThatTheLaunchNames) {
  const Problem k = problem(
      "k.cu",
      "#ifndef WIDE\n#define WIDE 32\n#endif\n__global__ void k(float* x, int n) {\n  __shared__ float s[2 * WIDE];\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  s[threadIdx.x + WIDE] = x[i];\n  if (i < n) x[i] = "
      "s[0];\n}\n"
      "void run() { k<<<n / WIDE, WIDE>>>(x, n); }\n");
  EXPECT_THAT(parameters(k), ElementsAre("WIDE"));
  EXPECT_EQ(k.kernel().launch.block[0].text(), "WIDE");
}

// A macro of the build options with the value of the local size is that size, which must not vary alone.
TEST_F(Draft, TakesMacrosOfBuildOptionsForTheBlock) {
  const std::string kernel =
      "#ifndef WG\n#define WG 64\n#endif\n#ifndef VEC\n#define VEC 1\n#endif\n"
      "__kernel void rows(__global const float* x, __global float* y, const int cols, __local float* red) {\n"
      "  const int row = get_group_id(0);\n  const int lid = get_local_id(0);\n  float m = 0;\n"
      "  for (int i = lid * VEC; i < cols; i += WG * VEC) m = fmax(m, x[row * cols + i]);\n  red[lid] = m;\n"
      "  barrier(CLK_LOCAL_MEM_FENCE);\n"
      "  for (int s = WG / 2; s > 0; s >>= 1) if (lid < s) red[lid] = fmax(red[lid], red[lid + s]);\n"
      "  if (lid == 0) y[row] = red[0];\n}\n";
  std::ofstream(folder_ / "rows.cl") << kernel;
  const auto with = [&](const std::string& options, const std::string& size) {
    return parse_problem(
        draft_problem_from_text(
            kernel, folder_ / "rows.cl", "", folder_,
            {"host.c", "int main() {\nclBuildProgram(p, 1, &d, \"" + options +
                           "\", 0, 0);\nk = clCreateKernel(p, \"rows\", &e);\nconst int cols = 1024;\n" + size +
                           "clSetKernelArg(k, 2, 4, &cols);\nclSetKernelArg(k, 3, local * 4, 0);\n"
                           "size_t global = 2048 * local;\n"
                           "clEnqueueNDRangeKernel(q, k, 1, 0, &global, &local, 0, 0, 0);\n}\n"},
            {})
            .text,
        folder_ / "problem.toml");
  };
  for (const auto& [options, size] :
       {std::pair("-DWG=64 -DVEC=4", "size_t local = 64;\n"), std::pair("-DVEC=4", "size_t local = WG;\n"),
        std::pair("-DWG=128 -DVEC=4 -cl-mad-enable", "#define LOCAL 128\nsize_t local = LOCAL;\n")}) {
    const Problem rows = with(options, size);
    EXPECT_THAT(parameters(rows), testing::UnorderedElementsAre("WG", "VEC")) << options;
    EXPECT_EQ(rows.kernel().launch.block[0].text(), "WG") << options;
  }
  // another value, or that of several macros
  for (const char* options : {"-DWG=32 -DVEC=4", "-DWG=64 -DVEC=64"})
    EXPECT_THAT(parameters(with(options, "size_t local = 64;\n")), Contains("BLOCK_SIZE_X")) << options;
}

TEST_F(Draft, NamesVariablesThatNothingFills) {
  const auto questions = draft("filter.cu", R"(
__constant__ float unset[9], weights[2] = {1, 2};
__device__ float table[4];
__device__ int counter;
__device__ int twice(int x) { return 2 * x; }
__global__ void filter(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= unset[i % 9] + weights[0] + table[i % 4] + twice(i);
  atomicAdd(&counter, 1);
}
)")
                             .questions;
  EXPECT_THAT(questions, Contains(testing::AllOf(HasSubstr("filter.cu:2:"), HasSubstr("unset"))));
  EXPECT_THAT(questions, Contains(testing::AllOf(HasSubstr("filter.cu:3:"), HasSubstr("table"))));
  for (const char* name : {"weights", "counter", "twice"})
    EXPECT_THAT(questions, Not(Contains(HasSubstr(std::string("variable ") + name))));
}

TEST_F(Draft, NamesUnfilledVariablesOfFunctors) {
  const auto questions = draft("poly.cu", R"(
__constant__ float coef[16];
__constant__ float other[16];
struct Op {
  float scale;
  __device__ float operator()(float x) const { return scale * x * coef[3]; }
};
template <typename F> __global__ void poly(const float* in, float* out, int n, F f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = f(in[i]);
}
)")
                             .questions;
  EXPECT_THAT(questions, Contains(AllOf(HasSubstr("poly.cu:2:"), HasSubstr("coef"))));
  EXPECT_THAT(questions, Not(Contains(HasSubstr("variable other"))));
}

TEST_F(Draft, TheBlockIsWhatTheKernelRequires) {
  const auto source = [](const std::string& block) {
    return "__kernel __attribute__((reqd_work_group_size(" + block +
           ", 1)))\nvoid scale(__global float* x, int width, int height) {\n"
           "  int column = get_global_id(0), row = get_global_id(1);\n"
           "  if (column < width && row < height) x[row * width + column] *= 2;\n}\n";
  };
  const ProblemDraft fixed = draft("fixed.cl", source("16, 8"));
  EXPECT_THAT(fixed.questions, Contains(HasSubstr("fixed.cl:2:"))) << "what makes it tunable";
  const Problem problem = parse_problem(fixed.text, folder_ / "p.toml");
  ASSERT_EQ(problem.kernel().launch.block.size(), 2u) << fixed.text;
  EXPECT_EQ(problem.kernel().launch.block[0].text(), "16");
  EXPECT_EQ(problem.kernel().launch.block[1].text(), "8");
  const Problem open = this->problem("open.cl", source("WIDE, HIGH"));
  EXPECT_EQ(open.kernel().launch.block[1].text(), "HIGH");
  EXPECT_THAT(parameters(open), testing::UnorderedElementsAre("WIDE", "HIGH"));
}

TEST_F(Draft, MacrosOfAHeaderAreNoParameters) {
  const std::filesystem::path file = folder_ / "k.cl", headers = folder_ / "inc";
  std::ofstream(file) << "#include \"k.h\"\n__kernel void f(__global float* x, int n) {\n"
                         "  int i = get_global_id(0);\n  if (i < n) x[i] *= WEIGHT;\n}\n";
  const ProblemDraft without = draft_problem(file, "", folder_);
  EXPECT_THAT(without.questions,
              Contains(testing::AllOf(HasSubstr("k.h"), HasSubstr("WEIGHT"), HasSubstr("--include"))));
  EXPECT_THAT(parameters(parse_problem(without.text, folder_ / "p.toml")), ElementsAre("BLOCK_SIZE_X"));
  std::filesystem::create_directory(headers);
  std::ofstream(headers / "k.h") << "#include \"deep.h\"\n";
  std::ofstream(headers / "deep.h") << "#define WEIGHT 2\n";
  const ProblemDraft with = draft_problem(file, "", folder_, {}, {headers});
  EXPECT_THAT(with.questions, Not(Contains(HasSubstr("k.h"))));
  const Problem problem = parse_problem(with.text, folder_ / "p.toml");
  EXPECT_THAT(parameters(problem), ElementsAre("BLOCK_SIZE_X"));
  EXPECT_THAT(problem.kernel().source_for(Language::opencl)->include_folders, Contains(headers));
  std::ofstream(headers / "deep.h")
      << "#ifndef DEEP_H\n#define DEEP_H\n#ifndef WEIGHT\n#define WEIGHT 2\n#endif\n#endif\n";
  const Problem open = parse_problem(draft_problem(file, "", folder_, {}, {headers}).text, folder_ / "p.toml");
  EXPECT_THAT(parameters(open), ElementsAre("WEIGHT", "BLOCK_SIZE_X")) << "a default, which options replace";
}

TEST_F(Draft, TakesGridAndSharedMemoryFromVariablesOfTheLaunch) {
  std::filesystem::create_directory(folder_ / "inc");
  std::ofstream(folder_ / "inc/halo.h") << "#define HALO 2\n#define AT(t, y, x, w) (t)[(y) * (w) + (x)]\n";
  const std::string source = R"(
#include "halo.h"
template <typename T, int ROWS>
__global__ void cross(const T* in, T* out, int width, int height, T scale) {
  extern __shared__ unsigned char raw[];
  T* tile = reinterpret_cast<T*>(raw);
  const int tw = blockDim.x + 2 * HALO, th = blockDim.y * ROWS + 2 * HALO;
  const int x0 = blockIdx.x * blockDim.x - HALO, y0 = blockIdx.y * blockDim.y * ROWS - HALO;
  for (int y = threadIdx.y; y < th; y += blockDim.y)
    for (int x = threadIdx.x; x < tw; x += blockDim.x) AT(tile, y, x, tw) = AT(in, y0 + y, x0 + x, width);
  __syncthreads();
  for (int r = 0; r < ROWS; ++r) {
    int lx = threadIdx.x + HALO, ly = threadIdx.y + r * blockDim.y + HALO;
    if (x0 + lx < width && y0 + ly < height) AT(out, y0 + ly, x0 + lx, width) = scale * AT(tile, ly, lx, tw);
  }
}
#ifndef __CUDACC_RTC__
int main() {
  DEFINITION
  const int width = 4096, height = 2048;
  dim3 block(32, 8);
  dim3 grid((width + block.x - 1) / block.x, (height + block.y * COUNT - 1) / (block.y * COUNT));
  size_t shared = (block.x + 2 * HALO) * (block.y * COUNT + 2 * HALO) * sizeof(float);
  cross<float, COUNT><<<grid, block, shared>>>(in, out, width, height, 0.5f);
}
#endif
)";
  for (const auto& [definition, count] :
       {std::pair("", "2"), {"constexpr int rows = 2;", "rows"}, {"#define ROWS_PER_THREAD 2", "ROWS_PER_THREAD"}}) {
    std::ofstream(folder_ / "cross.cu") << std::regex_replace(
        std::regex_replace(source, std::regex("DEFINITION"), definition), std::regex("COUNT"), count);
    const ProblemDraft draft = draft_problem(folder_ / "cross.cu", "", folder_, {}, {folder_ / "inc"});
    EXPECT_THAT(draft.questions, Contains(testing::AllOf(HasSubstr("grid"), HasSubstr("ROWS_VALUE"))))
        << "2 may be another: " << draft.text;
    const Problem problem = parse_problem(draft.text, folder_ / "p.toml");
    const Launch& launch = problem.kernel().launch;
    ASSERT_EQ(launch.grid.size(), 2u) << draft.text;
    const Constants values{{"WIDTH", Value(100)},
                           {"HEIGHT", Value(100)},
                           {"BLOCK_SIZE_X", Value(16)},
                           {"BLOCK_SIZE_Y", Value(4)},
                           {"ROWS_VALUE", Value(8)}};
    EXPECT_EQ(launch.grid[0].evaluate(values).as_integer(), 7);
    EXPECT_EQ(launch.grid[1].evaluate(values).as_integer(), 4) << draft.text;
    EXPECT_EQ(launch.shared_memory_bytes.evaluate(values).as_integer(), 4 * 20 * 36) << draft.text;
  }
}

TEST_F(Draft, TakesNoNumberForTheBlockOfAnotherDimension) {
  const std::string text = draft("dilate.cu", R"(
template <typename T, int ROWS>
__global__ void dilate(const T* in, T* out, int width, int height) {
  extern __shared__ float tile[];
  const int tw = blockDim.x + 2, th = blockDim.y * ROWS + 2;
  const int x0 = blockIdx.x * blockDim.x - 1, y0 = blockIdx.y * blockDim.y * ROWS - 1;
  for (int y = threadIdx.y; y < th; y += blockDim.y)
    for (int x = threadIdx.x; x < tw; x += blockDim.x) tile[y * tw + x] = in[max(y0 + y, 0) * width + max(x0 + x, 0)];
  __syncthreads();
  for (int r = 0; r < ROWS; ++r) {
    int lx = threadIdx.x + 1, ly = threadIdx.y + r * blockDim.y + 1;
    if (x0 + lx < width && y0 + ly < height) out[(y0 + ly) * width + x0 + lx] = fmaxf(tile[ly * tw + lx], tile[ly * tw]);
  }
}
int main() {
  const int width = 4096, height = 2191;
  dim3 block(32, 8), grid((width + 31) / 32, (height + 8 * 4 - 1) / (8 * 4));
  dilate<float, 4><<<grid, block, 34 * 34 * sizeof(float)>>>(in, out, width, height);
}
)")
                               .text;
  EXPECT_THAT(text, HasSubstr("BLOCK_SIZE_X"));
  EXPECT_THAT(text, Not(ContainsRegex("HEIGHT[^\n]*BLOCK_SIZE_X"))) << text;
}

TEST_F(Draft, TakesTheFactorOfAPositionForTheWorkOfAThread) {
  const Problem product = problem("product.cl", R"(
kernel void product(int n, global const float* a, global const float* b, global float* c) {
  const int x = get_global_id(0), y = get_global_id(1) * ROWS;
  float sum[ROWS] = {0};
  for (int k = 0; k < n; ++k)
    for (int r = 0; r < ROWS; ++r) sum[r] += a[(y + r) * n + k] * b[k * n + x];
  for (int r = 0; r < ROWS; ++r) c[(y + r) * n + x] = sum[r];
}
)");
  EXPECT_THAT(values(product, "ROWS"), ElementsAre(1, 2, 4, 8)) << "as a size it would be 256";
  EXPECT_THAT(counts(product), ElementsAre("N_SIZE * N_SIZE", "N_SIZE * N_SIZE", "N_SIZE * N_SIZE"));
  const Constants sizes{{"N_SIZE", Value(256)}, {"ROWS", Value(4)}};
  EXPECT_EQ(product.kernel().launch.global[1].evaluate(sizes).as_integer(), 64);
  std::ofstream(folder_ / "quad.cl") << "kernel void quad(global const float* x, global float* y) {\n"
                                        "  const int i = get_global_id(0) * 4;\n"
                                        "  for (int k = 0; k < 4; ++k) y[i + k] = x[i + k];\n}\n";
  std::ofstream(folder_ / "quad.c") << "void run() {\n  size_t items = 1000, group = 50;\n"
                                       "  cl_kernel quad = clCreateKernel(program, \"quad\", &error);\n"
                                       "  clEnqueueNDRangeKernel(queue, quad, 1, 0, &items, &group, 0, 0, 0);\n}\n";
  const ProblemDraft quad = draft_problem(folder_ / "quad.cl", "", folder_, folder_ / "quad.c");
  EXPECT_THAT(quad.questions, testing::IsEmpty());
  EXPECT_EQ(parse_problem(quad.text, folder_ / "quad.toml").constants.at("N_SIZE"), Value(4000));
}

// a work item has PER elements, a block apart, in each order in which people write that
// At the host's one element a thread the launch fits whatever a thread does.
TEST_F(Draft, TakesALoopOverTheElementsOfAThreadForItsWork) {
  std::ofstream(folder_ / "run.py") << "LOCAL, EACH, N = 64, 1, 4096\n"
                                       "p = cl.Program(c, s).build([f\"-DEACH={EACH}\"])\n"
                                       "p.f(q, ((N // EACH + LOCAL - 1) // LOCAL * LOCAL,), (LOCAL,), x, N)\n";
  const auto drafted = [&](const std::string& position) {
    std::ofstream(folder_ / "f.cl") << "#ifndef EACH\n#define EACH 1\n#endif\nkernel void f(global float* x, int n) {\n"
                                       "  for (int k = 0; k < EACH; ++k) {\n    const int i = " +
                                           position + ";\n    if (i < n) x[i] *= 2;\n  }\n}\n";
    return draft_problem(folder_ / "f.cl", "", folder_, folder_ / "run.py");
  };
  const Problem loop = parse_problem(drafted("get_global_id(0) * EACH + k").text, folder_ / "f.toml");
  ASSERT_EQ(loop.kernel().launch.global.size(), 1u);
  EXPECT_THAT(loop.kernel().launch.global[0].text(), HasSubstr("EACH"));
  EXPECT_THAT(drafted("get_global_id(0) + k % EACH").text, HasSubstr("as the launch in run.py")) << "not known";
}

TEST_F(Draft, TakesElementsThatLieABlockApartForTheWorkOfAThread) {
  for (const char* index : {"(get_group_id(0) * PER + k) * get_local_size(0) + get_local_id(0)",
                            "get_local_id(0) + get_local_size(0) * (k + PER * get_group_id(0))",
                            "get_group_id(0) * get_local_size(0) * PER + k * get_local_size(0) + get_local_id(0)"}) {
    const ProblemDraft scale = draft(
        "scale.cl", fmt::format("kernel void scale(global float* x, int n) {{\n  for (int k = 0; k < PER; ++k) {{\n"
                                "    const int i = {};\n    if (i < n) x[i] *= 2;\n  }}\n}}\n",
                                index));
    const Launch launch = parse_problem(scale.text, folder_ / "problem.toml").kernel().launch;
    ASSERT_EQ(launch.global.size(), 1u) << index;
    EXPECT_EQ(launch.global[0].text(), "(N_SIZE + PER - 1) // PER") << index;
    EXPECT_EQ(launch.block[0].text(), "BLOCK_SIZE_X") << index;
    EXPECT_THAT(scale.questions, Not(Contains(HasSubstr("launch")))) << index;
  }
  // the work of a block is not that of its threads
  EXPECT_THAT(draft("scale.cl",
                    "kernel void scale(global float* x, int n) {\n  for (int k = 0; k < PER; ++k) {\n"
                    "    const int i = (get_group_id(0) * 4 + k) * get_local_size(0) + get_local_id(0);\n"
                    "    if (i < n) x[i] *= 2;\n  }\n}\n")
                  .questions,
              Contains(HasSubstr("launch")));
}

TEST_F(Draft, CountsWhatAnIndexAddsToAPosition) {
  const std::string head =
      "__global__ void mix(const float* in, float* out, const int* at, int plane) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < plane) out[i] = ";
  EXPECT_THAT(counts(problem("mix.cu", head + "in[i] + in[4 * plane + i] + in[plane + i] + at[i];\n}\n")),
              ElementsAre("5 * PLANE", "PLANE", "PLANE"));
  EXPECT_THAT(counts(problem("mix.cu", head + "in[plane + i] + at[i];\n}\n")),
              ElementsAre("2 * PLANE", "PLANE", "PLANE"));
  // an index that the source does not bound is asked, whatever the others are
  EXPECT_THAT(draft("mix.cu", head + "in[i] + in[at[i]];\n}\n").questions, Contains(HasSubstr("in: ")));
  EXPECT_THAT(counts(problem("clamp.cu",
                             "__global__ void blur(const float* in, float* out, int w, int h) {\n"
                             "  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;\n"
                             "  if (x < w && y < h) out[y * w + x] = in[min(max(y - 1, 0), h - 1) * w + x];\n}\n")),
              ElementsAre("H_SIZE * W_SIZE", "H_SIZE * W_SIZE"));
  EXPECT_THAT(counts(problem("count.cu",
                             "__global__ void count(int* bins, int n) {\n"
                             "  for (int b = threadIdx.x; b < 256; b += blockDim.x) bins[b] = n;\n}\n")),
              ElementsAre("256"));
  EXPECT_THAT(counts(problem("histogram.cpp",
                             "void histogram(const unsigned char* data, unsigned* bins, int n) {\n"
                             "  std::fill(bins, bins + 256, 0u);\n  for (int i = 0; i < n; ++i) ++bins[data[i]];\n"
                             "  for (int b = 0; b < 256; ++b) bins[b] += 1;\n}\n")),
              ElementsAre("N_SIZE", "256"));
}

// the only size is the bound of a loop, so that the launch and what it reaches are guesses
TEST_F(Draft, MarksWhatOnlyALoopWouldBound) {
  const auto questions =
      draft("taps.cl",
            "kernel void taps(global const float* x, global const float* w, global float* y, int taps) {\n"
            "  const int i = get_global_id(0);\n  float s = 0;\n"
            "  for (int t = 0; t < taps; ++t) s += w[t] * x[i + t];\n  y[i] = s;\n}\n")
          .questions;
  for (const char* subject : {"global: ", "x: ", "y: "}) EXPECT_THAT(questions, Contains(HasSubstr(subject)));
  EXPECT_THAT(questions, Not(Contains(testing::StartsWith("w: "))));
}

TEST_F(Draft, ReadsAVariableOfTheBlocksSizeAsThatSize) {
  const Problem rows = problem("rows.cl",
                               "kernel void rows(global const float* x, global float* y, int n) {\n"
                               "  const int lid = get_local_id(0), wg = get_local_size(0), row = get_global_id(1);\n"
                               "  const int first = get_group_id(0) * wg;\n"
                               "  for (int i = lid; i < n; i += wg) y[row * n + first + i] = x[row * n + i];\n}\n");
  EXPECT_THAT(parameters(rows), ElementsAre("BLOCK_SIZE_X", "BLOCK_SIZE_Y"));
}

TEST_F(Draft, WritesABooleanTemplateArgumentAsTheLanguageDoes) {
  const Problem scale = problem("scale.cu",
                                "template <bool FAST> __global__ void scale(float* x, int n) {\n"
                                "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                "  if (i < n) x[i] *= FAST ? 2 : 3;\n}\n"
                                "void run(float* x, int n) { scale<true><<<(n + 255) / 256, 256>>>(x, n); }\n");
  const auto fast = std::ranges::find(scale.parameters, std::string("FAST_VALUE"), &Parameter::name);
  ASSERT_NE(fast, scale.parameters.end());
  EXPECT_THAT(fast->values, ElementsAre(Value(std::string("false")), Value(std::string("true"))));
}

TEST_F(Draft, CountsRowsThatBeginAtAVariable) {
  const std::string head = "__global__ void f(const float* x, float* y, int n) {\n",
                    tail = "  for (int i = threadIdx.x; i < n; i += blockDim.x) y[base + i] = 2 * x[base + i];\n}\n";
  for (const char* base : {"const long base = (long)blockIdx.x * n;", "int base = blockIdx.x * n;"}) {
    const auto found =
        counts(problem("f.cu", head + base + tail + "void run(float* x, float* y) { f<<<512, 128>>>(x, y, 4096); }\n"));
    EXPECT_EQ(found, counts(problem("f.cu", head + "  for (int i = threadIdx.x; i < n; i += blockDim.x)\n"
                                                   "    y[blockIdx.x * n + i] = 2 * x[blockIdx.x * n + i];\n}\n"
                                                   "void run(float* x, float* y) { f<<<512, 128>>>(x, y, 4096); }\n")))
        << base;
    EXPECT_THAT(found, testing::Each(HasSubstr("*"))) << base;
  }
}

TEST_F(Draft, ReadsACastInAnyNotationAsItsOperand) {
  const auto draft_of = [&](const std::string& base) {
    return draft("f.cu",
                 "__global__ void f(const float* x, float* y, int n) {\n  __shared__ char raw[sizeof(int) * 4];\n"
                 "  const size_t base = " +
                     base +
                     ";\n  for (int i = threadIdx.x; i < n; i += blockDim.x) y[base + i] = 2 * x[base + i];\n}\n"
                     "void run(float* x, float* y) {\n  const int systems = 4096;\n"
                     "  f<<<systems, 128>>>(x, y, 512);\n}\n")
        .text;
  };
  const std::string plain = draft_of("blockIdx.x * n");
  const Problem problem = parse_problem(plain, folder_ / "p.toml");
  ASSERT_EQ(problem.kernel().launch.grid.size(), 1u) << plain;
  EXPECT_EQ(problem.kernel().launch.grid[0].evaluate(problem.constants).as_integer(), 4096) << plain;
  for (const char* base :
       {"(size_t)blockIdx.x * n", "(size_t)(blockIdx.x) * n", "(std::int64_t)blockIdx.x * n", "size_t(blockIdx.x) * n",
        "std::size_t(blockIdx.x) * n", "std::size_t{blockIdx.x} * n", "int64_t(blockIdx.x) * n", "int(blockIdx.x) * n",
        "unsigned (blockIdx.x) * n", "static_cast<size_t>(blockIdx.x) * n",
        "static_cast<unsigned long long>( blockIdx.x ) * n", "static_cast<std::uint64_t>(blockIdx.x) * n",
        "size_t(int(blockIdx.x)) * n", "blockIdx.x * (size_t)n", "blockIdx.x * size_t(n)",
        "int64_t(blockIdx.x) * int64_t(n)", "size_t(blockIdx.x * n)"})
    EXPECT_EQ(draft_of(base), plain) << base;
}

TEST_F(Draft, KeepsABlockOfNamedConstants) {
  const ProblemDraft copy = draft("copy.cu",
                                  "constexpr int TX = 32, TY = 8;\nstatic const int RADIUS = 1;\n"
                                  "__global__ void copy(const float* x, float* y, int width, int height) {\n"
                                  "  int i = blockIdx.x * TX + threadIdx.x, j = blockIdx.y * TY + threadIdx.y;\n"
                                  "  if (i + RADIUS < width && j < height) y[j * width + i] = x[j * width + i];\n}\n");
  const Launch launch = parse_problem(copy.text, folder_ / "problem.toml").kernel().launch;
  ASSERT_EQ(launch.block.size(), 2u);
  EXPECT_EQ(launch.block[0].evaluate(Constants{}), Value(32));
  EXPECT_EQ(launch.block[1].evaluate(Constants{}), Value(8));
  EXPECT_THAT(copy.questions, Contains(HasSubstr("TX is fixed")));
  EXPECT_THAT(copy.questions, Not(Contains(HasSubstr("RADIUS is fixed"))));
}

// Other values would select the same branch again.
TEST_F(Draft, TakesTheValuesThatTheSourceComparesWith) {
  const auto values = [&](const std::string& before, const std::string& body) {
    const Problem scale = problem("scale.cu", before +
                                                  "__global__ void scale(float* x, int n) {\n"
                                                  "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n" +
                                                  body + "\n}\n");
    return std::ranges::find(scale.parameters, std::string("WAY"), &Parameter::name)->values;
  };
  const std::string guarded = "#ifndef WAY\n#define WAY 4\n#endif\n", one = "#if WAY == 4\n  if (i < n) x[i] *= 2;\n#";
  const std::string all = "else\n  if (i < n) x[i] *= 3;\n#endif";
  EXPECT_THAT(values(guarded, one + all), ElementsAre(Value(1), Value(4)));
  EXPECT_THAT(values(guarded, one + "elif WAY == 7\n  if (i < n) x[i] *= 5;\n#" + all),
              ElementsAre(Value(4), Value(7)));
  EXPECT_THAT(values("", one + "elif WAY == 7\n  if (i < n) x[i] *= 5;\n#" + all), ElementsAre(Value(4), Value(7)));
  EXPECT_THAT(values(guarded, one + "elif WAY == 7\n  if (i < n) x[i] *= 5;\n#else\n  x[i * WAY] = 0;\n#endif"),
              ElementsAre(Value(1), Value(4), Value(7)));
  // one comparison among other uses names no list
  EXPECT_GT(values(guarded, one + "else\n  if (i * WAY < n) x[i * WAY] *= 3;\n#endif").size(), 2u);
}

TEST_F(Draft, ADimensionWithoutThreadsHasOneThreadInABlock) {
  const std::string scale =
      "__global__ void scale(const float* x, float* y, int rows, int columns) {\n"
      "  const int c = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  const int r = blockIdx.y;\n  if (c < columns && r < rows) y[r * columns + c] = 2 * x[r * columns + c];\n}\n";
  const Problem kernel = problem("scale.cu", scale);
  EXPECT_THAT(parameters(kernel), ElementsAre("BLOCK_SIZE_X"));
  EXPECT_EQ(kernel.kernel().launch.block.size(), 1u);
  ASSERT_EQ(kernel.kernel().launch.grid.size(), 2u);
  EXPECT_EQ(kernel.kernel().launch.grid[1].text(), "ROWS");
  const ProblemDraft launched = draft("launched.cu", scale +
                                                         "void run(float* x, float* y, int h, int w) {\n"
                                                         "  dim3 block(256, 1), grid((w + block.x - 1) / block.x, h);\n"
                                                         "  scale<<<grid, block>>>(x, y, h, w);\n}\n");
  EXPECT_THAT(launched.text, HasSubstr("grid = [\"(COLUMNS + BLOCK_SIZE_X - 1) // BLOCK_SIZE_X\", \"ROWS\"]"));
  EXPECT_THAT(launched.questions, Not(Contains(HasSubstr("grid: "))));
  const Problem rows =
      problem("rows.cl",
              "#ifndef ROWS_EACH\n#define ROWS_EACH 4\n#endif\n"
              "kernel void scale(global float* x, int rows, int columns) {\n"
              "  const int c = get_global_id(0);\n"
              "  for (int r = get_group_id(1) * ROWS_EACH; r < (get_group_id(1) + 1) * ROWS_EACH; ++r)\n"
              "    if (c < columns && r < rows) x[r * columns + c] *= 2;\n}\n");
  EXPECT_EQ(rows.kernel().launch.block.size(), 1u);
  EXPECT_THAT(parameters(rows), testing::UnorderedElementsAre("BLOCK_SIZE_X", "ROWS_EACH"));
  ASSERT_EQ(rows.kernel().launch.grid.size(), 2u);
  EXPECT_THAT(rows.kernel().launch.grid[1].text(), HasSubstr("ROWS_EACH"));

  const std::string channels =
      "#define PER 4\n__global__ void gain(const float* x, const float* g, float* y, int n) {\n"
      "  const int ch = blockIdx.y, base = blockIdx.x * blockDim.x * PER + threadIdx.x;\n"
      "  for (int p = 0; p < PER; ++p) {\n    const int i = base + p * blockDim.x;\n"
      "    if (i < n) y[ch * n + i] = g[ch] * x[ch * n + i];\n  }\n}\n";
  const Problem gain = problem("gain.cu", channels);
  ASSERT_EQ(gain.kernel().launch.grid.size(), 2u);
  EXPECT_EQ(gain.kernel().launch.grid[0].text(), "((N_SIZE + 4 - 1) // 4 + BLOCK_SIZE_X - 1) // BLOCK_SIZE_X");
  EXPECT_EQ(gain.kernel().launch.grid[1].text(), "CHS");
  EXPECT_THAT(counts(gain), ElementsAre("CHS * N_SIZE", "CHS", "CHS * N_SIZE"));
  const Problem given =
      problem("given.cu", channels +
                              "void run(float* x, float* g, float* y) {\n  int n = 4096, channels = 32;\n"
                              "  gain<<<dim3((n + 1023) / 1024, channels), 256>>>(x, g, y, n);\n}\n");
  EXPECT_EQ(given.constants.at("CHS"), Value(32));
}

TEST_F(Draft, KeepsABlockThatTheKernelHoldsAsANumber) {
  const char* source = R"(
#define WARP 32
struct alignas(8) Pair { float a, b; };
__global__ void norms(const float* x, float* y, int n) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += WARP) sum += x[row * n + i] * x[row * n + i];
  for (int k = WARP / 2; k > 0; k /= 2) sum += __shfl_xor_sync(0xffffffff, sum, k);
  if (threadIdx.x == 0) y[row] = sum;
}
#include <vector>
int main() {
  int n = 1024, rows = 4096;
  dim3 block(WARP, 4);
  norms<<<rows / 4, block>>>(x, y, n);
}
)";
  const ProblemDraft norms = draft("norms.cu", source);
  EXPECT_THAT(norms.text, HasSubstr("block = [\"32\", "));
}

TEST_F(Draft, KeepsTheSpellingOfKernelTuner) {
  const char* source =
      "__global__ void f(float* x, int n) { int i = blockIdx.x * block_size_x + threadIdx.x;\n"
      "  if (i < n) x[i] *= 2; }\n";
  EXPECT_THAT(parameters(problem("f.cu", source)), ElementsAre("block_size_x"));
}

TEST_F(Draft, RefusesWhatItCannotDescribe) {
  EXPECT_THROW(draft("a.f90", "subroutine f\n"), UserError);
  EXPECT_THROW(draft("none.cu", "int f(int x) { return x; }"), UserError);
  EXPECT_THROW(draft("image.cl", "kernel void f(read_only image2d_t x, global float* y) { y[0] = 1; }"), UserError);
  const char* two = "__global__ void f(float* x) { x[0] = 1; }\n__global__ void g(float* x) { x[0] = 1; }";
  EXPECT_THROW(draft("two.cu", two), UserError);
  EXPECT_EQ(draft("two.cu", two, "g").kernel, "g");
  EXPECT_THROW(draft("two.cu", two, "h"), UserError);
  const auto with_host = [&](const std::string& program) {
    return draft_problem_from_text(two, folder_ / "two.cu", "", folder_, {folder_ / "main.cu", program});
  };
  EXPECT_EQ(with_host("int main() { g<<<1, 64>>>(x); /* not f */ }").kernel, "g");
  EXPECT_THROW(with_host("int main() { f<<<1, 64>>>(x); g<<<1, 64>>>(x); }"), UserError);
  EXPECT_THROW(draft_problem(folder_ / "absent.cu", "", folder_), UserError);
}

TEST_F(Draft, FindsTheKernelInAHeaderOfTheSource) {
  const std::string kernel =
      "#pragma once\n#define BINS 8\n__global__ void f(float* x, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) x[i] = BINS;\n}\n";
  EXPECT_EQ(problem("f.cuh", kernel).kernel().source_for(Language::cuda)->file.extension(), ".cuh");
  std::ofstream(folder_ / "g.h") << kernel;
  std::ofstream(folder_ / "nested.h") << "#include \"g.h\"\n";
  const std::string launch = "int main() { int n = 5000; f<<<(n + 255) / 256, 256>>>(x, n); }\n";
  const std::string other = "__global__ void other(float* x) { x[0] = 1; }\n";
  for (const std::string& own : {std::string(), other}) {
    const Problem found = problem("main.cu", own + "#include \"g.h\"\n" + launch, own.empty() ? "" : "f");
    EXPECT_EQ(found.kernel().function.text(), "f");
    EXPECT_EQ(found.kernel().source_for(Language::cuda)->file.filename(), "main.cu");
    EXPECT_EQ(found.constants.at("N_SIZE").as_integer(), 5000);
  }
  EXPECT_THAT(draft("main.cu", "#include \"g.h\"\n" + launch).questions, Contains(HasSubstr("g.h:2: BINS")));
  EXPECT_EQ(problem("main.cu", "#include \"g.h\"\n" + other).kernel().function.text(), "other");
  // which the run-time compiler does not read, or which another header includes
  for (const std::string include : {"#ifndef __CUDACC_RTC__\n#include \"g.h\"\n#endif\n", "#include \"nested.h\"\n"})
    EXPECT_THAT(error_of([&] { (void)draft("main.cu", include + launch); }), HasSubstr("g.h"));
}

TEST_F(Draft, DescribesArraysAndVectorsInAStructureByTheirMembers) {
  const Problem move =
      problem("move.cu",
              "struct __attribute__((packed)) Box { int n; float h[2]; float2 to; };\n"
              "__global__ void move(Box b, float4 v, float* x) {\n  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
              "  if (i < b.n) x[i] = b.h[0] * v.x + b.h[1] * v.w + b.to.y;\n}\n"
              "void run(float* x) {\n  Box box{5000, {0.5f, 2.0f}, {1.0f, 7.0f}};\n"
              "  move<<<40, 128>>>(box, make_float4(1, 2, 3, 4), x);\n}\n");
  const auto& arguments = move.kernel().arguments;
  std::vector<double> values;
  for (const Argument& argument : {arguments[0], arguments[1]})
    for (const Field& field : argument.fields) values.push_back(field.value.evaluate(move.constants).as_real());
  EXPECT_THAT(values, ElementsAre(5000, 0.5, 2, 1, 7, 1, 2, 3, 4));
  EXPECT_EQ(arguments[1].type_name, "float4");
  EXPECT_EQ(size_of(problem("v.cl", "kernel void v(int3 from, global int* x) { x[get_global_id(0)] = from.z; }")
                        .kernel()
                        .arguments[0]
                        .fields),
            16u);
  const Problem scale = problem("scale.c",
                                "#include <complex.h>\nstruct P { double complex z; };\nvoid scale(double complex by, "
                                "struct P p, int n, double* x) { for (int i = 0; i < n; ++i) x[i] *= by * p.z; }\n");
  for (const Argument& argument : {scale.kernel().arguments[0], scale.kernel().arguments[1]})
    EXPECT_EQ(size_of(argument.fields), 16u);
}

TEST_F(Draft, AStructureWithAnAttributeIsNoMacro) {
  EXPECT_THAT(
      parameters(problem("p.cu",
                         "struct alignas(64) POINT { float x; };\n__global__ void f(POINT p, float* x, int n) {\n"
                         "  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = p.x;\n}\n")),
      ElementsAre("BLOCK_SIZE_X"));
}

TEST_F(Draft, StatesWhyAStructureIsNotDescribedByItsMembers) {
  for (const auto& [structure, reason] :
       {std::pair("struct Part { char kind; double x; } __attribute__((packed));", "packed"),
        std::pair("struct Part { float* out; int n; };", "out"),
        std::pair("struct Part { cuda::std::array<int, 3> h; int n; };", "array<int"),
        std::pair("struct alignas(64) Part { int n; };", "alignas")})
    EXPECT_THAT(
        draft("a.cu", fmt::format("{}\n__global__ void f(Part a, float* x) {{ x[threadIdx.x] = a.n; }}\n", structure))
            .text,
        ContainsRegex(fmt::format("CHECK: a: [^\n]*{}", reason)));
}

TEST_F(Draft, ABlockHasNoMoreThreadsThanTheLaunchBound) {
  const std::string body = "(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = 1; }";
  const Problem line =
      problem("line.cu", "constexpr int kThreads = 192;\n__global__ void __launch_bounds__(kThreads) f" + body);
  EXPECT_THAT(values(line, "BLOCK_SIZE_X"), ElementsAre(32, 64, 128, 192));
  EXPECT_THAT(draft("plane.cu",
                    "__global__ void __launch_bounds__(128, 2) g(float* x, int n, int m) {\n"
                    "  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;\n"
                    "  if (i < n && j < m) x[j * n + i] = 1;\n}\n")
                  .text,
              ContainsRegex("restrictions = [^\n]*BLOCK_SIZE_X \\* BLOCK_SIZE_Y <= 128"));
  // a bound that the parameters change is none of them
  for (const char* bound : {"TX * TY", "MOST"})
    EXPECT_THAT(
        draft("tile.cu", fmt::format("#ifndef TX\n#define TX 128\n#endif\n#ifndef TY\n#define TY 1\n#endif\n"
                                     "#define MOST (TX * TY)\n"
                                     "__global__ void __launch_bounds__({}) h(float* x, int n, int m) {{\n"
                                     "  int i = blockIdx.x * TX + threadIdx.x, j = blockIdx.y * TY + threadIdx.y;\n"
                                     "  if (i < n && j < m) x[j * n + i] = 1;\n}}\n",
                                     bound))
            .text,
        Not(ContainsRegex("<= 128")));
}

TEST_F(Draft, SeesWritesOfAFunctionThatTakesAReference) {
  const Problem factor =
      problem("factor.cpp",
              "static int solve(double* a, int n, double& sum, const double& by) { sum = by; return a[n - 1] > 0; }\n"
              "void factor(double* a, int n, int* info, double* sum, double* by) {\n"
              "  for (int i = 0; i < n; ++i) a[i] = i;\n  *info = solve(a, n, *sum, *by);\n}\n"
              "int main() { factor(a, 331, &info, &sum, &by); }\n");
  const auto& arguments = factor.kernel().arguments;
  EXPECT_NE(arguments[3].access, Access::read);
  EXPECT_EQ(arguments[4].access, Access::read);
}

TEST_F(Draft, HasNoSizeThatNothingUses) {
  const Problem one = problem("one.cpp", "void one(double* a, int k) { *a = k; }\n");
  EXPECT_EQ(one.constants.count("N_SIZE"), 0u);
}

TEST_F(Draft, CountsWhatVectorLoadsReach) {
  const Problem shift = problem("shift.cl",
                                "kernel void shift(global const float* from, global float* to, uint nx, uint ny) {\n"
                                "  const uint x = get_global_id(0), y = get_global_id(1);\n"
                                "  if (x < nx && y < ny) vstore3(vload3(y * nx + x, from), y * nx + x, to);\n}\n");
  for (const Argument& argument : {shift.kernel().arguments[0], shift.kernel().arguments[1]})
    EXPECT_EQ(argument.count.evaluate(shift.constants).as_integer(), 3 * 1024 * 1024);
  EXPECT_EQ(shift.kernel().arguments[0].access, Access::read);
  EXPECT_EQ(shift.kernel().arguments[1].access, Access::write);
}

TEST_F(Draft, TakesTheBoundOfALoopOverLocalMemoryAndOfAMinimum) {
  const std::string text =
      draft("histogram.cl",
            "#define BINS 64\n#ifndef ZP\n#define ZP 1\n#endif\n"
            "kernel void histogram(global const short* in, global uint* bins, local uint* lh, int nx, int nz) {\n"
            "  const int x = get_global_id(0), z0 = get_global_id(1) * ZP;\n"
            "  for (int b = get_local_id(0); b < BINS; b += get_local_size(0)) lh[b] = 0;\n"
            "  if (x < nx)\n    for (int z = z0; z < min(z0 + ZP, nz); ++z) {\n"
            "      const short b = in[z * nx + x];\n      atomic_inc(&lh[b]);\n    }\n"
            "  for (int b = get_local_id(0); b < BINS; b += get_local_size(0)) atomic_add(&bins[b], lh[b]);\n}\n")
          .text;
  EXPECT_THAT(text, HasSubstr("local_count = \"64\""));
  EXPECT_THAT(text, Not(ContainsRegex("NZ[A-Z_]* = 1 ")));
  EXPECT_THAT(text, Not(ContainsRegex("name = \"in\"[^\n]*loop")));
}

TEST_F(Draft, KeepsATemplateArgumentThatIsNoNumber) {
  std::ofstream(folder_ / "main.cu") << "void run(float* x) { f<Layout::SoA, 64><<<100, 64>>>(x, 6400); }\n";
  std::ofstream(folder_ / "f.cu")
      << "enum class Layout { AoS, SoA };\ntemplate <Layout L, int BX>\n"
         "__global__ void f(float* x, int n) {\n"
         "  int i = blockIdx.x * BX + threadIdx.x; if (i < n) x[i] = L == Layout::SoA;\n}\n";
  const Problem f =
      parse_problem(draft_problem(folder_ / "f.cu", "", folder_, folder_ / "main.cu").text, folder_ / "problem.toml");
  ASSERT_EQ(f.parameters[0].values.size(), 1u);
  EXPECT_EQ(f.parameters[0].values[0].to_string(), "Layout::SoA");
}

TEST_F(Draft, OfDamagedSourceIsRefusedOrReadable) {
  const std::string whole =
      "template <int N> __global__ void f(float* x, int n) { int i = blockIdx.x; if (i < n) x[i * n + 1] = N; }";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    try {
      (void)problem("cut.cu", whole.substr(0, length));
    } catch (const UserError&) {
    }
  }
}

}  // namespace
}  // namespace ergotune
