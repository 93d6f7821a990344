// The standard error of a child process, and how it ended.
#pragma once

#include <sys/types.h>

#include <string>

namespace ergotune {

/// How a process ended.
struct ProcessEnding {
  std::string words;        ///< "signal 11 (Segmentation fault)", "exit code 3"
  int signal = 0;           ///< 0: it ended by itself
  std::string output_tail;  ///< the end of its standard error, as far as it is about the last request
  /// `message` with the last words below it.
  std::string added_to(std::string message) const {
    return output_tail.empty() ? message : message + "\n" + output_tail;
  }
};

/// A child's standard error: memory, so that a crash in the middle of a word loses nothing.
class ChildLog {
 public:
  ChildLog();
  ChildLog(const ChildLog&) = delete;
  ChildLog& operator=(const ChildLog&) = delete;
  ~ChildLog();
  int descriptor() const { return descriptor_; }

  /// What is in it now is no longer of interest.
  void begin();
  /// Of a child with this status, as waitpid() gives it.
  ProcessEnding ending(int status) const;

 private:
  std::string end_of_text() const;

  int descriptor_ = -1;
  off_t begin_ = 0;
};

}  // namespace ergotune
