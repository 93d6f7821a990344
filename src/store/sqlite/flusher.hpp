// Brings the write-ahead log to the disk from a thread of its own. A row that SQLite has committed survives
// the death of this process at once, since the kernel holds it; only the death of the machine needs the disk.
// Waiting for the disk at every row (5 ms on a virtual machine's) would cost more than measuring a small
// kernel.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <thread>

namespace ergotune {

class Flusher {
 public:
  explicit Flusher(std::filesystem::path log);
  ~Flusher();
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;
  /// Something was written; it is flushed within a tenth of a second, which does not hold the caller up.
  void wrote();
  /// Returns when everything written before is on the disk.
  void wait();

 private:
  void run();
  std::filesystem::path log_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t written_ = 0, flushed_ = 0, awaited_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace ergotune
