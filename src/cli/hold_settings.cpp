#include "cli/hold_settings.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/files.hpp"
#include "cli/command.hpp"
#include "cli/run_here.hpp"
#include "ergotune/error.hpp"
#include "power/guardian/guardian.hpp"

namespace ergotune::cli {
namespace {

std::unique_ptr<ControlSession> put_into_force(std::unique_ptr<Control> control, const ControlSetting& setting,
                                               bool take_over, const std::string& for_whom) {
  for (const auto& [quantity, value] : setting)
    if (const ControlResult checked = check_value(quantity, control->range(quantity), value); !checked.ok())
      throw UserError(checked.message);
  ControlSessionOptions options;
  options.take_over = take_over;
  std::vector<std::string> values;
  for (const auto& [quantity, value] : setting)
    values.push_back(fmt::format("{} {:g} {}", to_string(quantity), value, quantity_unit(quantity)));
  options.command = fmt::format("{} for {}", fmt::join(values, ", "), for_whom);
  auto session = ControlSession::open(std::move(control), options);
  for (const std::string& note : session->notes()) fmt::print(stderr, "note: {}\n", note);
  if (const ControlResult set = session->apply(setting); !set.ok()) throw UserError(set.message);
  return session;
}

/// "process 4711 (./simulate input.nml)"
std::string describe_process(pid_t process) {
  std::string words = read_file(fmt::format("/proc/{}/cmdline", process)).value_or("");
  while (!words.empty() && words.back() == '\0') words.pop_back();
  std::replace_if(
      words.begin(), words.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return words.empty() ? fmt::format("process {}", process) : fmt::format("process {} ({})", process, words);
}

}  // namespace

std::unique_ptr<Control> chosen_control(const std::optional<std::string>& id) {
  std::vector<std::string> why_not, ids = list_controls();
  if (id) ids = {*id};
  std::vector<std::unique_ptr<Control>> usable;
  for (const std::string& one : ids) {
    std::string why;
    if (auto control = usable_control(one, &why)) usable.push_back(std::move(control));
    if (!why.empty()) why_not.push_back(why);
  }
  if (usable.size() == 1) return std::move(usable.front());
  if (usable.size() > 1)
    throw UserError(fmt::format("--control: name one of {}, through each of which something can be set here",
                                fmt::join(ids, ", ")));
  if (why_not.empty()) why_not.push_back("there is no clock or power limit (\"ergotune clocks status\")");
  throw UserError(fmt::format("nothing can be set here: {}", fmt::join(why_not, "; ")));
}

Background::Background() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw Error(fmt::format("no process can be started: {}", std::strerror(errno)));
  if (child == 0) {
    ::close(ends[0]);
    report_ = ends[1];
    return;
  }
  ::close(ends[1]);
  char in_force = 0;
  ssize_t read = 0;
  while ((read = ::read(ends[0], &in_force, 1)) < 0 && errno == EINTR) {
  }
  if (read == 1) throw Exit{0};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  throw Exit{WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
}

Background::~Background() {
  if (report_ >= 0) ::close(report_);
}

void Background::in_force() {
  std::fflush(nullptr);
  ::setsid();
  if (const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC); null >= 0) {
    for (int stream = 0; stream < 3; ++stream) ::dup2(null, stream);
    ::close(null);
  }
  (void)!::write(report_, "1", 1);
  ::close(report_);
  report_ = -1;
}

int run_at(std::unique_ptr<Control> control, const ControlSetting& setting, const std::vector<std::string>& command,
           bool take_over) {
  require_program(command);
  const auto session =
      put_into_force(std::move(control), setting, take_over, fmt::format("\"{}\"", fmt::join(command, " ")));
  // A signal that ends this process ends the program as well, and the guardian restores the settings.
  const int code = run_here(command);
  session->finish();
  return code;
}

void hold_for(std::unique_ptr<Control> control, const ControlSetting& setting, pid_t process, bool take_over,
              Background* background) {
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (descriptor < 0)
    throw UserError(fmt::format("--for: process {} cannot be waited for: {}", process, std::strerror(errno)));
  const auto session = put_into_force(std::move(control), setting, take_over, describe_process(process));
  if (background) background->in_force();
  pollfd ended{descriptor, POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  ::close(descriptor);
  session->finish();
}

}  // namespace ergotune::cli
