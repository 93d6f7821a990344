#include "ergotune/evaluate/controlled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>

#include "ergotune/base/clock.hpp"
#include "ergotune/measure/execution_parameters.hpp"

namespace ergotune {
namespace {

Status status_of(ControlStatus status) {
  const bool asked_too_much =
      status == ControlStatus::invalid_value || status == ControlStatus::not_supported;
  return asked_too_much ? Status::unsupported : Status::launch_error;
}

// Warnings by which a measurement says why its clock was what it was (BoardState::clock_reasons as words).
bool is_clock_reason(const std::string& warning) {
  constexpr std::array reasons = {"power cap",   "thermal",    "hardware slowdown", "hardware thermal",
                                  "power brake", "sync boost", "display clocks"};
  return std::find(reasons.begin(), reasons.end(), warning) != reasons.end();
}

class ControlledEvaluator final : public Evaluator {
 public:
  ControlledEvaluator(std::unique_ptr<Evaluator> inner, std::unique_ptr<ControlSession> session,
                      std::vector<Parameter> parameters)
      : session_(std::move(session)), inner_(std::move(inner)), parameters_(std::move(parameters)) {}

  std::string description() const override {
    return fmt::format("{}, clocks set through {}", inner_->description(), session_->control().id());
  }
  Provenance provenance() const override { return inner_->provenance(); }
  // More than the inner evaluator holds: what is seen beforehand can be put in order.
  std::size_t capacity() const override { return std::max<std::size_t>(8, 2 * inner_->capacity()); }
  std::size_t pending() const override { return queue_.size() + failed_.size() + inner_->pending(); }

  void submit(EvaluationRequest request) override {
    auto setting = setting_of(parameters_, request.configuration);
    queue_.push_back({std::move(request), std::move(setting)});
    pass_on();
  }

  std::optional<EvaluationResult> wait(double seconds) override {
    pass_on();
    if (!failed_.empty()) {
      auto result = std::move(failed_.front());
      failed_.pop_front();
      return result;
    }
    auto result = inner_->wait(seconds);
    if (!result) return result;
    compare(result->measurement);
    // The next batch compiles while our caller thinks.
    pass_on();
    return result;
  }

  void cancel() override {
    queue_.clear();
    inner_->cancel();
  }

 private:
  struct Waiting {
    EvaluationRequest request;
    ControlSetting setting;
  };

  // Hands requests to the inner evaluator: those of the setting in force at once, another setting's only when
  // nothing is being measured.
  void pass_on() {
    while (!queue_.empty()) {
      submit_matching();
      if (queue_.empty() || inner_->pending() > 0) return;
      change_setting();
    }
  }

  void submit_matching() {
    if (!in_force_) return;
    for (auto it = queue_.begin(); it != queue_.end() && inner_->pending() < inner_->capacity();) {
      if (it->setting != *in_force_) {
        ++it;
        continue;
      }
      inner_->submit(std::move(it->request));
      it = queue_.erase(it);
    }
  }

  void change_setting() {
    std::vector<ControlSetting> settings;
    for (const auto& waiting : queue_) settings.push_back(waiting.setting);
    const auto next = queue_[order_by_setting(settings, session_->current()).front()].setting;
    const auto result = session_->apply(next);
    if (result.ok()) {
      in_force_ = next;
      return;
    }
    in_force_.reset();
    for (auto it = queue_.begin(); it != queue_.end();) {
      if (it->setting != next) {
        ++it;
        continue;
      }
      EvaluationResult failure{it->request.id, it->request.index, {}};
      failure.measurement.status = status_of(result.status);
      failure.measurement.message = result.message;
      failure.measurement.finished_at = wall_seconds();
      failed_.push_back(std::move(failure));
      it = queue_.erase(it);
    }
  }

  void compare(Measurement& measurement) {
    const auto notes = session_->notes();
    for (; notes_seen_ < notes.size(); ++notes_seen_) measurement.warnings.push_back(notes[notes_seen_]);
    if (!in_force_) return;
    const auto asked = in_force_->find(ControlQuantity::core_clock_mhz);
    const auto ran = measurement.value("core_clock");
    if (asked == in_force_->end() || !ran) return;
    std::vector<std::string> reasons;
    std::copy_if(measurement.warnings.begin(), measurement.warnings.end(), std::back_inserter(reasons),
                 is_clock_reason);
    if (auto words = describe_clock_outcome(asked->second, *ran / 1e6, reasons); !words.empty())
      measurement.warnings.push_back(std::move(words));
  }

  // Destroyed in reverse order: the inner evaluator, which may still be measuring, ends before the clocks go
  // back.
  std::unique_ptr<ControlSession> session_;
  std::unique_ptr<Evaluator> inner_;
  std::vector<Parameter> parameters_;
  std::deque<Waiting> queue_;
  std::deque<EvaluationResult> failed_;
  std::optional<ControlSetting> in_force_;
  std::size_t notes_seen_ = 0;
};

}  // namespace

std::unique_ptr<Evaluator> make_controlled_evaluator(std::unique_ptr<Evaluator> inner,
                                                     std::unique_ptr<ControlSession> session,
                                                     std::vector<Parameter> parameters) {
  return std::make_unique<ControlledEvaluator>(std::move(inner), std::move(session), std::move(parameters));
}

}  // namespace ergotune
