// ergotune govern: sets the clock with the least energy per unit of work while a program runs, or until it is
// interrupted.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>
#include <thread>

#include "api/clocks.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"
#include "cli/command.hpp"
#include "cli/hold_settings.hpp"
#include "cli/output/progress.hpp"
#include "cli/run_here.hpp"
#include "ergotune/error.hpp"
#include "govern/governor.hpp"
#include "measure/energy/region_monitor.hpp"
#include "measure/energy/span_energy.hpp"
#include "power/guardian/guardian.hpp"

namespace ergotune::cli {
namespace {

struct GovernArguments {
  std::vector<std::string> command;
  std::optional<std::string> control, sensor;
  std::string slowdown = "5%", output;
  bool take_over = false;
};

double share_from(std::string text) {
  const std::string given = text;
  const bool percent = text.ends_with('%');
  if (percent) text.pop_back();
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const double share = percent ? number / 100 : number;
  if (text.empty() || *end != '\0' || !(share > 0) || !(share < 1))
    throw UserError(fmt::format("--max-slowdown: \"{}\" is not a share between 0 and 1; write 5% or 0.05", given));
  return share;
}

/// A file to which the governed program appends one byte per unit of work. It is in memory and disappears with this
/// process.
class ProgressFile {
 public:
  ProgressFile() : file_(::memfd_create("ergotune-progress", MFD_CLOEXEC)) {
    if (file_ < 0) throw Error(fmt::format("no file for the program's progress can be made: {}", std::strerror(errno)));
    ::setenv("ERGOTUNE_PROGRESS", fmt::format("/proc/{}/fd/{}", ::getpid(), file_).c_str(), 1);
  }
  ~ProgressFile() {
    ::close(file_);
    ::unsetenv("ERGOTUNE_PROGRESS");
  }
  ProgressFile(const ProgressFile&) = delete;
  ProgressFile& operator=(const ProgressFile&) = delete;
  double count() const {
    struct stat status {};
    return ::fstat(file_, &status) == 0 ? static_cast<double>(status.st_size) : 0.0;
  }

 private:
  int file_;
};

/// Measures, calls the governor and sets its clock, until it is stopped.
class GovernLoop {
 public:
  GovernLoop(ControlSession& session, std::unique_ptr<Sensor> sensor, std::vector<double> clocks,
             GovernorOptions options)
      : session_(session), options_(options), governor_(std::move(clocks), options) {
    monitor_ = monitor_for_control(session.control().reopen_id());
    margin_ = reading_margin(sensor->info());
    std::vector<std::unique_ptr<Sensor>> sensors;
    sensors.push_back(std::move(sensor));
    recorder_ = std::make_unique<SensorRecorder>(std::move(sensors));
  }

