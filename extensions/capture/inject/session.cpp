#include "capture/inject/session.hpp"

#include <fnmatch.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ergotune::inject {

Session& Session::get() {
  static Session* const session = new Session;
  return *session;
}

Session::Session() {
  const char* path = std::getenv(capture::kSocketVariable);
  if (!path || !*path) return;
  path_ = path;
  connect();
}

void Session::connect() {
  process_ = ::getpid();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.empty() || path_.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(socket);
    return;
  }
  stream_.emplace(capture::kKind, socket, socket);
  // wishes, protocol, mode, kernel, skip, folder, most bytes, rounding, source
  const capture::Message reply =
      exchange({"hello", capture::kProtocol, interface_name(), std::to_string(process_), program_command()}, true);
  if (reply.size() != 9 || reply[0] != "wishes" || reply[1] != capture::kProtocol) return stream_.reset();
  using Mode = CaptureRequest::Mode;
  wishes_.mode = reply[2] == "capture" ? Mode::capture
                 : reply[2] == "list"  ? Mode::list
                 : reply[2] == "run"   ? Mode::run
                                       : Mode::nothing;
  wishes_.kernel = reply[3];
  wishes_.skip = std::strtoull(reply[4].c_str(), nullptr, 10);
  wishes_.folder = reply[5];
  wishes_.most_bytes = std::strtoull(reply[6].c_str(), nullptr, 10);
  wishes_.tune_rounding = reply[7] == "1";
  wishes_.source = reply[8];
}

void Session::after_fork() {
  if (process_ == ::getpid() || path_.empty()) return;
  stream_.reset();
  connect();
}

bool Session::wants_kernel(const std::string& name) const {
  return wishes_.kernel.empty() || ::fnmatch(wishes_.kernel.c_str(), name.c_str(), 0) == 0;
}

capture::Message Session::exchange(const capture::Message& message, bool answered) {
  if (!stream_) return {};
  try {
    stream_->send(message);
    if (!answered) return {};
    // a command that was stopped answers nothing; what it compiles takes seconds
    constexpr double kPatience = 120;
    if (auto answer = stream_->receive(kPatience)) return *answer;
    stream_.reset();
    return {};
  } catch (const Error&) {
    stream_.reset();
    return {};
  }
}

void Session::send(const capture::Message& message) {
  const std::lock_guard lock(mutex_);
  after_fork();
  exchange(message, false);
}

capture::Message Session::ask(const capture::Message& message) {
  const std::lock_guard lock(mutex_);
  after_fork();
  return exchange(message, true);
}

std::string program_command() {
  std::string text;
  if (std::FILE* file = std::fopen("/proc/self/cmdline", "rb")) {
    char bytes[400];
    const std::size_t got = std::fread(bytes, 1, sizeof bytes, file);
    std::fclose(file);
    text.assign(bytes, got);
  }
  while (!text.empty() && text.back() == '\0') text.pop_back();
  for (char& c : text)
    if (c == '\0') c = ' ';
  return text;
}

}  // namespace ergotune::inject
