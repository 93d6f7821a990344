// The standard error of a child process, and how it ended.
#pragma once

#include <sys/types.h>

#include <string>

namespace ergotune {

/// How a process ended.
struct ProcessEnding {
  std::string words;        ///< description: "signal 11 (Segmentation fault)", "exit code 3"
  int signal = 0;           ///< 0: not ended by a signal
  std::string output_tail;  ///< end of its standard error, as far as it belongs to the last request
  /// Returns `message` followed by output_tail.
  std::string added_to(std::string message) const {
    return output_tail.empty() ? message : message + "\n" + output_tail;
  }
};

/// A child's standard error, in memory, so that nothing is lost in a crash.
class ChildLog {
 public:
  ChildLog();
  ChildLog(const ChildLog&) = delete;
  ChildLog& operator=(const ChildLog&) = delete;
  ~ChildLog();
  int descriptor() const { return descriptor_; }

  /// Discards the present contents.
  void begin();
  /// Returns how the child ended; `status` as returned by waitpid().
  ProcessEnding ending(int status) const;

 private:
  std::string end_of_text() const;

  int descriptor_ = -1;
  off_t begin_ = 0;
};

}  // namespace ergotune
