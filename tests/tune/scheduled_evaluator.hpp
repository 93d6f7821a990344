// Compile workers that run ahead of one device, by a clock of their own: what a schedule comes to, without waiting.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "evaluate/evaluator.hpp"

namespace ergotune::test {

class ScheduledEvaluator : public Evaluator {
 public:
  /// Time and energy of a configuration.
  std::function<Measurement(const Configuration&)> measure;
  /// s of compiling, of measuring the time, and of measuring the energy as well.
  double compile_seconds = 0.4, time_seconds = 0.02, energy_seconds = 0.6;

  explicit ScheduledEvaluator(std::size_t compilers) : compilers_(compilers, 0.0) {}
  std::string description() const override { return "scheduled"; }
  Provenance provenance() const override { return Provenance::measured; }
  std::size_t capacity() const override { return compilers_.size() + 3; }
  double now() const override { return now_; }
  void submit(EvaluationRequest request) override {
    Job job{std::move(request), now_};
    if (compiled_.insert(job.request.index).second) {
      double& compiler = *std::ranges::min_element(compilers_);
      job.ready = compiler = std::max(compiler, now_) + compile_seconds;
    }
    waiting_.insert(job.request.first ? waiting_.begin() : waiting_.end(), std::move(job));
  }
  std::optional<EvaluationResult> wait(double seconds) override {
    const double until = now_ + seconds;
    if (!running_ && !waiting_.empty()) start();
    if (!running_ || running_->end > until) {
      now_ = until;
      return std::nullopt;
    }
    now_ = free_ = running_->end;
    Job done = *std::exchange(running_, std::nullopt);
    return EvaluationResult{.id = done.request.id, .index = done.request.index, .measurement = done.measurement};
  }
  std::size_t pending() const override { return waiting_.size() + running_.has_value(); }
  void cancel() override {
    if (running_) free_ = std::exchange(running_, std::nullopt)->end;
    waiting_.clear();
  }

 private:
  struct Job {
    EvaluationRequest request;
    double ready = 0, end = 0;
    Measurement measurement = {};
  };

  /// The first that is compiled when the device is free, else the one that is compiled first.
  void start() {
    const double free = std::max(now_, free_);
    auto next = std::ranges::find_if(waiting_, [&](const Job& job) { return job.ready <= free; });
    if (next == waiting_.end())
      next = std::ranges::min_element(waiting_, [](const Job& a, const Job& b) { return a.ready < b.ready; });
    running_ = std::move(*next);
    waiting_.erase(next);
    Measurement& m = running_->measurement = measure(running_->request.configuration);
    if (*m.value("time") > running_->request.energy_up_to) m.quantities.erase("energy");
    m.measure_seconds = time_seconds + (m.value("energy") ? energy_seconds : 0);
    m.compile_seconds = compile_seconds;
    running_->end = std::max(free, running_->ready) + m.measure_seconds;
  }

  std::vector<double> compilers_;  ///< when each is free
  std::set<ConfigurationIndex> compiled_;
  std::deque<Job> waiting_;
  std::optional<Job> running_;
  double now_ = 0, free_ = 0;
};

}  // namespace ergotune::test
