#include "cli/hold_settings.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/run_here.hpp"
#include "ergotune/error.hpp"
#include "power/guardian/guardian.hpp"

namespace ergotune::cli {
namespace {

std::unique_ptr<ControlSession> put_into_force(std::unique_ptr<Control> control, const ControlSetting& setting,
                                               bool take_over) {
  for (const auto& [quantity, value] : setting)
    if (const ControlResult checked = check_value(quantity, control->range(quantity), value); !checked.ok())
      throw UserError(checked.message);
  ControlSessionOptions options;
  options.take_over = take_over;
  auto session = ControlSession::open(std::move(control), options);
  for (const std::string& note : session->notes()) fmt::print(stderr, "note: {}\n", note);
  if (const ControlResult set = session->apply(setting); !set.ok()) throw UserError(set.message);
  return session;
}

}  // namespace

int run_at(std::unique_ptr<Control> control, const ControlSetting& setting, const std::vector<std::string>& command,
           bool take_over) {
  require_program(command);
  const auto session = put_into_force(std::move(control), setting, take_over);
  // A signal that ends this process ends the program, too, and the guardian restores the settings.
  const int code = run_here(command);
  session->finish();
  return code;
}

void hold_for(std::unique_ptr<Control> control, const ControlSetting& setting, pid_t process, bool take_over) {
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (descriptor < 0)
    throw UserError(fmt::format("--for: process {} cannot be waited for: {}", process, std::strerror(errno)));
  const auto session = put_into_force(std::move(control), setting, take_over);
  pollfd ended{descriptor, POLLIN, 0};
  while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
  ::close(descriptor);
  session->finish();
}

}  // namespace ergotune::cli
