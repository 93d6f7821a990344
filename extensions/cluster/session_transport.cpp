#include "cluster/session_transport.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/clock.hpp"

namespace ergotune {

using namespace agents;

namespace {
/// Multiple of the silence: a session may return after a delay, while a node should be replaced soon.
constexpr double kSessionsPatience = 4;
constexpr double kFarewell = 5;  ///< s to write the last messages
}  // namespace

SessionTransport::SessionTransport(int in, int out)
    : stream_(kKind, in, out), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::thread([this] { loop(); });
}

SessionTransport::~SessionTransport() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
  thread_.join();
  const double until = host_seconds() + kFarewell;
  while (stream_.unsent() > 0 && host_seconds() < until) {
    pollfd polled{stream_.out(), POLLOUT, 0};
    ::poll(&polled, 1, 50);
    stream_.flush();
  }
  ::close(wake_);
}

void SessionTransport::send(const Message& message) {
  const std::lock_guard lock(mutex_);
  stream_.post(message);
  const std::uint64_t one = 1;
  if (stream_.unsent() > 0) (void)!::write(wake_, &one, sizeof one);
}

std::optional<Message> SessionTransport::receive(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return !received_.empty() || ended_; });
  if (received_.empty()) return std::nullopt;
  Message message = std::move(received_.front());
  received_.pop_front();
  return message;
}

bool SessionTransport::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_ && received_.empty();
}

void SessionTransport::keep_beating(double silence) {
  const std::lock_guard lock(mutex_);
  silence_ = silence;
}

void SessionTransport::tick() {
  const std::lock_guard lock(mutex_);
  patience_until_ = host_seconds() + silence_;
}

void SessionTransport::allow(double seconds) {
  const std::lock_guard lock(mutex_);
  patience_until_ = host_seconds() + seconds;
}

void SessionTransport::beat() {
  const double now = host_seconds();
  if (silence_ <= 0) return;
  if (now - stream_.sent_at() >= silence_ / 6 && now < patience_until_) stream_.post(Heartbeat{});
  if (now - stream_.heard_at() > kSessionsPatience * silence_) ended_ = true;
}

void SessionTransport::loop() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    try {
      while (auto message = stream_.next()) {
        if (!std::holds_alternative<Heartbeat>(*message)) received_.push_back(std::move(*message));
      }
      stream_.flush();
      ended_ = ended_ || stream_.ended() || stream_.broken();
    } catch (const FormatError&) {
      ended_ = true;
    }
    beat();
    changed_.notify_all();
    pollfd polled[] = {{wake_, POLLIN, 0},
                       {ended_ ? -1 : stream_.in(), POLLIN, 0},
                       {stream_.unsent() > 0 ? stream_.out() : -1, POLLOUT, 0}};
    const int pause = silence_ > 0 ? static_cast<int>(std::clamp(silence_ / 12 * 1000, 1.0, 5000.0)) : 5000;
    lock.unlock();
    ::poll(polled, 3, pause);
    std::uint64_t count;
    (void)!::read(wake_, &count, sizeof count);
    lock.lock();
  }
}

}  // namespace ergotune
