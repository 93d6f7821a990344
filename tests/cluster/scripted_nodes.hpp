// Nodes whose agents are threads of the test: a fleet without processes.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cluster/node_transport.hpp"
#include "ergotune/problem.hpp"
#include "evaluate/live/channel.hpp"

namespace ergotune::test {

/// What the agents of one node do. Called from their threads.
struct NodeScript {
  std::string name = "n1", version = "test";
  agents::Opened opened;
  std::vector<std::string> needs;
  /// What to say to a request, in order; nothing: it keeps silent.
  std::function<std::vector<agents::Message>(const agents::Ask&)> ask;
  /// Bytes instead of a message, once they are not empty; the link ends after them.
  std::function<std::string(const agents::Ask&)> bytes;
  /// When the session says that all has ended, before the agent does.
  std::function<void()> stop = [] {};
  bool beats = true, greets = true;
  std::atomic<bool> gone{false};  ///< ends at once, and does not come back
  std::atomic<int> started{0}, stopped{0};
  std::vector<agents::Piece> pieces;

  explicit NodeScript(const std::string& node = "n1") : name(node) {
    DeviceInfo device;
    device.id = "scripted:0";
    device.name = "Scripted Board";
    device.backend = "scripted";
    device.uuid = "GPU-" + node;
    opened.devices = {device};
    opened.compiler = "scripted compiler";
    opened.description = "scripted";
    opened.problem = serialise(Problem());
    opened.capacity = 4;
    ask = [this](const agents::Ask& a) { return std::vector<agents::Message>{begun(a), answer(a)}; };
  }
  static agents::Message begun(const agents::Ask& a) { return agents::StartedMessage{a.request.id, 0}; }
  agents::Message answer(const agents::Ask& a) const {
    agents::Answer answer;
    answer.id = a.request.id;
    answer.board = opened.devices.front().uuid;
    answer.measurement.quantities["time"] = {
        static_cast<double>(a.request.index), 0, 1, "script", "", Provenance::measured};
    return answer;
  }
  StartNode starter();
};

class ScriptedNodeLink final : public NodeTransport {
 public:
  ScriptedNodeLink(NodeScript& script, protocol::SocketPair sockets)
      : pipe_(sockets.ours, sockets.ours, agents::kPreamble), thread_([this, &script, theirs = sockets.theirs] {
          agents::Pipe pipe(theirs, theirs);
          serve(script, pipe);
          ++script.stopped;
        }) {}
  ~ScriptedNodeLink() override { end(); }
  agents::Pipe& pipe() override { return pipe_; }
  std::string end() override {
    end_ = true;
    ::shutdown(pipe_.in(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    return "exit code 0";
  }

 private:
  void serve(NodeScript& script, agents::Pipe& pipe) {
    if (script.greets) pipe.send(agents::Hello{script.version, script.name});
    auto said = std::chrono::steady_clock::now();
    while (!end_ && !pipe.ended() && !script.gone) {
      pollfd polled{pipe.in(), static_cast<short>(POLLIN | (pipe.unsent() > 0 ? POLLOUT : 0)), 0};
      ::poll(&polled, 1, 10);
      pipe.flush();
      while (auto message = pipe.next())
        if (!take(script, pipe, *message)) return;
      if (script.beats && std::chrono::steady_clock::now() - said > std::chrono::milliseconds(50)) {
        pipe.send(agents::Beat{});
        said = std::chrono::steady_clock::now();
      }
    }
  }
  static bool take(NodeScript& script, agents::Pipe& pipe, const agents::Message& message) {
    if (std::holds_alternative<agents::Open>(message)) {
      if (script.needs.empty()) {
        pipe.send(script.opened);
      } else {
        pipe.send(agents::Need{script.needs});
      }
    } else if (const auto* piece = std::get_if<agents::Piece>(&message)) {
      script.pieces.push_back(*piece);
      if (piece->last && piece->hash == script.needs.back()) pipe.send(script.opened);
    } else if (const auto* cancel = std::get_if<agents::Cancel>(&message)) {
      pipe.send(agents::Cancelled{cancel->number});
    } else if (const auto* asked = std::get_if<agents::Ask>(&message)) {
      if (script.bytes) {
        if (const std::string bytes = script.bytes(*asked); !bytes.empty()) {
          (void)!::write(pipe.out(), bytes.data(), bytes.size());
          return false;
        }
      }
      for (const agents::Message& said : script.ask(*asked)) {
        if (std::holds_alternative<agents::Stop>(said)) return false;  // it dies
        pipe.send(said);
      }
    } else if (std::holds_alternative<agents::Stop>(message)) {
      script.stop();
      return false;
    }
    return true;
  }

  std::atomic<bool> end_{false};
  agents::Pipe pipe_;
  std::thread thread_;
};

inline StartNode NodeScript::starter() {
  return [this]() -> std::unique_ptr<NodeTransport> {
    if (gone) throw Error("there is no such node");
    ++started;
    return std::make_unique<ScriptedNodeLink>(*this, protocol::make_socket_pair());
  };
}

}  // namespace ergotune::test
