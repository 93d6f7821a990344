// A process that is no relative of ours: of a session of its own.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ergotune/error.hpp"

namespace ergotune {

class Stranger {
 public:
  Stranger() {
    int left[2];
    if (::pipe(left) != 0) throw Error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setsid();
      (void)!::write(left[1], "x", 1);
      ::pause();
      ::_exit(0);
    }
    char byte;
    (void)!::read(left[0], &byte, 1);  // it has left our session
    for (const int end : left) ::close(end);
  }
  ~Stranger() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

}  // namespace ergotune
