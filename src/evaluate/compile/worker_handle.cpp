#include "evaluate/compile/worker_handle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "ergotune/error.hpp"

namespace ergotune {

using namespace protocol;

bool WorkerLoss::killed() const {
  constexpr std::array kSent = {SIGKILL, SIGTERM, SIGHUP, SIGINT, SIGQUIT};
  return why == Why::ended && std::ranges::find(kSent, ending.signal) != kSent.end();
}

std::string WorkerLoss::as_text(const std::string& who) const {
  if (why == Why::damaged) return "the worker was damaged: " + damage;
  if (ending.signal == SIGKILL)
    return ending.added_to("the system killed the process, most likely because memory ran out");
  return ending.added_to(fmt::format("{} ended with {}", who, ending.description));
}

void WorkerHandle::start() {
  try {
    transport_ = start_(setup_);
  } catch (const Error& error) {
    throw Error(fmt::format("a worker cannot be started: {}", error.what()));
  }
  ready_ = requested_ = false;
  deadline_ = host_seconds() + kStartSeconds;
}

Ready WorkerHandle::start_and_wait(const char* what, const std::atomic<bool>* interrupted) {
  constexpr double kLook = 0.1;  // s
  if (empty()) start();
  try {
    std::optional<Message> answer;
    while (!(answer = transport_->stream().receive(kLook))) {
      if (interrupted && *interrupted) throw Error(fmt::format("interrupted before the {} had started", what));
      if (late()) throw Error(fmt::format("the {} did not start within {:.0f} s", what, kStartSeconds));
    }
    if (const auto* failed = std::get_if<Failed>(&*answer)) {
      if (failed->user_error) throw UserError(failed->message);
      throw Error(fmt::format("the {} cannot start: {}", what, failed->message));
    }
    check(*answer);
    return std::get<Ready>(*answer);
  } catch (const Disconnected&) {
    const ProcessEnding ending = transport_->end();
    throw UserError(ending.added_to(
        fmt::format("the {} ended with {} while it prepared the problem: its buffers, or the reference "
                    "that results are verified against (are its arguments in order, and their counts large enough?)",
                    what, ending.description)));
  }
}

void WorkerHandle::clear() {
  transport_.reset();
  ready_ = requested_ = false;
  deadline_ = 0;
}

void WorkerHandle::send(Message request, double seconds) {
  requested_ = true;
  requested_at_ = host_seconds();
  deadline_ = requested_at_ + seconds;
  transport_->begin_request();
  try {
    transport_->stream().send(request);
  } catch (const Disconnected&) {
    // next() will notice that it has died
  }
}

double WorkerHandle::since_request() const { return host_seconds() - requested_at_; }

std::optional<std::variant<Message, WorkerLoss>> WorkerHandle::next() {
  if (!transport_) return std::nullopt;
  try {
    if (std::optional<Message> message = transport_->stream().receive(0)) {
      check(*message);
      return std::move(*message);
    }
  } catch (const Disconnected&) {
    return lose(WorkerLoss::Why::ended);
  } catch (const FormatError& error) {
    // A kernel has overwritten the worker's memory: the worker is unusable.
    return lose(WorkerLoss::Why::damaged, error.what());
  }
  if (late()) return lose(WorkerLoss::Why::late);
  return std::nullopt;
}

/// Records an answer; throws FormatError for an unexpected one.
void WorkerHandle::check(const Message& answer) {
  if (std::holds_alternative<Failed>(answer)) return;
  const auto* compiled = std::get_if<Compiled>(&answer);
  const auto* ran = std::get_if<Ran>(&answer);
  const bool awaited = !ready_     ? std::holds_alternative<Ready>(answer)
                       : compiles_ ? requested_ && compiled && compiled->id == requested_id_
                                   : requested_ && ran && ran->id == requested_id_;
  if (!awaited) throw FormatError("an unexpected answer");
  ready_ = true;
  requested_ = false;
  deadline_ = 0;
}

WorkerLoss WorkerHandle::lose(WorkerLoss::Why why, std::string damage) {
  WorkerLoss lost{why, ready_, requested_, transport_->end(), std::move(damage)};
  clear();
  return lost;
}

}  // namespace ergotune
