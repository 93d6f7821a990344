#include "cli/watch_child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "ergotune/error.hpp"

namespace ergotune::cli {
namespace {

/// s to wait for the link
constexpr int kPatience = 30;

/// Reads the first line from a descriptor; returns what was read if nothing more arrives for some time.
std::string first_line(int descriptor) {
  std::string line;
  for (char c = 0; line.size() < 4096;) {
    pollfd wait{descriptor, POLLIN, 0};
    if (::poll(&wait, 1, kPatience * 1000) <= 0 || ::read(descriptor, &c, 1) != 1 || c == '\n') break;
    line += c;
  }
  return line;
}

}  // namespace

WatchChild::WatchChild(const std::filesystem::path& store, std::int64_t session) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error("cannot make a pipe");
  try {
    child_ = ChildProcess::start({own_program(), "watch", store.string(), "--session", std::to_string(session),
                                  "--until", std::to_string(::getpid()), "--descriptor", "3"},
                                 {}, ends[1]);
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
  const auto reported = nlohmann::json::parse(first_line(ends[0]), nullptr, false);
  ::close(ends[0]);
  if (!reported.is_object() || !reported.contains("url"))
    throw Error("the page's server did not begin: try \"ergotune watch\" on its own");
  url_ = reported["url"].get<std::string>();
}

WatchChild::~WatchChild() {
  if (!child_) return;
  child_->kill(SIGTERM);
  child_->wait(3);
}

}  // namespace ergotune::cli
