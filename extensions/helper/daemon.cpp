// ergotuned: the optional root helper. Its only inputs are its command line and policy file: the environment is cleared
// first, and clients cannot name files, libraries or roots.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "helper/helper_service.hpp"
#include "power/controls/control.hpp"
#include "power/guardian/guardian.hpp"
#include "power/guardian/journal.hpp"

namespace ergotune::helper {
namespace {

struct DaemonOptions {
  std::string socket = "/run/ergotune/ergotuned.sock";
  std::string policy = "/etc/ergotune/ergotuned.toml";
  std::string audit_log;  ///< empty: standard error, which systemd records in its journal
  ControlEnvironment environment;
};

constexpr std::size_t kMaxClientsPerUser = 16;
constexpr double kRest = 1;  // s to wait after no client could be accepted

class Audit {
 public:
  explicit Audit(const std::string& file) {
    if (file.empty()) return;
    descriptor_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (descriptor_ < 0) throw UserError(fmt::format("cannot write the audit log {}: {}", file, std::strerror(errno)));
    // A pipe that is not read would block the daemon.
    struct stat info {};
    if (::fstat(descriptor_, &info) != 0 || (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode)))
      throw UserError(fmt::format("cannot write the audit log {}: it is not a regular file", file));
  }
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;
  ~Audit() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  /// Writes a line; if the file does not accept it, writes it to standard error with the reason.
  void operator()(const std::string& line) const {
    const std::string text = fmt::format("{} {}\n", iso_time(wall_seconds()), line);
    if (descriptor_ >= 0 && write_all(descriptor_, text)) return;
    const std::string why =
        descriptor_ >= 0 ? fmt::format("(the audit log cannot be written: {}) ", std::strerror(errno)) : "";
    write_all(STDERR_FILENO, why + text);
  }

 private:
  static bool write_all(int descriptor, std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::write(descriptor, text.data(), text.size());
      if (n < 0 && errno != EINTR) return false;
      if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  int descriptor_ = -1;
};

// Creates the socket. An existing file in its place is removed only if it is a socket without a listener.
int listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) throw UserError("the path of the socket is too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const auto folder = std::filesystem::path(path).parent_path();
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    throw UserError(fmt::format("the socket's folder {} is not there, or a link", folder.string()));
  if ((info.st_uid != 0 && info.st_uid != ::geteuid()) || (info.st_mode & (S_IWGRP | S_IWOTH)))
    throw UserError(
        fmt::format("others can write to the socket's folder {}: chmod go-w, or choose another", folder.string()));
  const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) throw Error(std::string("cannot make a socket: ") + std::strerror(errno));
  if (::lstat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode))
      throw UserError(path + " is there and is not a socket (a link, perhaps): it is not touched");
    if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 || errno == EAGAIN)
      throw UserError("another ergotuned listens at " + path);
    ::unlink(path.c_str());
  }
  if (::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw UserError(fmt::format("cannot make the socket {}: {}", path, std::strerror(errno)));
  // All users may connect; the policy decides what each may do.
  if (::chmod(path.c_str(), 0666) != 0 || ::listen(socket, 16) != 0)
    throw UserError(fmt::format("cannot listen at {}: {}", path, std::strerror(errno)));
  return socket;
}

bool identify(int socket, Peer& peer) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return false;
  peer.pid = credentials.pid;
  peer.uid = credentials.uid;
  peer.groups = {credentials.gid};
#ifdef SO_PEERGROUPS
  std::vector<gid_t> groups(65536);
  size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0)
    peer.groups.insert(peer.groups.end(), groups.begin(), groups.begin() + size / sizeof(gid_t));
#endif
  return true;
}

class Daemon {
 public:
  explicit Daemon(const DaemonOptions& options)
      : options_(options),
        audit_(options.audit_log),
        service_(load_policy(options.policy), Devices::of(options.environment),
                 [this](const auto& line) { audit_(line); }) {}
  ~Daemon() {
    for (const auto& [socket, client] : clients_) ::close(socket);
    if (listener_ >= 0) {
      ::close(listener_);
      ::unlink(options_.socket.c_str());
    }
    if (signals_ >= 0) ::close(signals_);
  }

