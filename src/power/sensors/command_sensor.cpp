// Uses any program that prints time and watts as a sensor: "command:PROGRAM ARGUMENTS".
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/clock.hpp"
#include "base/process/process.hpp"
#include "ergotune/error.hpp"
#include "power/sensors/sensor_family.hpp"

namespace ergotune {

std::optional<CommandLine> parse_command_line(std::string_view line) {
  std::string text(line);
  for (char& c : text)
    if (c == ',' || c == ';' || c == '\t') c = ' ';
  const char* cursor = text.c_str();
  double numbers[2];
  int count = 0;
  for (; count < 2; ++count) {
    char* end = nullptr;
    numbers[count] = std::strtod(cursor, &end);
    if (end == cursor) break;
    cursor = end;
  }
  while (*cursor == ' ' || *cursor == 'W' || *cursor == '\r') ++cursor;
  if (*cursor != '\0' || count == 0) return std::nullopt;
  CommandLine parsed;
  if (count == 2) parsed.time = numbers[0];
  parsed.watts = numbers[count - 1];
  if (!std::isfinite(parsed.watts) || (parsed.time && !std::isfinite(*parsed.time))) return std::nullopt;
  return parsed;
}

namespace {

constexpr std::string_view kPrefix = "command:";
/// Time in s between the end of a program's output and its exit.
constexpr double kPatience = 0.1;

class CommandSensor : public DescribedSensor {
 public:
  CommandSensor(const std::string& id, const std::string& command) : DescribedSensor({}) {
    info_.id = id;
    info_.name = "output of " + command;
    info_.kind = SensorKind::instantaneous_power;
    info_.scope = SensorScope::node;
    start(command);
  }
  ~CommandSensor() override { ::close(output_); }
  CommandSensor(const CommandSensor&) = delete;
  CommandSensor& operator=(const CommandSensor&) = delete;

  ReadStatus read(std::vector<Reading>& out) override {
    const std::size_t before = out.size();
    char chunk[4096];
    ssize_t n;
    while ((n = TEMP_FAILURE_RETRY(::read(output_, chunk, sizeof chunk))) > 0)
      pending_.append(chunk, static_cast<std::size_t>(n));
    const bool ended = n == 0 || errno != EAGAIN;
    const double now = host_seconds();
    std::size_t begin = 0;
    std::vector<CommandLine> lines;
    for (std::size_t end; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1)
      take(std::string_view(pending_).substr(begin, end - begin), now, lines);
    pending_.erase(0, begin);
    // Lines that arrive together were printed at different times; they are placed relative to the last one.
    for (const auto& line : lines) out.push_back({line.time ? *line.time + offset_ : now, corrected(line.watts)});
    if (out.size() > before) return ReadStatus::ok;
    if (!ended) return ReadStatus::no_new_data;
    if (!ended_) error_ = why_ended() + (error_.empty() ? "" : "; " + error_);
    ended_ = true;  // reported only once
    return ReadStatus::failed;
  }

  void restart() override {
    std::vector<Reading> dropped;
    read(dropped);
  }

 private:
  void start(const std::string& command) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw Error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    output_ = ends[0];
    try {
      child_ = ChildProcess::start({"/bin/sh", "-c", command}, {}, -1, ends[1]);
    } catch (...) {
      ::close(ends[0]);
      ::close(ends[1]);
      throw;
    }
    ::close(ends[1]);
    fcntl(output_, F_SETFL, O_NONBLOCK);
  }

  std::string why_ended() {
    const pid_t group = child_ ? child_->pid() : 0;
    const auto status = child_ ? child_->wait(kPatience) : std::nullopt;
    if (!status) return "the sensor program has closed its output";
    ::kill(-group, SIGKILL);  // processes that it left in the background
    child_.reset();
    if (WIFSIGNALED(*status)) return fmt::format("the sensor program was ended by signal {}", WTERMSIG(*status));
    const int code = WEXITSTATUS(*status);
    const char* reason = code == 127 ? ": there is no such program" : code == 126 ? ": it cannot be executed" : "";
    return fmt::format("the sensor program has ended with exit code {}{}", code, reason);
  }

  void take(std::string_view line, double now, std::vector<CommandLine>& lines) {
    const auto parsed = parse_command_line(line);
    if (!parsed) {
      if (!line.empty() && line.front() != '#') error_ = fmt::format("not \"seconds watts\": {}", line);
      return;
    }
    if (!(parsed->watts > 0)) {
      error_ = fmt::format("left out a reading of {} W", parsed->watts);
      return;
    }
    if (parsed->time) {
      // The program may use the host's monotonic clock, the wall clock, or its own; lines can only arrive late, so the
      // smallest delay is the best estimate.
      const double delay = now - *parsed->time;
      if (!axis_known_) {
        axis_known_ = true;
        const double wall = wall_seconds();
        axis_wall_ = std::abs(delay) >= 5 && std::abs(*parsed->time - wall) < 5;
        axis_fixed_ = std::abs(delay) < 5 || axis_wall_;
        offset_ = axis_fixed_ ? 0 : delay;
      }
      if (axis_wall_) offset_ = now - wall_seconds();  // updated, since the wall clock may be changed
      if (!axis_fixed_) offset_ = std::min(offset_, delay);
    }
    lines.push_back(*parsed);
  }

  std::string pending_;
  std::optional<ChildProcess> child_;
  int output_{};
  bool ended_ = false, axis_known_ = false, axis_fixed_{}, axis_wall_{};
  double offset_{};
};

class CommandFamily : public SensorFamily {
 public:
  std::string name() const override { return "command"; }
  std::unique_ptr<Sensor> open(const std::string& id) override {
    const std::string command = id.substr(std::min(id.size(), kPrefix.size()));
    if (command.empty()) throw UserError("sensor command: give the program, as in --sensor \"command:meter --watts\"");
    return std::make_unique<CommandSensor>(id, command);
  }
};

}  // namespace

std::unique_ptr<SensorFamily> make_command_family() { return std::make_unique<CommandFamily>(); }

}  // namespace ergotune
