// The limits from which on glibc takes memory from the system for each allocation, and gives it back.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

namespace ergotune {

/// Gives a function on the CPU the limits that it would have in a program of its own. There glibc raises them to the
/// largest block that was freed (mallopt(3), M_MMAP_THRESHOLD), so that in a process that measures many configurations
/// they would depend on the earlier ones. While it exists, the limits have their defaults and larger blocks are
/// observed, by looking again and again; then they are raised to the largest one. Does nothing where the user sets them
/// (MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_, GLIBC_TUNABLES). Changes the whole process.
class AllocationLimits {
 public:
  AllocationLimits();
  ~AllocationLimits();
  AllocationLimits(const AllocationLimits&) = delete;
  AllocationLimits& operator=(const AllocationLimits&) = delete;
  /// Whether there was new memory for a larger block that no look has seen: another launch may show it.
  bool missed() const;

 private:
  void observe();
  static long faults();

  std::atomic<bool> observes_{false}, ends_{false};
  std::atomic<std::size_t> largest_{0};
  long faults_before_ = 0;
  std::thread observer_;
};

}  // namespace ergotune
