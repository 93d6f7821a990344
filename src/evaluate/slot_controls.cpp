#include "evaluate/slot_controls.hpp"

#include <algorithm>
#include <array>

#include "ergotune/base/clock.hpp"

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

}  // namespace

std::optional<Measurement> SlotControls::apply(const ControlSetting& setting) {
  if (in_force_ == setting) return std::nullopt;
  const ControlResult result = session_->apply(setting);
  if (result.ok()) {
    in_force_ = setting;
    return std::nullopt;
  }
  in_force_.reset();
  Measurement refused;
  refused.status = status_of(result.status);
  refused.message = result.message;
  refused.finished_at = wall_seconds();
  return refused;
}

void SlotControls::compare(const ControlSetting& asked, Measurement& measurement) {
  const auto notes = session_->notes();
  for (; notes_seen_ < notes.size(); ++notes_seen_) measurement.warnings.push_back(notes[notes_seen_]);
  const auto clock = asked.find(ControlQuantity::core_clock_mhz);
  const auto ran = measurement.value("core_clock");
  if (clock == asked.end() || !ran) return;
  std::vector<std::string> reasons;
  std::copy_if(measurement.warnings.begin(), measurement.warnings.end(), std::back_inserter(reasons),
               is_clock_reason);
  if (auto words = describe_clock_outcome(clock->second, *ran / 1e6, reasons); !words.empty())
    measurement.warnings.push_back(std::move(words));
}

}  // namespace ergotune
