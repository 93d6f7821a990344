// An agent's messages to and from its session, in a thread of their own: the session gets heartbeats, whatever the
// agent is busy with.
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
  /// Writes what was sent, as far as the other end still reads.
  ~SessionTransport();
  SessionTransport(const SessionTransport&) = delete;
  SessionTransport& operator=(const SessionTransport&) = delete;

  void send(const agents::Message& message);
  /// The next message; nullopt after `seconds` without one, or when the session is gone.
  std::optional<agents::Message> receive(double seconds);
  /// The session is gone: its pipe has ended, its messages are garbage, or nothing came from it for a long time.
  bool ended() const;
  /// From now on sends six heartbeats in `silence` s, as long as tick() is called; and takes the session for gone after
  /// four times that.
  void keep_beating(double silence);
  /// The agent works on.
  void tick();
  /// The agent is busy with something that may take so long (s) without a tick.
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