  /// Returns why it ended early; empty if it was stopped.
  std::string run(const std::atomic<bool>& stop) {
    constexpr double kForget = 1800;  // s after which readings are dropped
    begin();
    double begun = host_seconds(), from = 0, clock = 0;
    while (!stop) {
      if (governor_.clock() != clock) {
        clock = governor_.clock();
        if (const ControlResult set = session_.set(ControlQuantity::core_clock_mhz, clock); !set.ok())
          return set.message;
        ++switches_;
        const double settled = host_seconds() + options_.settling;
        if (from > 0) governor_.pass(settled - from, watts_ * (settled - from));
        from = settled;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (const std::string lost = session_.control().lost(); !lost.empty()) return lost;
      const double now = host_seconds(), to = now - margin_;
      work_.push_back({now, progress_.count()});
      if (to - from < governor_.sample_seconds()) continue;
      observe(from, to, clock);
      from = to;
      while (work_.size() > 2 && work_[1].first < from) work_.pop_front();
      if (now - begun < kForget) continue;
      begin();
      begun = host_seconds();
      from = begun + margin_;
    }
    return {};
  }

  const Governor& governor() const { return governor_; }
  bool told() const { return told_; }
  int switches() const { return switches_; }

 private:
  void begin() {
    recorder_->begin(region_reading_period);
    recorder_->wait();
  }

  double units_at(double time) const {
    const auto after = std::ranges::find_if(work_, [&](const auto& one) { return one.first >= time; });
    if (after == work_.begin() || after == work_.end()) return work_.empty() ? 0 : work_.front().second;
    const auto before = std::prev(after);
    return before->second + (after->second - before->second) * (time - before->first) / (after->first - before->first);
  }

  void observe(double from, double to, double clock) {
    const SpanEnergy energy = energy_over(recorder_->traces(from - margin_ - 1).front(), {{from, to}}).front();
    if (!energy.why_not.empty()) return;
    GovernorSample sample;
    sample.seconds = to - from;
    sample.joules = energy.joules;
    watts_ = energy.joules / sample.seconds;
    if (monitor_) sample.clock_mhz = monitor_->read().core_clock_mhz;
    const double units = units_at(to) - units_at(from);
    told_ = told_ || units > 0;
    if (told_) {
      sample.work = units;
      sample.work_error = 1;
    } else {
      // The speed of the program is unknown: assume that work is proportional to the clock, which is safe.
      sample.work = sample.seconds * sample.clock_mhz.value_or(clock);
    }
    governor_.observe(sample);
  }

  ControlSession& session_;
  GovernorOptions options_;
  Governor governor_;
  std::unique_ptr<DeviceMonitor> monitor_;
  std::unique_ptr<SensorRecorder> recorder_;
  ProgressFile progress_;
  std::deque<std::pair<double, double>> work_;
  double margin_ = 0, watts_ = 0;
  bool told_ = false;
  int switches_ = 0;
};

nlohmann::ordered_json document_of(const GovernLoop& loop, double max_slowdown) {
  using Json = nlohmann::ordered_json;
  const Governor& governor = loop.governor();
  Json phases = Json::array();
  for (const GovernedPhase& phase : governor.phases())
    phases.push_back({{"clock_mhz", phase.clock_mhz},
                      {"explored", phase.explored},
                      {"seconds", phase.seconds},
                      {"joules", phase.joules},
                      {"work", phase.work},
                      {"slowdown", phase.slowdown},
                      {"saved", phase.saved},
                      {"clocks_tried", phase.clocks_tried}});
  return Json{{"max_slowdown", max_slowdown},
              {"slowdown", governor.slowdown()},
              {"progress", loop.told() ? "program" : "clock"},
              {"switches", loop.switches()},
              {"exploring",
               {{"seconds", governor.exploring_seconds()},
                {"joules", governor.exploring_joules()},
                {"cost_joules", governor.exploring_cost()}}},
              {"phases", std::move(phases)}};
}

void print_for_people(const GovernLoop& loop, double max_slowdown) {
  const Governor& governor = loop.governor();
  if (governor.phases().empty()) {
    fmt::print(stderr, "note: the run was too short to recognise anything; its clock was the highest\n");
    return;
  }
  fmt::print(stderr, "\n  {:>9} {:>10} {:>10} {:>9} {:>8}\n", "clock", "time", "power", "slowdown", "saved");
  for (const GovernedPhase& phase : governor.phases())
    fmt::print(stderr, "  {:>5.0f} MHz {:>10} {:>10} {:>7.1f} % {:>6.1f} %{}\n", phase.clock_mhz,
               human_duration(phase.seconds), human(phase.seconds > 0 ? phase.joules / phase.seconds : 0, "W"),
               100 * phase.slowdown, 100 * phase.saved, phase.explored ? "" : "  (not explored to its end)");
  fmt::print(stderr, "  slowdown      {:.1f} % (estimated; at most {:g} %)\n", 100 * governor.slowdown(),
             100 * max_slowdown);
  fmt::print(stderr, "  exploring     {}, {} more than at the best clocks\n",
             human_duration(governor.exploring_seconds()), human(std::max(0.0, governor.exploring_cost()), "J"));
  if (!loop.told())
    fmt::print(stderr,
               "note: the program reported no progress ($ERGOTUNE_PROGRESS): its work was taken to follow the clock, "
               "and clocks below {:.0f} % of the highest were not tried\n",
               100 / (1 + max_slowdown));
}

void govern(const GovernArguments& arguments) {
  GovernorOptions options;
  options.max_slowdown = share_from(arguments.slowdown);
  if (!arguments.command.empty()) require_program(arguments.command);
  require_controls_allowed();
  auto control = chosen_control(arguments.control);
  const ControlRange range = control->range(ControlQuantity::core_clock_mhz);
  if (!range.supported)
    throw UserError(fmt::format("{}: the core clock cannot be set{}{}", control->id(),
                                range.why_not.empty() ? "" : ": ", range.why_not));
  std::vector<double> clocks = range.values;
  for (int i = 0; clocks.empty() && i <= 60; ++i) clocks.push_back(range.low + (range.high - range.low) * i / 60);
  auto sensor = open_sensor(arguments.sensor.value_or(control->reopen_id()));
  ControlSessionOptions holder;
  holder.take_over = arguments.take_over;
  const auto session = ControlSession::open(std::move(control), holder);
  for (const std::string& note : session->notes()) fmt::print(stderr, "note: {}\n", note);
  GovernLoop loop(*session, std::move(sensor), std::move(clocks), options);
  int code = 0;
  std::string ended;
  if (arguments.command.empty()) {
    const std::atomic<bool>* interrupted = interruption();
    ended = loop.run(*interrupted);
    if (!ended.empty()) code = 1;
  } else {
    std::atomic<bool> over = false;
    std::exception_ptr failure;
    std::thread beside([&] {
      try {
        ended = loop.run(over);
      } catch (...) {
        failure = std::current_exception();
      }
      if (!over) session->finish();  // the program continues, at its original clocks
    });
    code = run_here(arguments.command);
    over = true;
    beside.join();
    if (failure) std::rethrow_exception(failure);
  }
  session->finish();
  if (!ended.empty()) fmt::print(stderr, "warning: the clock was governed no longer: {}\n", ended);
  print_for_people(loop, options.max_slowdown);
  if (!arguments.output.empty()) {
    auto document = document_of(loop, options.max_slowdown);
    document["command"] = arguments.command;
    document["exit_code"] = code;
    write_named_file(arguments.output, document.dump(2) + "\n");
  }
  if (code != 0) throw Exit{code};
}

}  // namespace

void add_govern_command(Verb app) {
  auto arguments = std::make_shared<GovernArguments>();
  Verb verb = app.add_verb("govern", "Follow the clock of least energy while a program runs");
  verb.add_option("COMMAND", arguments->command,
                  "The program and its arguments, after --; without one, until this command gets a signal")
      .take_all();
  verb.add_option("--max-slowdown", arguments->slowdown,
                  "How much slower the program may become than at the highest clock")
      .kind("SHARE")
      .show_default();
  verb.add_option("--control", arguments->control, "Through this control (the only one there is)");
  verb.add_option("--sensor", arguments->sensor, "Read this sensor (the best one of the device)");
  verb.add_option("-o,--output", arguments->output, "Write what was found to this file as JSON");
  verb.add_flag("--take-over", arguments->take_over, "Set clocks although another process seems to have locked them");
  verb.footer(
      "Examples:\n"
      "  ergotune govern --control nvml:0 --max-slowdown 5% -- ./simulate input.nml\n"
      "  ergotune govern --control nvml:0 -o governed.json -- python3 train.py\n"
      "The program reports its progress by making the file $ERGOTUNE_PROGRESS one byte longer for each unit of its "
      "work, or\n"
      "by energy regions that end. Settings are restored however the program or this command ends.\n"
      "In Python: the command only, because it starts and watches another program");
  verb.callback([arguments] { govern(*arguments); });
}

}  // namespace ergotune::cli
