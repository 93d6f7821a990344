#include "cluster/agent_transport.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/clock.hpp"

namespace ergotune {

using namespace agents;

namespace {
constexpr double kSessionsPatience =
    4;                           ///< times the silence: a session that strays may come back, a node is needed soon
constexpr double kFarewell = 5;  ///< s in which the last words may be written
}  // namespace

AgentTransport::AgentTransport(int in, int out) : pipe_(in, out), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::thread([this] { loop(); });
}

AgentTransport::~AgentTransport() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
  thread_.join();
  const double until = host_seconds() + kFarewell;
  while (pipe_.unsent() > 0 && host_seconds() < until) {
    pollfd polled{pipe_.out(), POLLOUT, 0};
    ::poll(&polled, 1, 50);
    pipe_.flush();
  }
  ::close(wake_);
}

void AgentTransport::send(const Message& message) {
  const std::lock_guard lock(mutex_);
  pipe_.send(message);
  const std::uint64_t one = 1;
  if (pipe_.unsent() > 0) (void)!::write(wake_, &one, sizeof one);
}

std::optional<Message> AgentTransport::receive(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return !received_.empty() || ended_; });
  if (received_.empty()) return std::nullopt;
  Message message = std::move(received_.front());
  received_.pop_front();
  return message;
}

bool AgentTransport::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_ && received_.empty();
}

void AgentTransport::keep_beating(double silence) {
  const std::lock_guard lock(mutex_);
  silence_ = silence;
}

void AgentTransport::tick() {
  const std::lock_guard lock(mutex_);
  patience_until_ = host_seconds() + silence_;
}

void AgentTransport::allow(double seconds) {
  const std::lock_guard lock(mutex_);
  patience_until_ = host_seconds() + seconds;
}

void AgentTransport::beat() {
  const double now = host_seconds();
  if (silence_ <= 0) return;
  if (now - pipe_.said_at() >= silence_ / 6 && now < patience_until_) pipe_.send(Beat{});
  if (now - pipe_.heard_at() > kSessionsPatience * silence_) ended_ = true;
}

void AgentTransport::loop() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    try {
      while (auto message = pipe_.next()) {
        if (!std::holds_alternative<Beat>(*message)) received_.push_back(std::move(*message));
      }
      pipe_.flush();
      ended_ = ended_ || pipe_.ended() || pipe_.broken();
    } catch (const FormatError&) {
      ended_ = true;
    }
    beat();
    changed_.notify_all();
    pollfd polled[] = {
        {wake_, POLLIN, 0}, {ended_ ? -1 : pipe_.in(), POLLIN, 0}, {pipe_.unsent() > 0 ? pipe_.out() : -1, POLLOUT, 0}};
    const int pause = silence_ > 0 ? static_cast<int>(std::clamp(silence_ / 12 * 1000, 1.0, 5000.0)) : 5000;
    lock.unlock();
    ::poll(polled, 3, pause);
    std::uint64_t count;
    (void)!::read(wake_, &count, sizeof count);
    lock.lock();
  }
}

}  // namespace ergotune
