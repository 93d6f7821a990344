// The limits of glibc's allocator: above which size a block is new memory from the system, and how much free memory it
// keeps.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

namespace ergotune {

/// Sets the limits as a program that calls one function has them. glibc raises them to the largest block that was freed
/// (mallopt(3), M_MMAP_THRESHOLD), so that in a process that measures many configurations they would depend on the
/// earlier ones. The constructor sets the defaults; a thread polls glibc for larger blocks until the destructor, which
/// raises the limits to the largest one. Does nothing where the user sets them
/// (MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_, GLIBC_TUNABLES). Changes the whole process.
class AllocationLimits {
 public:
  AllocationLimits();
  ~AllocationLimits();
  AllocationLimits(const AllocationLimits&) = delete;
  AllocationLimits& operator=(const AllocationLimits&) = delete;
  /// Whether there were page faults as for a larger block, but the thread has seen none: another launch may show it.
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
