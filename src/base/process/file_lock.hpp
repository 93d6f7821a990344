// A lock between processes: an advisory one of the system's (flock) on a file, which lets go of it when its holder ends
// in any way. The file holds the holder's process id, for messages.
#pragma once

#include <filesystem>
#include <system_error>

namespace ergotune {

class FileLock {
 public:
  /// Takes nothing yet. `for_all`: whoever on this machine comes next may take it too.
  explicit FileLock(std::filesystem::path file, bool for_all = false) : file_(std::move(file)), for_all_(for_all) {}
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// False where another holds it. Where the file cannot be made: true with `trouble` set, and nothing is held; a file
  /// system that has no locks counts as one that gave it.
  bool take(std::error_code& trouble);
  /// After take() said false: the process that holds it; 0 where that is not known.
  long holder() const { return holder_; }

 private:
  std::filesystem::path file_;
  bool for_all_;
  int descriptor_ = -1;
  long holder_ = 0;
};

}  // namespace ergotune
