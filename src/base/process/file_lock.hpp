// A lock between processes: an advisory lock (flock) on a file, released when its holder ends in any way. The file
// contains the holder's process id, for messages.
#pragma once

#include <filesystem>
#include <system_error>

namespace ergotune {

class FileLock {
 public:
  /// Does not take the lock yet. `for_all`: other users of this machine may take it later.
  explicit FileLock(std::filesystem::path file, bool for_all = false) : file_(std::move(file)), for_all_(for_all) {}
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// Returns false if another process holds the lock. If the file cannot be created, returns true, sets `failure`, and
  /// holds nothing. On a file system without locks, the lock counts as taken.
  bool take(std::error_code& failure);
  /// After take() has returned false: the process id of the holder; 0 if unknown.
  long holder() const { return holder_; }

 private:
  std::filesystem::path file_;
  bool for_all_;
  int descriptor_ = -1;
  long holder_ = 0;
};

}  // namespace ergotune
