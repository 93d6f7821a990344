// The way from inside an unmodified program to the command that started it. Nothing here throws; without a command, or
// when it has gone, everything is a no.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>

#include "capture/messages.hpp"

namespace ergotune::inject {

/// "opencl", "cuda" or "hip": each library says which it is.
const char* interface_name();

/// What the command wants.
struct CaptureRequest {
  enum class Mode { nothing, list, capture, run } mode = Mode::nothing;
  /// A kernel's name or pattern (fnmatch); empty: each kernel, and its time.
  std::string kernel;
  /// Launches of a kernel to pass over.
  std::size_t skip = 0;
  /// Where captures go, in folders of their own.
  std::string folder;
  /// Of one capture's buffers.
  std::size_t most_bytes = std::size_t{1} << 30;
  bool tune_rounding = false;
  /// The file that the user names as the source of kernels that were compiled before the program ran; may be empty.
  std::string source;
};

class Session {
 public:
  /// The process's own, connected on first use; lives for ever, because programs end in many ways.
  static Session& get();

  const CaptureRequest& wishes() const { return wishes_; }
  bool wants(CaptureRequest::Mode mode) const { return wishes_.mode == mode; }
  bool wants_kernel(const std::string& name) const;
  /// How long each kernel takes: where they are listed, or the one with the most time is captured.
  bool wants_times() const {
    return wants(CaptureRequest::Mode::list) || (wants(CaptureRequest::Mode::capture) && wishes_.kernel.empty());
  }

  void send(const capture::Message& message);
  /// An empty answer when there is none.
  capture::Message ask(const capture::Message& message);

 private:
  Session();
  void connect();
  /// The answer where it is `answered`; an empty one, and no connection any more, where the command is gone.
  capture::Message exchange(const capture::Message& message, bool answered);
  /// A child of fork() has a connection of its own.
  void after_fork();

  std::mutex mutex_;
  std::string path_;
  std::optional<capture::Stream> stream_;
  int process_ = 0;
  CaptureRequest wishes_;
};

/// What must never reach the program: what it cannot do is left undone.
template <class F>
void quietly(F&& f) noexcept {
  try {
    f();
  } catch (...) {
  }
}

/// The program as the command's user knows it: its arguments, shortened.
std::string program_command();

}  // namespace ergotune::inject
