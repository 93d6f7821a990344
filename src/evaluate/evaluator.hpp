// Evaluators turn configurations into measurements: live (in worker processes), replayed from a recording, or
// simulated.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "ergotune/result.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

/// EvaluationRequest::settle_seconds of what has to hold under a lasting load: at the power limit of an H200 the clock
/// follows a change of load with a delay of 0.03 to 0.1 s.
constexpr double kSettleSeconds = 0.2;

/// A request to measure one configuration.
struct EvaluationRequest {
  std::uint64_t id = 0;
  ConfigurationIndex index = 0;
  Configuration configuration;
  /// Make another, independent measurement even if a result is known.
  bool repeat = false;
  /// Racing: the measurement may stop once the interval of the objective lies completely above this value (in the unit
  /// of objective_quantity). The default never stops.
  double give_up_above = 1e300;
  std::string objective_quantity = "time";
  /// Only determine the resources that the compiled code needs (registers, shared memory, occupancy); nothing runs.
  /// Such requests do not belong to a ledger, and `index` is not used.
  bool resources_only = false;
  /// The device (EvaluationResult::gpu) that has to run it; empty: any.
  std::string gpu = {};
  /// A baseline run: devices are compared by it, and its conditions are the norm for other measurements on its device.
  bool reference = false;
  /// Screening: above this time, s, the energy is not measured.
  double energy_up_to = 1e300;
  /// Runs before all requests that wait, once it is compiled.
  bool first = false;
  /// On a GPU: how long it runs the configuration before it is timed, s; half of it right after another load.
  double settle_seconds = 0;
};

struct EvaluationResult {
  std::uint64_t id = 0;
  ConfigurationIndex index = 0;
  Measurement measurement;
  /// UUID, else id, of the device that ran it, set by live evaluators; empty if nothing ran, for example because the
  /// configuration does not compile.
  std::string gpu = {};
  /// The device repeatedly ran under another setting than requested. This is a failure of the device, which is not
  /// stored as a property of the configuration.
  bool disturbed = false;
};

/// One of the devices among which an evaluator distributes its requests.
struct DeviceShare {
  std::string gpu;   ///< as in EvaluationResult
  std::string id;    ///< for people: "cuda:1", preceded by the node's name on another node ("n1/cuda:1")
  std::string name;  ///< "NVIDIA H200"
  std::uint64_t results = 0;
  double busy_seconds = 0, idle_seconds = 0;  ///< since it was opened: measuring, and waiting for requests
  bool lost = false;
};

/// Receives what a live evaluator is about to run, so that a resumed session does not run a configuration again that
/// ended the session. Called from the evaluator's thread.
class RunJournal {
 public:
  virtual ~RunJournal() = default;
  /// Records durably that the request runs next on a device (numbered from 0). Called once for each request that runs,
  /// right before it does. The previous request on that device has ended by then, though wait() may return its result
  /// later, since the device does not wait for that. Must not throw: write errors are reported by the session's next
  /// write.
  virtual void about_to_run(const EvaluationRequest& request, std::size_t device) = 0;
};

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  /// For people and for stored sessions: "opencl:0:0 (pthread-...)", "replay of ...", "simulated A100".
  virtual std::string description() const = 0;
  virtual Provenance provenance() const = 0;
  /// Number of requests that it can usefully hold at once (compilation runs ahead of measuring).
  virtual std::size_t capacity() const { return 1; }
  /// The clock that budgets of time refer to, s.
  virtual double now() const { return host_seconds(); }
  /// All devices among which requests are distributed, including lost ones; empty for a single device.
  virtual std::vector<DeviceShare> gpus() const { return {}; }
  /// Accepts a request. Does not block for long.
  virtual void submit(EvaluationRequest request) = 0;
  /// Returns the next finished result, in any order; nullopt if there is none within `seconds`.
  virtual std::optional<EvaluationResult> wait(double seconds) = 0;
  /// Requests accepted and not yet returned.
  virtual std::size_t pending() const = 0;
  /// Drops all requests. What runs ends soon, and its result is dropped as well.
  virtual void cancel() {}
  /// Must be called before the first submit(). Evaluators that run nothing ignore it; wrappers pass it on.
  virtual void set_journal(RunJournal*) {}
};

/// Answers one request after the other, inside wait().
class QueuedEvaluator : public Evaluator {
 public:
  void submit(EvaluationRequest request) override { queue_.push_back(std::move(request)); }
  std::size_t pending() const override { return queue_.size(); }
  void cancel() override { queue_.clear(); }
  std::optional<EvaluationResult> wait(double) override {
    if (queue_.empty()) return std::nullopt;
    const EvaluationRequest request = std::move(queue_.front());
    queue_.pop_front();
    EvaluationResult result = answer(request);
    result.id = request.id;
    result.index = request.index;
    return result;
  }

 protected:
  /// The result but for its id and index.
  virtual EvaluationResult answer(const EvaluationRequest& request) = 0;

 private:
  std::deque<EvaluationRequest> queue_;
};

}  // namespace ergotune
