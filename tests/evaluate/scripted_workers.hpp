// Workers that are threads of the test and answer by functions: the live evaluator without processes,
// compilers and devices.
#pragma once

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "evaluate/live/live_evaluator.hpp"

namespace ergotune::test {

/// Something that one thread waits for and another does.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  /// False when it stayed closed for too long.
  bool pass() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

/// What the workers of a test do. Called from their threads.
struct Script {
  DeviceInfo device;
  /// What a worker says first; where it gives nothing the worker ends without a word.
  std::function<std::optional<protocol::Message>(const protocol::Setup&)> ready;
  std::function<protocol::Message(const protocol::Compile&)> compile;
  std::function<protocol::Message(const protocol::Run&)> run;
  std::atomic<int> started{0};

  Script() {
    device.id = "scripted:0";
    device.name = "scripted device";
    device.backend = "scripted";
    device.uuid = "GPU-scripted";
    ready = [this](const protocol::Setup&) { return protocol::Ready{device, "scripted compiler", true, {"a note"}}; };
    compile = [](const protocol::Compile& request) { return compiled(request); };
    run = [](const protocol::Run& request) { return ran(request); };
  }

  static protocol::Compiled compiled(const protocol::Compile& request) {
    protocol::Compiled answer;
    answer.id = request.id;
    answer.binary.bytes = std::to_string(request.kernel);
    answer.seconds = 0.5;
    return answer;
  }
  static protocol::Ran ran(const protocol::Run& request) {
    protocol::Ran answer;
    answer.id = request.id;
    answer.has_reference = true;
    answer.measurement.quantities["time"] = {1, 0, 1, "script", "", Provenance::measured};
    return answer;
  }

  StartWorker starter();
};

class ScriptedWorker final : public WorkerTransport {
 public:
  ScriptedWorker(Script& script, const protocol::Setup& setup, SocketPair sockets)
      : WorkerTransport(protocol::kKind, sockets.ours), thread_([&script, setup, socket = sockets.theirs] {
          protocol::Stream session(protocol::kKind, socket, socket);
          try {
            serve(script, setup, session);
          } catch (const Disconnected&) {
          }
        }) {}
  ~ScriptedWorker() override { end(); }
  ProcessEnding end() override {
    ::shutdown(stream().in(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    return {"exit code 3", 0, "its last words"};
  }

 private:
  static void serve(Script& script, const protocol::Setup& setup, protocol::Stream& session) {
    const auto first = script.ready(setup);
    if (!first) return;
    session.send(*first);
    while (true) {
      const auto message = session.receive(-1);
      if (const auto* compile = std::get_if<protocol::Compile>(&*message)) session.send(script.compile(*compile));
      if (const auto* run = std::get_if<protocol::Run>(&*message)) session.send(script.run(*run));
    }
  }
  std::thread thread_;
};

inline StartWorker Script::starter() {
  return [this](const protocol::Setup& setup) {
    ++started;
    return std::make_unique<ScriptedWorker>(*this, setup, make_socket_pair());
  };
}

/// The next `count` results by their ids; fewer where they do not come.
inline std::map<std::uint64_t, EvaluationResult> results_of(Evaluator& evaluator, std::size_t count) {
  std::map<std::uint64_t, EvaluationResult> results;
  while (results.size() < count) {
    auto result = evaluator.wait(20);
    if (!result) break;
    results[result->id] = std::move(*result);
  }
  return results;
}

/// Notes every call.
struct ListJournal : RunJournal {
  std::vector<std::uint64_t> noted;
  std::function<void(const EvaluationRequest&)> also;
  void about_to_run(const EvaluationRequest& request, std::size_t) override {
    noted.push_back(request.id);
    if (also) also(request);
  }
};

}  // namespace ergotune::test
