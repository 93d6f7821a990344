// The limits of glibc's allocator: above which size a block is new memory from the system, and how much free memory it
// keeps.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

namespace ergotune {

/// Sets the limits as a program that calls one function has them. glibc raises them to the largest block that was freed
/// (mallopt(3), M_MMAP_THRESHOLD), so that in a process that measures many configurations they would depend on the
/// earlier ones. The constructor sets those of begin(); a thread polls glibc for larger blocks until the destructor,
/// which raises the limits to the largest one. Does nothing where the user sets them
/// (MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_, GLIBC_TUNABLES). Changes the whole process.
class AllocationLimits {
 public:
  /// Limits begin with what this process has now, after what any program does before it calls the function (imports,
  /// inputs); without a call with glibc's defaults. Finds them out by allocating blocks, which it does not touch.
  static void begin();
  AllocationLimits();
  ~AllocationLimits();
  AllocationLimits(const AllocationLimits&) = delete;
  AllocationLimits& operator=(const AllocationLimits&) = delete;
  /// Whether another launch may show a larger block: the thread has seen one above the limits (where it has seen
  /// several at a time, it knows their mean only), or none in spite of page faults as for one.
  bool missed() const;
  /// Raises the limits to the largest block that was seen: the thread sees only larger ones from now on.
  void raise();

 private:
  void observe();
  static long faults();

  std::atomic<bool> observes_{false}, ends_{false};
  std::atomic<std::size_t> largest_{0};
  long faults_before_ = 0;
  std::size_t limit_;
  std::thread observer_;
};

}  // namespace ergotune
