#include "cli/hold_settings.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "api/wisdom_records.hpp"
#include "base/files.hpp"
#include "cli/command.hpp"
#include "cli/run_here.hpp"
#include "ergotune/error.hpp"
#include "kernel/wisdom_key.hpp"

namespace ergotune::cli {
namespace {

/// The record whose clock or limit suits one of the devices; null where there is none.
const WisdomRecord* record_for(const std::vector<WisdomDevice>& devices, const std::vector<WisdomRecord>& records) {
  WisdomRequest request;
  for (const WisdomDevice& device : devices) {
    request.device = device;
    const WisdomChoice choice = select_wisdom(records, request);
    if (choice.match == WisdomMatch::exact || choice.match == WisdomMatch::near_size) return choice.record;
  }
  return nullptr;
}

/// "process 4711 (./simulate input.nml)"
std::string describe_process(pid_t process) {
  std::string command_line = read_file(fmt::format("/proc/{}/cmdline", process)).value_or("");
  while (!command_line.empty() && command_line.back() == '\0') command_line.pop_back();
  std::replace_if(
      command_line.begin(), command_line.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return command_line.empty() ? fmt::format("process {}", process)
                              : fmt::format("process {} ({})", process, command_line);
}

int open_requests(const std::string& path) {
  // With a writer of its own it never reads an end of the FIFO.
  const int fifo = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  struct stat kind = {};
  if (fifo >= 0 && ::fstat(fifo, &kind) == 0 && S_ISFIFO(kind.st_mode)) return fifo;
  throw UserError(fmt::format("--requests: {} is not a FIFO that can be read", path));
}

/// The last whole line that has come; `unread` keeps the rest.
std::optional<double> latest_request(int fifo, std::string& unread) {
  char bytes[4096];
  for (ssize_t got = 0; (got = ::read(fifo, bytes, sizeof bytes)) > 0;) unread.append(bytes, static_cast<size_t>(got));
  const std::size_t end = unread.rfind('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::size_t begin = end == 0 ? std::string::npos : unread.rfind('\n', end - 1);
  const double mhz = std::strtod(unread.c_str() + (begin == std::string::npos ? 0 : begin + 1), nullptr);
  unread.erase(0, end + 1);
  return mhz > 0 ? std::optional(mhz) : std::nullopt;
}

}  // namespace

std::unique_ptr<ControlSession> put_into_force(std::unique_ptr<Control> control, const ControlSetting& setting,
                                               bool take_over, const std::string& purpose) {
  auto session = hold_setting(std::move(control), setting, take_over, purpose);
  for (const std::string& note : session->notes()) fmt::print(stderr, "note: {}\n", note);
  return session;
}

std::optional<double> seconds_until_core_clock(ControlSession& session, double mhz) {
  const auto monitor = monitor_for_control(session.control().reopen_id());
  return monitor ? seconds_until_core_clock(*monitor, mhz, session.control().clock_tolerance()) : std::nullopt;
}

ControlSetting setting_of_wisdom(const std::vector<std::string>& sources, const Control& control,
                                 const std::string& program) {
  const std::vector<WisdomDevice> devices = devices_of(control);
  std::vector<Wisdom> all;
  for (const std::string& source : sources)
    for (const auto& file : wisdom_files(source)) {
      Wisdom wisdom = read_wisdom(file).value_or(Wisdom{});
      print_warnings(file, wisdom.warnings);
      std::erase_if(wisdom.records, [](const WisdomRecord& record) { return record.execution.empty(); });
      all.push_back(std::move(wisdom));
    }
  const auto is_program = [&](const Wisdom& wisdom) { return wisdom.kernel == program; };
  if (std::ranges::any_of(all, is_program)) std::erase_if(all, std::not_fn(is_program));
  ControlSetting setting;
  std::map<ControlQuantity, std::map<double, std::vector<std::string>>> kernels;
  for (const Wisdom& wisdom : all) {
    const WisdomRecord* record = record_for(devices, wisdom.records);
    if (!record) continue;
    for (const auto& [name, value] : record->execution)
      if (const auto quantity = control_quantity_from(name)) {
        setting[*quantity] = std::max(setting[*quantity], value.as_real());
        kernels[*quantity][value.as_real()].push_back(wisdom.kernel);
      }
  }
  if (setting.empty())
    throw UserError(fmt::format("{}: no record of {} has a clock or limit; tune with execution parameters",
                                fmt::join(sources, ", "), devices.front().name));
  for (const auto& [quantity, values] : kernels) {
    if (values.size() < 2) continue;
    std::string list;
    for (const auto& [value, names] : values)
      list += fmt::format("{}{:g} for {}", list.empty() ? "" : ", ", value, fmt::join(names, " and "));
    fmt::print(stderr, "note: kernels differ in {}: {}; the highest is set\n", to_string(quantity), list);
  }
  return setting;
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
              const std::string& requests, Background* background) {
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (descriptor < 0)
    throw UserError(fmt::format("--for: process {} cannot be waited for: {}", process, std::strerror(errno)));
  const int fifo = requests.empty() ? -1 : open_requests(requests);
  std::string unread;
  const auto session = put_into_force(std::move(control), setting, take_over, describe_process(process));
  if (const auto core = setting.find(ControlQuantity::core_clock_mhz); fifo >= 0 && core != setting.end()) {
    nlohmann::ordered_json in_force{{"core_clock_mhz", core->second}};
    if (const auto latency = seconds_until_core_clock(*session, core->second)) in_force["clock_latency"] = *latency;
    print_json(in_force);
  }
  if (background) background->in_force();
  pollfd watched[] = {{descriptor, POLLIN, 0}, {fifo, POLLIN, 0}};
  while (watched[0].revents == 0) {
    if (::poll(watched, 2, -1) < 0 && errno != EINTR) break;
    // A value that the control or a policy refuses leaves the clock as it is: the process runs in either case.
    if (watched[1].revents != 0)
      if (const auto mhz = latest_request(fifo, unread)) (void)session->set(ControlQuantity::core_clock_mhz, *mhz);
  }
  ::close(descriptor);
  if (fifo >= 0) ::close(fifo);
  session->finish();
}

}  // namespace ergotune::cli
