// Measures by a function of the configuration; counts what it was asked.
#pragma once

#include <deque>
#include <functional>
#include <map>

#include "evaluate/evaluator.hpp"

namespace ergotune::test {

class FakeEvaluator : public Evaluator {
 public:
  std::function<Measurement(const Configuration&, int time_measured)> measure;
  /// Whether the device's conditions disturbed a measurement; empty: none.
  std::function<bool(const Configuration&, int time_measured)> disturbed;
  std::size_t capacity_value = 1;
  Provenance provenance_value = Provenance::measured;
  std::map<ConfigurationIndex, int> measured;
  std::vector<EvaluationRequest> requests;
  double energy_up_to = 1e300;  ///< of what is measured
  std::size_t largest_pending = 0;
  bool cancelled = false;
  /// Called before a result is handed out; may throw, or set a flag.
  std::function<void(std::size_t results)> before_result;
  std::size_t results = 0;

  std::string description() const override { return "fake"; }
  Provenance provenance() const override { return provenance_value; }
  std::size_t capacity() const override { return capacity_value; }
  void submit(EvaluationRequest request) override {
    requests.push_back(request);
    queue_.push_back(std::move(request));
    largest_pending = std::max(largest_pending, queue_.size());
  }
  std::optional<EvaluationResult> wait(double) override {
    if (queue_.empty()) return std::nullopt;
    // The newest first: results may come in any order.
    EvaluationRequest request = std::move(queue_.back());
    queue_.pop_back();
    if (journal_) journal_->about_to_run(request, 0);
    if (before_result) before_result(results);
    ++results;
    const int time = measured[request.index]++;
    energy_up_to = request.energy_up_to;
    return EvaluationResult{.id = request.id,
                            .index = request.index,
                            .measurement = measure(request.configuration, time),
                            .disturbed = disturbed && disturbed(request.configuration, time)};
  }
  std::size_t pending() const override { return queue_.size(); }
  void cancel() override {
    cancelled = true;
    queue_.clear();
  }
  void set_journal(RunJournal* journal) override { journal_ = journal; }

 private:
  std::deque<EvaluationRequest> queue_;
  RunJournal* journal_ = nullptr;
};

inline Measurement timed(double seconds, double standard_error = 0) {
  Measurement m;
  m.quantities["time"] = {seconds, standard_error, 7, "fake", "", Provenance::measured};
  return m;
}

inline Measurement failed(Status status, const std::string& message) {
  Measurement m;
  m.status = status;
  m.message = message;
  return m;
}

}  // namespace ergotune::test
