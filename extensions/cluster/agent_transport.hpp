// The agent's pipe in a thread of its own: whatever the agent is busy with, the session hears that it is there.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "cluster/agent_pipe.hpp"

namespace ergotune {

class AgentTransport {
 public:
  AgentTransport(int in, int out);
  /// What was sent is written, as far as the other end still reads.
  ~AgentTransport();
  AgentTransport(const AgentTransport&) = delete;
  AgentTransport& operator=(const AgentTransport&) = delete;

  void send(const agents::Message& message);
  /// The next message; nullopt after `seconds` without one, or when the session is gone.
  std::optional<agents::Message> receive(double seconds);
  /// The session is gone: its pipe has ended, what it says is garbage, or nothing was heard of it for a long time.
  bool ended() const;
  /// From now on says six times in `silence` s that it is there, as long as tick() is called; and takes the session for
  /// gone after four times that.
  void keep_beating(double silence);
  /// The agent works on.
  void tick();
  /// The agent is busy with something that may take so long (s) without a tick.
  void allow(double seconds);

 private:
  void loop();
  void beat();

  agents::Pipe pipe_;
  int wake_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<agents::Message> received_;
  double silence_ = 0, patience_until_ = 0;
  bool ended_ = false, stop_ = false;
  std::thread thread_;
};

}  // namespace ergotune
