// A control through ergotuned: the same interface, with the daemon's lease in place of our own lock, journal
// and guardian.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "power/control_backends.hpp"
#include "power/helper_protocol.hpp"

namespace ergotune {
namespace {

using namespace helper;

class Connection {
 public:
  explicit Connection(int socket) : socket_(socket) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::close(socket_); }

  /// nullptr with the reason when there is no daemon that may be trusted.
  static std::unique_ptr<Connection> open(const std::string& path, std::string& reason) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    struct stat info {};
    if (path.empty() || path.size() >= sizeof address.sun_path || ::lstat(path.c_str(), &info) != 0) {
      reason = fmt::format("ergotuned is not there: no socket {}", path);
      return nullptr;
    }
    if (!S_ISSOCK(info.st_mode)) {
      reason = fmt::format("{} is a link or no socket, so it is not used", path);
      return nullptr;
    }
    std::memcpy(address.sun_path, path.c_str(), path.size());
    auto connection = std::make_unique<Connection>(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const timeval patience{30, 0};  // a lease may have to wait for a restore
    ::setsockopt(connection->socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(connection->socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (::connect(connection->socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      reason = fmt::format("ergotuned does not answer at {}: {}", path, std::strerror(errno));
      return nullptr;
    }
    ucred daemon{};
    socklen_t size = sizeof daemon;
    if (::getsockopt(connection->socket_, SOL_SOCKET, SO_PEERCRED, &daemon, &size) != 0 ||
        (daemon.uid != 0 && daemon.uid != ::geteuid())) {
      reason = fmt::format("whoever listens at {} is not root, so it is not used", path);
      return nullptr;
    }
    Header header;
    const auto hello = connection->receive(header);
    if (!hello || !std::holds_alternative<Hello>(*hello)) {
      reason = fmt::format("what listens at {} is not this version of ergotuned", path);
      return nullptr;
    }
    connection->nonce_ = header.nonce;
    return connection;
  }

  Answer call(const Request& request) {
    std::lock_guard hold(mutex_);
    const auto sequence = ++sequence_;
    const auto bytes = encode(nonce_, sequence, request);
    ssize_t n;
    do n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    Header header;
    if (n == static_cast<ssize_t>(bytes.size()))
      if (auto answer = receive(header); answer && header.nonce == nonce_ && header.sequence == sequence)
        return std::move(*answer);
    return DoneAnswer{ControlStatus::failed, "ergotuned has gone; its guardian puts back what it had set", 0};
  }

 private:
  std::optional<Answer> receive(Header& header) {
    std::string bytes(kMaxMessage, '\0');
    ssize_t n;
    do n = ::recv(socket_, bytes.data(), bytes.size(), 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return std::nullopt;
    return decode_answer(std::string_view(bytes.data(), static_cast<std::size_t>(n)), header);
  }

  int socket_;
  std::uint64_t nonce_ = 0, sequence_ = 0;
  std::mutex mutex_;
};

ControlResult result_of(const Answer& answer) {
  if (const auto* done = std::get_if<DoneAnswer>(&answer)) return {done->status, done->message};
  return {ControlStatus::failed, "ergotuned gave an answer to another question"};
}

class HelperControl final : public Control {
 public:
  HelperControl(std::unique_ptr<Connection> connection, Device device, ControlEnvironment environment)
      : connection_(std::move(connection)),
        device_(std::move(device)),
        environment_(std::move(environment)) {}
  ~HelperControl() override { stop_renewing(); }

  std::string id() const override { return device_.id; }
  std::string device_key() const override { return device_.key; }
  ControlEnvironment environment() const override { return environment_; }
  bool permitted() override { return true; }
  bool guarded_elsewhere() const override { return true; }
  // The daemon looks, keeps and puts back.
  std::string foreign_setting() override { return {}; }
  std::vector<RestoreStep> snapshot() override { return {}; }
  ControlResult restore(const RestoreStep&) override {
    return {ControlStatus::not_supported, "ergotuned restores by itself"};
  }

  ControlRange range(ControlQuantity quantity) override {
    if (const auto known = ranges_.find(quantity); known != ranges_.end()) return known->second;
    const auto answer = connection_->call(RangeRequest{device_.key, quantity});
    const auto* got = std::get_if<RangeAnswer>(&answer);
    if (!got) return {};
    return ranges_[quantity] = got->range;
  }

  std::vector<double> core_clocks_at(double memory_clock_mhz) override {
    if (const auto known = clocks_.find(memory_clock_mhz); known != clocks_.end()) return known->second;
    const auto answer = connection_->call(CoreClocksRequest{device_.key, memory_clock_mhz});
    const auto* got = std::get_if<ClocksAnswer>(&answer);
    if (!got) return {};
    return clocks_[memory_clock_mhz] = got->values;
  }

  ControlResult set(ControlQuantity quantity, double value) override {
    return result_of(connection_->call(SetRequest{device_.key, quantity, value}));
  }

  ControlResult acquire(const std::string& command, bool take_over) override {
    const auto answer = connection_->call(AcquireRequest{device_.key, command, 0, take_over});
    auto result = result_of(answer);
    if (!result.ok()) return result;
    // A lease lives as long as we say so, several times within its time: measurements may be long.
    const double lifetime = std::max(1.0, std::get<DoneAnswer>(answer).seconds);
    renewer_ = std::thread([this, lifetime] {
      std::unique_lock hold(mutex_);
      while (
          !wake_.wait_for(hold, std::chrono::duration<double>(lifetime / 3), [this] { return released_; })) {
        hold.unlock();
        connection_->call(RenewRequest{device_.key});
        hold.lock();
      }
    });
    return result;
  }

  ControlResult release() override {
    stop_renewing();
    return result_of(connection_->call(ReleaseRequest{device_.key}));
  }

 private:
  void stop_renewing() {
    {
      std::lock_guard hold(mutex_);
      released_ = true;
    }
    wake_.notify_all();
    if (renewer_.joinable()) renewer_.join();
  }

  std::unique_ptr<Connection> connection_;
  Device device_;
  ControlEnvironment environment_;
  std::map<ControlQuantity, ControlRange> ranges_;
  std::map<double, std::vector<double>> clocks_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool released_ = false;
  std::thread renewer_;
};

}  // namespace

std::unique_ptr<Control> open_helper_control(const std::string& device_key,
                                             const ControlEnvironment& environment, std::string& reason) {
  auto connection = Connection::open(environment.helper_socket, reason);
  if (!connection) return nullptr;
  const auto answer = connection->call(ListRequest{});
  const auto* list = std::get_if<DevicesAnswer>(&answer);
  if (!list) {
    reason = result_of(answer).message;
    return nullptr;
  }
  for (const auto& device : list->devices) {
    if (device.key != device_key) continue;
    if (device.allowed) return std::make_unique<HelperControl>(std::move(connection), device, environment);
    reason = fmt::format("ergotuned's policy does not let you set clocks of {}", device.id);
    return nullptr;
  }
  reason = "ergotuned does not know this device";
  return nullptr;
}

}  // namespace ergotune
