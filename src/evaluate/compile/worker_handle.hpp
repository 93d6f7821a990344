// One worker process, compiler or runner: started when there is work, cleared when it dies, takes too long or has
// become unusable. It has one request at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>

#include "base/clock.hpp"
#include "evaluate/live/worker_transport.hpp"

namespace ergotune {

/// A worker process is gone.
struct Lost {
  enum class Why { ended, late, damaged } why = Why::ended;
  bool served = false;     ///< it had come as far as being ready
  bool requested = false;  ///< it was requested something, which will get no answer
  ProcessEnding ending;
  std::string damage;  ///< Why::damaged: what was wrong with its messages

  /// By a signal that other processes or the system send, not by a fault of what it ran.
  bool killed() const;
  /// How `who` ended, with its last words.
  std::string as_text(const std::string& who) const;
};

class WorkerHandle {
 public:
  /// A worker's start may take this long, s: driver, buffers, reference.
  static constexpr double kStartSeconds = 300;

  WorkerHandle(StartWorker start, protocol::Setup setup) : start_(std::move(start)), setup_(std::move(setup)) {}

  /// Starts a worker. Throws Error when that cannot be done.
  void start();
  /// Starts the first worker of a session and waits until it is ready. Throws UserError when it ends while it
  /// prepares the problem or says that it cannot serve for a user's mistake, and Error otherwise. `what` it
  /// is, for messages.
  protocol::Ready start_and_wait(const char* what);
  /// Ends the process.
  void clear();

  bool empty() const { return transport_ == nullptr; }
  /// Ready to be asked.
  bool idle() const { return ready_ && !requested_; }
  bool requested() const { return requested_; }
  bool starting() const { return transport_ && !ready_; }
  /// To poll for input; -1 when empty.
  int descriptor() const { return transport_ ? transport_->stream().in() : -1; }
  /// On host_seconds(): when what is awaited is too late; 0 while nothing is.
  double deadline() const { return deadline_; }
  /// What is awaited is too late.
  bool late() const { return deadline_ > 0 && host_seconds() >= deadline_; }
  /// This process stood still for so long.
  void put_off(double seconds) {
    if (deadline_ > 0) deadline_ += seconds;
  }
  int process() const { return transport_ ? transport_->process() : 0; }

  /// Sends a request to an idle worker, to be answered within `seconds`.
  template <class Request>
  void ask(Request request, double seconds) {
    requested_id_ = request.id;
    compiles_ = std::is_same_v<Request, protocol::Compile>;
    send(std::move(request), seconds);
  }
  /// The next thing that has happened: an answer (Ready, Failed, Compiled, Ran), or the worker is lost.
  /// nullopt when nothing has. Does not block.
  std::optional<std::variant<protocol::Message, Lost>> next();
  /// s since the last request was sent.
  double since_request() const;

 private:
  void send(protocol::Message request, double seconds);
  void check(const protocol::Message& answer);
  Lost lose(Lost::Why why, std::string damage = {});

  StartWorker start_;
  protocol::Setup setup_;
  std::unique_ptr<WorkerTransport> transport_;
  bool ready_ = false, requested_ = false, compiles_ = false;
  std::uint64_t requested_id_ = 0;
  double deadline_ = 0, requested_at_ = 0;
};

}  // namespace ergotune
