#include "capture/inject/kernel_log.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>

#include "capture/capture_folder.hpp"
#include "capture/inject/session.hpp"

namespace ergotune::inject {

std::string description_of(const LaunchShape& shape) {
  const auto sizes = [&](const std::array<std::size_t, 3>& extents) {
    std::string text = std::to_string(extents[0]);
    for (std::size_t d = 1; d < shape.dimensions; ++d) text += "x" + std::to_string(extents[d]);
    return text;
  };
  return sizes(shape.global) + (shape.block_is_open ? ", work-group open" : " in blocks of " + sizes(shape.block));
}

std::optional<Answer> ask_for_launch(const std::string& kernel, const std::string& source, const std::string& options,
                                     const std::string& device, const LaunchShape& shape, std::size_t shared_bytes) {
  capture::Message question{"launch", kernel, source, options, device, interface_name()};
  question.push_back(std::to_string(shape.dimensions));
  for (const std::size_t extent : shape.global) question.push_back(std::to_string(extent));
  for (const std::size_t extent : shape.block) question.push_back(shape.block_is_open ? "0" : std::to_string(extent));
  question.push_back(std::to_string(shared_bytes));
  // use, clock, description, code, options, function, global, block, shared bytes, tolerances, types; or leave, clock
  capture::Message m = Session::get().ask(question);
  if (m.size() < 2) return std::nullopt;
  Answer answer;
  std::istringstream(m[1]) >> answer.clock.mhz >> answer.clock.seconds >> answer.clock.common_mhz >>
      answer.clock.latency;
  m.erase(m.begin() + 1);
  answer.use = m.size() == 15 && m[0] == "use";
  if (!answer.use) return answer.clock.mhz > 0 ? std::optional(answer) : std::nullopt;
  answer.description = m[1];
  answer.code = m[2];
  answer.options = m[3];
  answer.function = m[4];
  answer.shape.dimensions = shape.dimensions;
  for (std::size_t d = 0; d < 3; ++d) {
    answer.shape.global[d] = std::strtoull(m[5 + d].c_str(), nullptr, 10);
    answer.shape.block[d] = std::strtoull(m[8 + d].c_str(), nullptr, 10);
    if (answer.shape.global[d] == 0 || answer.shape.block[d] == 0 || answer.shape.global[d] % answer.shape.block[d])
      return std::nullopt;
  }
  answer.shared_bytes = std::strtoull(m[11].c_str(), nullptr, 10);
  answer.absolute_tolerance = std::strtod(m[12].c_str(), nullptr);
  answer.relative_tolerance = std::strtod(m[13].c_str(), nullptr);
  std::istringstream types(m[14]);
  for (std::string type; std::getline(types, type, ',');) answer.types.push_back(type);
  return answer;
}

KernelLog& KernelLog::get() {
  static KernelLog* const log = new KernelLog;
  return *log;
}

std::shared_ptr<KernelLog::Entry> KernelLog::entry(const std::string& name, const std::string& source,
                                                   const std::string& options) {
  const std::string hash = capture::source_hash(source);
  const std::lock_guard lock(mutex_);
  auto& entry = entries_[name + '\n' + hash + '\n' + options];
  if (!entry) {
    entry = std::make_shared<Entry>();
    entry->number = entries_.size();
    entry->name = name;
    entry->hash = hash;
    entry->options = options;
  }
  return entry;
}

std::uint64_t KernelLog::count(Entry& entry, const LaunchShape& shape, const std::string& arguments) {
  const std::uint64_t launch = entry.launches++;
  if (launch > 0) return launch;
  const std::lock_guard lock(mutex_);
  entry.first_shape = description_of(shape);
  entry.arguments = arguments;
  return launch;
}

void KernelLog::add_time(Entry& entry, std::uint64_t nanoseconds, bool first) {
  (first ? entry.first_nanoseconds : entry.nanoseconds) += nanoseconds;
  ++entry.timed;
}

void KernelLog::refuse(Entry& entry, const std::string& why) {
  entry.settled = true;
  const std::lock_guard lock(mutex_);
  entry.refusal = why;
  entry.reported = false;
}

bool KernelLog::claims(Entry& entry, std::uint64_t launch) {
  const Session& session = Session::get();
  if (!session.wants(CaptureRequest::Mode::capture) || launch < session.wishes().skip || entry.settled || done_)
    return false;
  const auto wanted = [&](const std::string& name) { return session.wants_kernel(name); };
  if (!wanted(entry.name) && std::ranges::none_of(entry.also, wanted)) return false;
  if (!session.wishes().kernel.empty() && done_.exchange(true)) return false;
  return !entry.settled.exchange(true);
}

bool KernelLog::keep(Entry& entry, const std::function<std::vector<std::string>(const std::string&)>& finish) {
  static std::atomic<int> captured{0};
  const std::string folder =
      Session::get().wishes().folder + "/" + std::to_string(::getpid()) + "-" + std::to_string(captured++);
  std::string refusal;
  try {
    capture::Message message{"captured", entry.name, entry.hash, entry.options, folder, std::to_string(entry.number)};
    for (std::string& note : finish(folder)) message.push_back(std::move(note));
    Session::get().send(message);
  } catch (const std::exception& error) {
    refusal = error.what();
  }
  refuse(entry, refusal);
  return refusal.empty();
}

void KernelLog::unclaim(Entry& entry) {
  entry.settled = false;
  done_ = false;
}

void KernelLog::report(bool now) {
  const Session& session = Session::get();
  if (!session.wants(CaptureRequest::Mode::capture) && !session.wants(CaptureRequest::Mode::list)) return;
  const std::int64_t time = std::chrono::steady_clock::now().time_since_epoch().count();
  if (!now && time < next_report_) return;
  next_report_ = time + 100'000'000;
  const std::lock_guard lock(mutex_);
  for (const auto& [key, entry] : entries_) {
    const std::uint64_t launches = entry->launches, timed = entry->timed;
    if (launches == 0 || (entry->reported && launches == entry->reported_launches && timed == entry->reported_timed))
      continue;
    // as if the first had taken as long as the others
    const std::uint64_t first = entry->first_nanoseconds, others = entry->nanoseconds;
    const std::uint64_t nanoseconds = first && timed > 1 ? others + others / (timed - 1) : others + first;
    entry->reported = true;
    entry->reported_launches = launches;
    entry->reported_timed = timed;
    Session::get().send({"kernel", std::to_string(::getpid()) + "-" + std::to_string(entry->number), entry->name,
                         entry->hash, entry->options, std::to_string(launches), std::to_string(timed),
                         std::to_string(nanoseconds), entry->first_shape, entry->arguments, entry->refusal});
  }
}

}  // namespace ergotune::inject
