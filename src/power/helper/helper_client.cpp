// A control through ergotuned: the same interface as other controls, with a lease of the daemon instead of lock,
// journal and guardian in this process.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>

#include "power/controls/control_backends.hpp"
#include "power/helper/helper_protocol.hpp"

namespace ergotune {
namespace {

using namespace helper;

constexpr const char* kGone = "ergotuned has gone; its guardian restores what it had set";

class Connection {
 public:
  explicit Connection(int socket) : socket_(socket) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { ::close(socket_); }

  /// Returns nullptr and sets `reason` if there is no trustworthy daemon.
  static std::unique_ptr<Connection> open(const std::string& path, std::string& reason) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    struct stat info {};
    if (path.size() >= sizeof address.sun_path || ::lstat(path.c_str(), &info) != 0) {
      reason = fmt::format("ergotuned is not there: no socket {}", path);
      return nullptr;
    }
    if (!S_ISSOCK(info.st_mode)) {
      reason = fmt::format("{} is a link or no socket, so it is not used", path);
      return nullptr;
    }
    std::memcpy(address.sun_path, path.c_str(), path.size());
    auto connection = std::make_unique<Connection>(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const timeval patience{30};  // a lease may have to wait until settings are restored
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
    if (const auto* refusal = hello ? std::get_if<DoneAnswer>(&*hello) : nullptr) {
      reason = fmt::format("ergotuned at {}: {}", path, refusal->message);
      return nullptr;
    }
    if (!hello || !std::holds_alternative<Hello>(*hello)) {
      reason = fmt::format("what listens at {} is not this version of ergotuned, or ended the connection", path);
      return nullptr;
    }
    connection->nonce_ = header.nonce;
    return connection;
  }

  /// True if the helper does not answer any more.
  bool lost() const { return lost_; }

  Answer call(const Request& request) {
    std::lock_guard hold(mutex_);
    const auto sequence = ++sequence_;
    const auto bytes = encode(nonce_, sequence, request);
    const ssize_t n = TEMP_FAILURE_RETRY(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
    Header header;
    if (n == static_cast<ssize_t>(bytes.size()))
      if (auto answer = receive(header); answer && header.nonce == nonce_ && header.sequence == sequence)
        return std::move(*answer);
    lost_ = true;
    return DoneAnswer{ControlStatus::failed, kGone};
  }

 private:
  std::optional<Answer> receive(Header& header) {
    std::string bytes(kMaxMessage, '\0');
    const ssize_t n = TEMP_FAILURE_RETRY(::recv(socket_, bytes.data(), bytes.size(), 0));
    if (n < 0) return std::nullopt;
    return decode_answer(std::string_view(bytes.data(), static_cast<std::size_t>(n)), header);
  }

  int socket_;
  std::uint64_t nonce_{}, sequence_ = 0;
  std::mutex mutex_;
  std::atomic<bool> lost_ = false;
};

ControlResult result_of(const Answer& answer) {
  if (const auto* done = std::get_if<DoneAnswer>(&answer)) return {done->status, done->message};
  return {ControlStatus::failed, "ergotuned gave an answer to another question"};
}

class HelperControl final : public Control {
 public:
  HelperControl(std::unique_ptr<Connection> connection, Device device, ControlEnvironment environment,
                std::unique_ptr<Control> direct)
      : connection_(std::move(connection)),
        device_(std::move(device)),
        environment_(std::move(environment)),
        direct_(std::move(direct)) {}
  ~HelperControl() override { stop_renewing(); }

  std::string id() const override { return device_.id; }
  std::string device_key() const override { return device_.key; }
  ControlEnvironment environment() const override { return environment_; }
  bool permitted() override { return true; }
  bool has_remote_guardian() const override { return true; }
  std::string reopen_id() const override { return direct_ ? direct_->reopen_id() : id(); }
  // Reading needs no privilege; the daemon changes, records and restores settings.
  std::string foreign_under_load(const std::vector<std::string>& reasons,
                                 std::optional<double> ran_mhz) const override {
    return direct_ ? direct_->foreign_under_load(reasons, ran_mhz) : std::string();
  }
  bool may_overlook_lock() const override { return direct_ && direct_->may_overlook_lock(); }
  double clock_tolerance() const override { return direct_ ? direct_->clock_tolerance() : 0.01; }
  std::string lost() const override {
    if (connection_->lost()) return kGone;
    return direct_ ? direct_->lost() : std::string();
  }
  // The daemon reads back what it has set whenever a lease is renewed, and restores it when a lease ends.
  ControlResult check(ControlQuantity, double) override {
    return result_of(connection_->call(RenewRequest{device_.key}));
  }
  // The daemon checks the settings before it grants a lease.
  std::string external_lock_sign() override { return {}; }
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
    // The lease is renewed several times within its duration, since measurements may be long.
    const double lifetime = std::max(1.0, std::get<DoneAnswer>(answer).seconds);
    renewer_ = std::thread([this, lifetime] {
      std::unique_lock hold(mutex_);
      while (!wake_.wait_for(hold, std::chrono::duration<double>(lifetime / 3), [this] { return released_; })) {
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
  std::unique_ptr<Control> direct_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool released_ = false;
  std::thread renewer_;
};

/// The device as ergotuned lists it; nullopt, with the reason, if it does not.
std::optional<Device> listed_device(Connection& connection, const std::string& key, std::string& reason) {
  const auto answer = connection.call(ListRequest{});
  const auto* list = std::get_if<DevicesAnswer>(&answer);
  reason = list ? "ergotuned does not know this device" : result_of(answer).message;
  if (!list) return std::nullopt;
  const auto& all = list->devices;
  const auto found = std::ranges::find_if(all, [&](const Device& device) { return device.key == key; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

std::string helper_lease(const std::string& device_key, const ControlEnvironment& environment) {
  std::string reason;
  const auto connection = Connection::open(environment.helper_socket, reason);
  const auto device = connection ? listed_device(*connection, device_key, reason) : std::nullopt;
  return device ? device->holder : std::string();
}

std::unique_ptr<Control> open_helper_control(const std::string& device_key, const ControlEnvironment& environment,
                                             std::string& reason, std::unique_ptr<Control>& direct) {
  auto connection = Connection::open(environment.helper_socket, reason);
  if (!connection) return nullptr;
  auto device = listed_device(*connection, device_key, reason);
  if (!device) return nullptr;
  if (device->allowed)
    return std::make_unique<HelperControl>(std::move(connection), *std::move(device), environment, std::move(direct));
  reason = fmt::format("ergotuned's policy does not let you set clocks of {}", device->id);
  return nullptr;
}

}  // namespace ergotune