  int run() {
    sigset_t caught;
    sigemptyset(&caught);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&caught, signal);
    ::sigprocmask(SIG_BLOCK, &caught, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN);
    signals_ = ::signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0) throw Error("cannot watch signals");
    StateFolder::open(options_.environment.state_folder);  // reports an error now, not at the first request for a lease
    for (const auto& report : replay_stale_journals(options_.environment)) audit_(report.summary);
    listener_ = listen_at(options_.socket);
    audit_("ergotuned listens at " + options_.socket);
    while (!stopping_) turn();
    audit_("ergotuned stops");
    return 0;
  }

 private:
  void turn() {
    const bool resting = host_seconds() < rests_until_;
    std::vector<pollfd> polled = {{signals_, POLLIN, 0}, {resting ? -1 : listener_, POLLIN, 0}};
    for (const auto& [socket, client] : clients_) polled.push_back({socket, POLLIN, 0});
    double left = service_.next_expiry(host_seconds());
    if (resting && (left < 0 || left > kRest)) left = kRest;
    const int patience = left < 0 ? -1 : static_cast<int>(std::min(left, 3600.0) * 1000) + 1;
    if (::poll(polled.data(), polled.size(), patience) < 0 && errno != EINTR) throw Error("poll failed");
    service_.expire(host_seconds());
    if (polled[0].revents) take_signals();
    for (std::size_t i = 2; i < polled.size(); ++i)
      if (polled[i].revents) serve(polled[i].fd);
    if (polled[1].revents) welcome();
  }

  void take_signals() {
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo != SIGHUP) {
        stopping_ = true;
        continue;
      }
      try {
        Policy policy = load_policy(options_.policy);
        audit_("the policy was read again");
        service_.set_policy(std::move(policy));
      } catch (const std::exception& error) {
        audit_(fmt::format("the policy stays as it was: {}", error.what()));
      }
    }
  }

  void welcome() {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
      if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
      // the pending connection would be reported again immediately
      if (!std::exchange(shut_, true)) audit_(fmt::format("no client is accepted for now: {}", std::strerror(errno)));
      rests_until_ = host_seconds() + kRest;
      return;
    }
    shut_ = false;
    Peer peer;
    std::uint64_t nonce = 0;
    const bool known = identify(socket, peer) && ::getrandom(&nonce, sizeof nonce, 0) == sizeof nonce;
    if (!known) {
      ::close(socket);
      return;
    }
    if (!make_room(peer.uid)) {
      const std::string sorry = encode(
          nonce, 0, Answer(DoneAnswer{ControlStatus::timeout, "too many clients are connected: try again later", 0}));
      (void)!::send(socket, sorry.data(), sorry.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      ::close(socket);
      return;
    }
    std::string hello;
    clients_[socket] = {service_.connect(peer, nonce, hello), peer.uid, host_seconds()};
    answer(socket, hello);
  }

  /// Drops a client if there are too many: the one that has been silent for longest, of this user or of the user with
  /// the most clients. Clients with a lease are kept. Returns false if no client can be dropped.
  bool make_room(uid_t newcomer) {
    std::map<uid_t, std::size_t> of_user;
    for (const auto& [socket, client] : clients_) ++of_user[client.uid];
    uid_t whose = newcomer;
    if (of_user[newcomer] < kMaxClientsPerUser) {
      if (clients_.size() < Service::kMaxClients) return true;
      whose =
          std::ranges::max_element(of_user, [](const auto& a, const auto& b) { return a.second < b.second; })->first;
    }
    int victim = -1;
    for (const auto& [socket, client] : clients_) {
      if (client.uid != whose || service_.holds_lease(client.number)) continue;
      if (victim < 0 || client.heard_at < clients_[victim].heard_at) victim = socket;
    }
    if (victim < 0) return false;
    drop(victim);
    return true;
  }

  void serve(int socket) {
    std::string bytes(kMaxMessage, '\0');
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    const ssize_t n = ::recvmsg(socket, &message, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return drop(socket);
    clients_[socket].heard_at = host_seconds();
    const uid_t uid = clients_[socket].uid;
    if (message.msg_flags & MSG_TRUNC) {
      service_.refused(uid, fmt::format("a message of more than {} bytes", kMaxMessage), host_seconds());
      return drop(socket);
    }
    try {
      const auto reply = service_.handle(clients_[socket].number,
                                         std::string_view(bytes.data(), static_cast<std::size_t>(n)), host_seconds());
      if (reply.empty()) return drop(socket);
      answer(socket, reply);
    } catch (const std::exception& error) {  // from a driver, or out of memory: continue to serve other clients
      audit_(fmt::format("uid {}: the request failed: {}", uid, error.what()));
      drop(socket);
    }
  }

  // Does not wait for a client that does not read its answers.
  void answer(int socket, const std::string& bytes) {
    if (::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) != static_cast<ssize_t>(bytes.size()))
      drop(socket);
  }

  void drop(int socket) {
    const auto client = clients_.find(socket);
    if (client == clients_.end()) return;
    service_.disconnect(client->second.number);
    clients_.erase(client);
    ::close(socket);
  }

  struct Client {
    std::uint64_t number = 0;
    uid_t uid = 0;
    double heard_at = 0;
  };
  DaemonOptions options_;
  Audit audit_;
  Service service_;
  std::map<int, Client> clients_;  // by socket
  int listener_ = -1, signals_ = -1;
  double rests_until_ = 0;
  bool shut_ = false;
  bool stopping_ = false;
};

