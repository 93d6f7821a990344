#include "power/guardian/guardian_report.hpp"

#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

namespace ergotune {
namespace {

std::mutex failed_mutex;
std::vector<RestoreReport> failed_restores;

}  // namespace

void note_failed_restore(const RestoreReport& report) {
  const std::lock_guard hold(failed_mutex);
  failed_restores.push_back(report);
}

std::vector<RestoreReport> take_failed_restores() {
  const std::lock_guard hold(failed_mutex);
  return std::exchange(failed_restores, {});
}

std::string format_report(const RestoreReport& report) {
  using Json = nlohmann::json;
  Json outcomes = Json::array();
  for (const auto& outcome : report.outcomes)
    outcomes.push_back({{"kind", outcome.step.kind},
                        {"target", outcome.step.target},
                        {"value", outcome.step.value},
                        {"status", static_cast<int>(outcome.result.status)},
                        {"message", outcome.result.message},
                        {"words", outcome.words}});
  const Json document{{"device", report.device},
                      {"complete", report.complete},
                      {"summary", report.summary},
                      {"outcomes", std::move(outcomes)}};
  return document.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string words_of(const RestoreReport& report) {
  std::string words = report.summary;
  for (const auto& outcome : report.outcomes)
    if (!outcome.result.ok()) words += "\n  " + (outcome.words.empty() ? outcome.result.message : outcome.words);
  return words;
}

bool parse_report(const std::string& text, RestoreReport& report) {
  try {
    const auto document = nlohmann::json::parse(text);
    RestoreReport read;
    document.at("device").get_to(read.device);
    document.at("complete").get_to(read.complete);
    document.at("summary").get_to(read.summary);
    for (const auto& entry : document.at("outcomes")) {
      RestoreOutcome outcome;
      entry.at("kind").get_to(outcome.step.kind);
      entry.at("target").get_to(outcome.step.target);
      entry.at("value").get_to(outcome.step.value);
      outcome.result.status = static_cast<ControlStatus>(entry.at("status").get<int>());
      entry.at("message").get_to(outcome.result.message);
      entry.at("words").get_to(outcome.words);
      read.outcomes.push_back(std::move(outcome));
    }
    report = std::move(read);
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

}  // namespace ergotune
