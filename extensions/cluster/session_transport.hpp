// An agent's messages to and from its session, on a separate thread, so that heartbeats are sent while the agent is
// busy.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "cluster/agent_protocol.hpp"

namespace ergotune {

class SessionTransport {
 public:
  SessionTransport(int in, int out);
  /// Writes queued messages as far as the other end reads them.
  ~SessionTransport();
  SessionTransport(const SessionTransport&) = delete;
  SessionTransport& operator=(const SessionTransport&) = delete;

  void send(const agents::Message& message);
  /// The next message; nullopt if there is none within `seconds`, or if the session is gone.
  std::optional<agents::Message> receive(double seconds);
  /// Whether the session is gone: its pipe is closed, its messages are invalid, or it was silent for too long.
  bool ended() const;
  /// Starts heartbeats, six in `silence` s, which continue as long as tick() is called. The session is considered gone
  /// after four times that silence.
  void keep_beating(double silence);
  /// Reports that the agent is working.
  void tick();
  /// Allows the agent to work for this many s without a tick().
  void allow(double seconds);

 private:
  void loop();
  void beat();

  agents::Stream stream_;
  int wake_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<agents::Message> received_;
  double silence_ = 0, patience_until_ = 0;
  bool ended_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace ergotune
