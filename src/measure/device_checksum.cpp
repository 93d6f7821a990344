#include "measure/device_checksum.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "ergotune/error.hpp"

namespace ergotune {
namespace {

constexpr std::size_t kThreads = 256, kMostBlocks = 1024;

/// Words are mixed with their position and summed, so that the sum does not depend on the order of threads.
constexpr const char* kSource = R"(
#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)
typedef ulong Word;
#define GLOBAL __global
#define LOCAL __local
#define THREAD get_local_id(0)
#define BLOCK get_group_id(0)
#define BLOCKS get_num_groups(0)
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
__kernel
#else
typedef unsigned long long Word;
#define GLOBAL
#define LOCAL __shared__
#define THREAD threadIdx.x
#define BLOCK blockIdx.x
#define BLOCKS gridDim.x
#define BARRIER __syncthreads()
extern "C" __global__
#endif
void ergotune_checksum(GLOBAL const unsigned char* data, Word bytes, GLOBAL Word* sums) {
  LOCAL Word parts[THREADS];
  const Word threads = (Word)BLOCKS * THREADS, words = (bytes + 7) / 8;
  const int aligned = ((size_t)data & 7) == 0;
  Word sum = 0;
  for (Word i = (Word)BLOCK * THREADS + THREAD; i < words; i += threads) {
    Word word = 0;
    if (aligned && 8 * i + 8 <= bytes) {
      word = ((GLOBAL const Word*)data)[i];
    } else {
      for (int b = 0; b < 8; ++b)
        if (8 * i + b < bytes) word |= (Word)data[8 * i + b] << (8 * b);
    }
    word = (word ^ (i * 0x9E3779B97F4A7C15)) * 0xD6E8FEB86659FD93;
    word = (word ^ (word >> 32)) * 0xD6E8FEB86659FD93;
    sum += word ^ (word >> 32);
  }
  parts[THREAD] = sum;
  for (int reach = THREADS / 2; reach > 0; reach /= 2) {
    BARRIER;
    if (THREAD < reach) parts[THREAD] += parts[THREAD + reach];
  }
  if (THREAD == 0) sums[BLOCK] = parts[0];
}
)";

}  // namespace

bool DeviceChecksum::ready() {
  if (std::exchange(tried_, true)) return kernel_ != nullptr;
  const std::string& backend = device_.info().backend;
  CompileJob job;
  job.language = backend == "cuda" ? Language::cuda : backend == "hip" ? Language::hip : Language::opencl;
  job.source = kSource;
  job.source_name = "checksum";
  job.function = "ergotune_checksum";
  job.defines = {{"THREADS", std::to_string(kThreads)}};
  job.arguments = {{}, {Argument::Kind::scalar, ElementType::uint64}, {}};
  try {
    sums_ = device_.allocate(kMostBlocks * sizeof(std::uint64_t));
    kernel_ = device_.load(device_.make_compiler()->compile(job));
  } catch (const Error&) {
    kernel_.reset();
  }
  return kernel_ != nullptr;
}

/// Returns the number of blocks that computed a sum.
std::size_t DeviceChecksum::launch(const Buffer& buffer) {
  const std::uint64_t bytes = buffer.bytes();
  const std::size_t blocks = std::clamp<std::size_t>(bytes / (8 * kThreads), 1, kMostBlocks);
  LaunchGeometry geometry;
  geometry.grid[0] = static_cast<std::uint32_t>(blocks);
  geometry.block[0] = kThreads;
  std::vector<KernelArgument> arguments(3);
  arguments[0].buffer = &buffer;
  arguments[1].scalar.resize(sizeof bytes);
  std::memcpy(arguments[1].scalar.data(), &bytes, sizeof bytes);
  arguments[2].buffer = sums_.get();
  kernel_->bind(geometry, arguments);
  device_.launch(*kernel_);
  return blocks;
}

std::optional<std::uint64_t> DeviceChecksum::of(const Buffer& buffer) {
  if (!ready()) return std::nullopt;
  std::vector<std::uint64_t> sums(launch(buffer));
  device_.read(*sums_, std::as_writable_bytes(std::span(sums)));
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

bool DeviceChecksum::sweep(const Buffer& buffer) {
  if (!ready()) return false;
  launch(buffer);
  return true;
}

}  // namespace ergotune
