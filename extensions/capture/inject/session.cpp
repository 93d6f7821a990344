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
  socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return;
  capture::Message reply;
  const bool talked = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                      capture::send_message(socket_, {"hello", capture::kProtocol, interface_name(),
                                                      std::to_string(process_), program_words()}) &&
                      capture::receive_message(socket_, pending_, reply);
  // wishes, protocol, mode, kernel, skip, folder, most bytes, rounding
  if (!talked || reply.size() != 8 || reply[0] != "wishes" || reply[1] != capture::kProtocol) {
    ::close(socket_);
    socket_ = -1;
    return;
  }
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
}

void Session::after_fork() {
  if (process_ == ::getpid() || path_.empty()) return;
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  pending_.clear();
  connect();
}

bool Session::wants_kernel(const std::string& name) const {
  return wishes_.kernel.empty() || ::fnmatch(wishes_.kernel.c_str(), name.c_str(), 0) == 0;
}

void Session::tell(const capture::Message& message) {
  const std::lock_guard lock(mutex_);
  after_fork();
  if (socket_ >= 0 && capture::send_message(socket_, message)) return;
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

capture::Message Session::ask(const capture::Message& message) {
  const std::lock_guard lock(mutex_);
  after_fork();
  capture::Message reply;
  if (socket_ >= 0 && capture::send_message(socket_, message) && capture::receive_message(socket_, pending_, reply))
    return reply;
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  return {};
}

std::string program_words() {
  std::string words;
  if (std::FILE* file = std::fopen("/proc/self/cmdline", "rb")) {
    char bytes[400];
    const std::size_t got = std::fread(bytes, 1, sizeof bytes, file);
    std::fclose(file);
    words.assign(bytes, got);
  }
  while (!words.empty() && words.back() == '\0') words.pop_back();
  for (char& c : words)
    if (c == '\0') c = ' ';
  return words;
}

}  // namespace ergotune::inject
