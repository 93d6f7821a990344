// Flushes the write-ahead log to the disk on a separate thread. A row that SQLite has committed survives the death of
// this process, since the kernel holds it; only a crash of the machine requires the disk. Waiting for the disk after
// every row (5 ms on a virtual machine) would take longer than measuring a small kernel.
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
  /// Reports a write. It is flushed within a tenth of a second; the caller does not wait.
  void wrote();
  /// Returns when all reported writes are on the disk.
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
