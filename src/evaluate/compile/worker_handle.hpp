// One worker process, compiler or runner: started when there is work, cleared when it dies, is late or has become
// unusable. It serves one request at a time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "device/device.hpp"
#include "evaluate/evaluator.hpp"
#include "evaluate/live/worker_transport.hpp"
#include "power/controls/control.hpp"

namespace ergotune {

/// A request of the live evaluator, from submission to its result.
struct Job {
  EvaluationRequest request;
  /// Only its outputs are needed, as expected outputs.
  bool reference_only = false;
  /// The only device worker that may run it, by number; nullopt: any.
  std::optional<std::size_t> device;
  /// The values of its execution parameters.
  ControlSetting setting;
  /// Numbers of the device workers whose devices have refused that setting.
  std::set<std::size_t> refused_by;
  /// It ran under another setting than requested and is run a second time.
  bool again = false;
  /// Its compilation is repeated, because the runner that compiled it ended or the compiler was killed.
  bool compiled_again = false;
  /// It ran under conditions that the reference on its device did not meet (such as thermal throttling), and is run a
  /// second time.
  bool disturbed = false;
  /// Its runner was killed while it ran, and it is run a second time.
  bool killed = false;
  /// Number of later requests that ran before it.
  int overtaken_count = 0;
  /// By kernel of the problem: the key of its code, and the code once it is compiled.
  std::vector<std::string> code_keys;
  std::vector<std::shared_ptr<const Binary>> code;
  double compile_seconds = 0;
  double ours = 0;  ///< s of round trips to workers, without compilation and kernel

  bool compiled() const {
    return std::ranges::all_of(code, [](const auto& binary) { return binary != nullptr; });
  }
};
using JobPointer = std::shared_ptr<Job>;

/// How a worker process was lost.
struct WorkerLoss {
  enum class Why { ended, late, damaged } why = Why::ended;
  bool served = false;     ///< it had been ready
  bool requested = false;  ///< it had an unanswered request
  ProcessEnding ending;
  std::string damage;  ///< Why::damaged: the error in its messages

  /// Whether a signal of another process or of the system ended it, rather than a fault of the kernel that it ran.
  bool killed() const;
  /// A sentence on how `who` ended, with the last lines of its output.
  std::string as_text(const std::string& who) const;
};

class WorkerHandle {
 public:
  /// Longest start of a worker, s: driver, buffers, reference.
  static constexpr double kStartSeconds = 300;

  WorkerHandle(StartWorker start, protocol::Setup setup) : start_(std::move(start)), setup_(std::move(setup)) {}

  /// Starts a worker. Throws Error on failure.
  void start();
  /// Starts the first worker of a session and waits until it is ready. Throws UserError if it ends while it prepares
  /// the problem or reports a user's mistake, and Error otherwise, also once `interrupted` is set. `what` names the
  /// worker in messages.
  protocol::Ready start_and_wait(const char* what, const std::atomic<bool>* interrupted = nullptr);
  /// Ends the process.
  void clear();

  bool empty() const { return transport_ == nullptr; }
  /// Ready for a request.
  bool idle() const { return ready_ && !requested_; }
  bool requested() const { return requested_; }
  bool starting() const { return transport_ && !ready_; }
  /// Descriptor to poll for input; -1 if empty().
  int descriptor() const { return transport_ ? transport_->stream().in() : -1; }
  /// Time at which the expected answer is late, host_seconds(); 0 if none is expected.
  double deadline() const { return deadline_; }
  /// Whether the expected answer is late.
  bool late() const { return deadline_ > 0 && host_seconds() >= deadline_; }
  /// Extends the deadline, after this process was suspended for some seconds.
  void extend_deadline(double seconds) {
    if (deadline_ > 0) deadline_ += seconds;
  }
  /// Makes the expected answer late after `seconds`, if it is not before.
  void answer_within(double seconds) { deadline_ = std::min(deadline_, host_seconds() + seconds); }
  int process() const { return transport_ ? transport_->process() : 0; }

  /// Sends a request to an idle worker; the answer is late after `seconds`.
  template <class Request>
  void ask(Request request, double seconds) {
    requested_id_ = request.id;
    compiles_ = std::is_same_v<Request, protocol::Compile>;
    send(std::move(request), seconds);
  }
  /// Returns the next event: an answer (Ready, Failed, Compiled, Ran) or the loss of the worker; nullopt if there is
  /// none. Does not block.
  std::optional<std::variant<protocol::Message, WorkerLoss>> next();
  /// s since the last request was sent.
  double since_request() const;

 private:
  void send(protocol::Message request, double seconds);
  void check(const protocol::Message& answer);
  WorkerLoss lose(WorkerLoss::Why why, std::string damage = {});

  StartWorker start_;
  protocol::Setup setup_;
  std::unique_ptr<WorkerTransport> transport_;
  bool ready_ = false, requested_ = false, compiles_ = false;
  std::uint64_t requested_id_ = 0;
  double deadline_ = 0, requested_at_ = 0;
};

}  // namespace ergotune
