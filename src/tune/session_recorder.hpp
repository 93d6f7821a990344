// Writes a session's rows from a thread of its own: results become durable while the next configuration
// compiles and runs, several at once where they come fast. Nothing is reported before it is durable.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "ergotune/evaluate/evaluator.hpp"
#include "ergotune/store/store.hpp"

namespace ergotune {

class SessionRecorder : public RunJournal {
 public:
  /// A null store keeps nothing, and everything counts as durable at once.
  SessionRecorder(Store* store, std::int64_t session);
  ~SessionRecorder() override;

  void about_to_run(const EvaluationRequest& request) override;

  /// Queues a row, which is written at the next announce() or kick(): waking the writer here would hold up
  /// the next configuration. Its number, which is durable once durable() has reached it. Throws what an
  /// earlier write threw.
  std::uint64_t add(std::uint64_t request, const Configuration& configuration,
                    const Measurement& measurement);
  /// Wakes the writer.
  void kick();
  /// Takes back what was announced and will not end: the evaluator has been cancelled.
  void withdraw_open();
  std::uint64_t durable() const;
  /// Returns when everything is durable. Throws what a write threw.
  void flush();

 private:
  enum class Kind { begin, add, withdraw };
  struct Operation {
    Kind kind = Kind::add;
    std::uint64_t request = 0;
    Configuration configuration;
    Measurement measurement;
  };
  void loop();

  Store* store_;
  std::int64_t session_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Operation> queue_;
  std::map<std::uint64_t, Configuration> open_;  ///< announced, without a row yet
  std::set<std::uint64_t> written_;              ///< announced requests that are durable
  std::uint64_t added_ = 0, durable_ = 0;
  bool busy_ = false, stop_ = false;
  std::exception_ptr fault_;
  std::thread thread_;
};

}  // namespace ergotune
