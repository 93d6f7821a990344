// Nodes whose agents are threads of the test: a cluster without processes.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cluster/node_transport.hpp"
#include "ergotune/problem_file.hpp"

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
  static agents::Message begun(const agents::Ask& a) { return agents::Started{a.request.id, 0}; }
  agents::Message answer(const agents::Ask& a) const {
    agents::Answer answer;
    answer.id = a.request.id;
    answer.gpu = opened.devices.front().uuid;
    answer.measurement.quantities["time"] = {
        static_cast<double>(a.request.index), 0, 1, "script", "", Provenance::measured};
    return answer;
  }
  StartNode starter();
};

class ScriptedAgent final : public NodeTransport {
 public:
  ScriptedAgent(NodeScript& script, SocketPair sockets)
      : NodeTransport(agents::kKind, sockets.ours, agents::kPreamble),
        thread_([this, &script, theirs = sockets.theirs] {
          agents::Stream session(agents::kKind, theirs, theirs);
          serve(script, session);
          ++script.stopped;
        }) {}
  ~ScriptedAgent() override { end(); }
  ProcessEnding end() override {
    end_ = true;
    ::shutdown(stream().in(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    return {"exit code 0", 0, {}};
  }

 private:
  void serve(NodeScript& script, agents::Stream& session) {
    if (script.greets) session.post(agents::Hello{script.version, script.name});
    auto said = std::chrono::steady_clock::now();
    while (!end_ && !session.ended() && !script.gone) {
      pollfd polled{session.in(), session.events(), 0};
      ::poll(&polled, 1, 10);
      session.flush();
      while (auto message = session.next())
        if (!take(script, session, *message)) return;
      if (script.beats && std::chrono::steady_clock::now() - said > std::chrono::milliseconds(50)) {
        session.post(agents::Heartbeat{});
        said = std::chrono::steady_clock::now();
      }
    }
  }
  static bool take(NodeScript& script, agents::Stream& session, const agents::Message& message) {
    if (std::holds_alternative<agents::Open>(message)) {
      if (script.needs.empty()) {
        session.post(script.opened);
      } else {
        session.post(agents::Need{script.needs});
      }
    } else if (const auto* piece = std::get_if<agents::Piece>(&message)) {
      script.pieces.push_back(*piece);
      if (piece->last && piece->hash == script.needs.back()) session.post(script.opened);
    } else if (const auto* cancel = std::get_if<agents::Cancel>(&message)) {
      session.post(agents::Cancelled{cancel->number});
    } else if (const auto* requested = std::get_if<agents::Ask>(&message)) {
      if (script.bytes) {
        if (const std::string bytes = script.bytes(*requested); !bytes.empty()) {
          (void)!::write(session.out(), bytes.data(), bytes.size());
          return false;
        }
      }
      for (const agents::Message& said : script.ask(*requested)) {
        if (std::holds_alternative<agents::Stop>(said)) return false;  // it dies
        session.post(said);
      }
    } else if (std::holds_alternative<agents::Stop>(message)) {
      script.stop();
      return false;
    }
    return true;
  }

  std::atomic<bool> end_{false};
  std::thread thread_;
};

inline StartNode NodeScript::starter() {
  return [this]() -> std::unique_ptr<NodeTransport> {
    if (gone) throw Error("there is no such node");
    ++started;
    return std::make_unique<ScriptedAgent>(*this, make_socket_pair());
  };
}

}  // namespace ergotune::test