constexpr const char* kUsage =
    "ergotuned: sets GPU clocks and power limits for the users that its policy lists, and restores them\n\n"
    "  --policy FILE       who may do what (default /etc/ergotune/ergotuned.toml)\n"
    "  --socket PATH       where clients find it (default /run/ergotune/ergotuned.sock)\n"
    "  --state-dir FOLDER  journals and locks (default /var/lib/ergotune)\n"
    "  --audit-log FILE    one line per event (default: standard error)\n"
    "  --nvml FILE         the NVML library (default libnvidia-ml.so.1)\n"
    "  --sysfs-root FOLDER where /sys is found (default /)\n\n"
    "Example: ergotuned --policy /etc/ergotune/ergotuned.toml\n"
    "SIGHUP reads the policy again; SIGTERM restores everything and ends.\n";

}  // namespace

}  // namespace ergotune::helper

int main(int argc, char** argv) {
  using namespace ergotune;
  using namespace ergotune::helper;
  ::clearenv();
  ::umask(077);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "guardian") return run_guardian({arguments.begin() + 1, arguments.end()});
  enable_guardian_verb("guardian");
  DaemonOptions options;
  options.environment.state_folder = "/var/lib/ergotune";
  try {
    for (std::size_t i = 0; i < arguments.size(); i += 2) {
      const auto& name = arguments[i];
      if (name == "--help" || name == "-h") {
        fmt::print("{}", kUsage);
        return 0;
      }
      if (i + 1 == arguments.size()) throw UserError(fmt::format("{} needs a value", name));
      const auto& value = arguments[i + 1];
      if (name == "--policy")
        options.policy = value;
      else if (name == "--socket")
        options.socket = value;
      else if (name == "--state-dir")
        options.environment.state_folder = value;
      else if (name == "--audit-log")
        options.audit_log = value;
      else if (name == "--nvml")
        options.environment.nvml_library = value;
      else if (name == "--sysfs-root")
        options.environment.sysfs_root = value;
      else
        throw UserError(fmt::format(
            "unknown option {}{}", name,
            suggestion(name, {"--policy", "--socket", "--state-dir", "--audit-log", "--nvml", "--sysfs-root"})));
    }
    return Daemon(options).run();
  } catch (const UserError& error) {
    std::fprintf(stderr, "ergotuned: %s\n", error.what());  // fmt::print throws if standard error is closed
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ergotuned: %s\n", error.what());
    return 1;
  }
}
