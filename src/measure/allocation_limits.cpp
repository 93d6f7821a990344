#include "measure/allocation_limits.hpp"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "base/process/environment.hpp"

namespace ergotune {
namespace {

constexpr std::size_t kDefaultLimit = 128 << 10, kLargestLimit = 32 << 20;  // of glibc's M_MMAP_THRESHOLD, bytes
std::size_t first_limit = kDefaultLimit;                                    // of begin()

/// As struct mallinfo2, which older headers lack.
struct Usage {
  std::size_t arena, free_blocks, fast_blocks, mapped_blocks, mapped_bytes, most, fast_bytes, used, free, top;
};
using Look = Usage (*)();

/// Null before glibc 2.33.
Look mallinfo_of_glibc() {
  static const Look look = reinterpret_cast<Look>(::dlsym(RTLD_DEFAULT, "mallinfo2"));
  return look;
}

bool set_by_user() {
  return std::ranges::any_of(std::array{"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"},
                             [](const char* name) { return !environment_variable(name).empty(); });
}

void set_limits(std::size_t block) {
  ::mallopt(M_MMAP_THRESHOLD, static_cast<int>(block));
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(block > kDefaultLimit ? 2 * block : block));
}

/// Whether glibc takes a block of this size from the system alone. Blocks from memory that it keeps do not show it.
bool is_mapped(std::size_t size, Look look) {
  std::vector<void*> blocks;
  Usage before{}, now{};
  do {
    before = look();
    blocks.push_back(std::malloc(size));
    now = look();
  } while (blocks.back() && now.mapped_blocks == before.mapped_blocks && now.arena == before.arena);
  for (void* block : blocks) std::free(block);
  return now.mapped_blocks > before.mapped_blocks;
}

}  // namespace

void AllocationLimits::begin() {
  const Look look = mallinfo_of_glibc();
  if (set_by_user() || !look) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (first_limit = kDefaultLimit; first_limit < kLargestLimit && !is_mapped(first_limit, look);) first_limit += page;
}

AllocationLimits::AllocationLimits() : limit_(first_limit) {
  if (set_by_user()) return;
  set_limits(limit_);
  ::malloc_trim(0);
  if (!mallinfo_of_glibc()) return;
  observer_ = std::thread([this] { observe(); });
  while (!observes_) std::this_thread::yield();
  faults_before_ = faults();
}

long AllocationLimits::faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

bool AllocationLimits::missed() const {
  if (largest_ > 0) return largest_ > limit_;
  return observer_.joinable() &&
         static_cast<std::size_t>((faults() - faults_before_) * ::sysconf(_SC_PAGESIZE)) > limit_;
}

void AllocationLimits::raise() {
  if (largest_ <= limit_) return;
  limit_ = largest_;
  set_limits(limit_);
}

void AllocationLimits::observe() {
  const Look look = mallinfo_of_glibc();
  Usage before = look();
  for (observes_ = true; !ends_; std::this_thread::yield()) {
    const Usage now = look();
    if (now.mapped_blocks > before.mapped_blocks && now.mapped_bytes > before.mapped_bytes) {
      const std::size_t mean = (now.mapped_bytes - before.mapped_bytes) / (now.mapped_blocks - before.mapped_blocks);
      if (mean <= kLargestLimit) largest_ = std::max(largest_.load(), mean);
    }
    before = now;
  }
}

AllocationLimits::~AllocationLimits() {
  ends_ = true;
  if (!observer_.joinable()) return;
  observer_.join();
  raise();
}

}  // namespace ergotune
