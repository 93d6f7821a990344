#include "tune/ledger/live_session.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/json_text.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

/// s between two updates.
constexpr double kPeriod = 0.1;

Json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json document(const SessionProgress& progress) {
  return {{"evaluated", progress.evaluated},
          {"known", progress.resumed},
          {"failed", progress.failed},
          {"total", progress.total},
          {"seconds", progress.seconds},
          {"best", number(progress.best)},
          {"rate", progress.evaluated > 0 && progress.seconds > 0
                       ? Json(static_cast<double>(progress.evaluated) / progress.seconds)
                       : Json(nullptr)},
          {"seconds_left", number(progress.seconds_left)}};
}

/// Removes files that killed sessions left beside the store. Files of other machines that were written within the last
/// hour stay: on a file system shared between machines, a process of another machine appears to have ended.
void remove_leftovers(const std::filesystem::path& store) {
  const std::string prefix = store.filename().string() + "-live-";
  const auto old = left_behind(store.parent_path(), prefix, std::chrono::hours(1));
  for (const auto& left : left_behind(store.parent_path(), prefix, std::chrono::hours(0))) {
    const auto file = LiveFile::open(left);
    std::error_code ignored;
    const bool certain = file && (file->made_here() || std::ranges::find(old, left) != old.end());
    if (certain && !file->owner_lives()) std::filesystem::remove(left, ignored);
  }
}

}  // namespace

LiveSession::LiveSession(const std::filesystem::path& store) {
  if (store.empty()) return;
  static std::atomic<int> made = 0;
  path_ = std::filesystem::absolute(fmt::format("{}-live-{}-{}", store.string(), ::getpid(), ++made));
  remove_leftovers(std::filesystem::absolute(store));
  file_ = LiveFile::create(path_);
  if (!file_) return;
  before_ = live_path();
  set_live_path(path_);
}

LiveSession::~LiveSession() {
  if (file_ && live_path() == path_) set_live_path(before_);
}

void LiveSession::describe(std::int64_t session, bool on_cpu, std::vector<std::string> notes) {
  session_ = session;
  on_cpu_ = on_cpu;
  notes_ = std::move(notes);
  show({.state = "running", .phase = {}, .stage = {}, .slots = {}});
}

void LiveSession::set_progress(const SessionProgress& progress) {
  progress_ = progress;
  progress_.last = nullptr;
  reported_ = true;
}

bool LiveSession::due() const { return file_ && host_seconds() - shown_at_ >= kPeriod; }

void LiveSession::show(const Now& now) {
  if (!file_) return;
  shown_at_ = host_seconds();
  Json slots = Json::array();
  for (const OnDevice& slot : now.slots)
    slots.push_back({{"slot", slot.slot}, {"configuration", slot.configuration}, {"since", slot.since}});
  const Json state{{"session", session_},
                   {"process", ::getpid()},
                   {"at", wall_seconds()},
                   {"on_cpu", on_cpu_},
                   {"state", now.state},
                   {"phase", now.phase},
                   {"stage", now.stage},
                   {"evaluated", now.evaluated},
                   {"known", now.known},
                   {"under_way", now.under_way},
                   {"slots", std::move(slots)},
                   {"progress", reported_ ? document(progress_) : Json(nullptr)},
                   {"notes", notes_}};
  file_->set_state(json_text(state));
}

void LiveSession::take_back(std::uint32_t requests) {
  if (file_) file_->take_back(requests);
}

}  // namespace ergotune
