#include "base/process/process.hpp"
#include "program/program.hpp"

namespace ergotune {
namespace {

std::vector<std::string> supervisor_of(const LiveOptions& options) {
  if (options.worker_command.empty()) return {own_program(), "supervise"};
  std::vector<std::string> command = options.worker_command;
  command.back() = "supervise";
  return command;
}

std::string names_of(const std::vector<std::unique_ptr<Sensor>>& sensors) {
  std::string names;
  for (const auto& sensor : sensors) names += (names.empty() ? "" : ",") + sensor->info().id;
  return names;
}

}  // namespace

ProgramEvaluator::ProgramEvaluator(Problem problem, Constants constants, DeviceInfo device, LiveOptions options,
                                   std::vector<std::unique_ptr<Sensor>> sensors)
    : problem_(std::move(problem)),
      constants_(std::move(constants)),
      device_(std::move(device)),
      sensors_(names_of(sensors)),
      runner_(problem_, constants_, options, supervisor_of(options), std::move(sensors)) {
  start_thread();
}

std::vector<std::string> ProgramEvaluator::notes() const {
  if (sensors_.empty()) return {};
  return {"energy by " + sensors_};
}

void ProgramEvaluator::set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters,
                                    std::size_t) {
  call([&] { serial_.set_controls(std::move(session), std::move(parameters)); });
}

double ProgramEvaluator::watch(std::vector<pollfd>& polled) {
  return serial_.waiting() > 0 ? 0 : AsyncEvaluator::watch(polled);
}

void ProgramEvaluator::advance() {
  if (serial_.waiting() == 0) return;
  const EvaluationRequest request = serial_.take_next();
  const auto run = [&](const RunOptions& options) {
    note_run(request, 0);
    return runner_.run(request.configuration, options);
  };
  dropped_ = false;
  running_ = true;
  try {
    deliver(serial_.measure(request, gpu_of(device_), run, [this] { return dropped_.load(); }));
  } catch (...) {
    running_ = false;
    if (!dropped_) throw;
  }
  running_ = false;
}

/// Called repeatedly, since the program may be between two processes.
void ProgramEvaluator::interrupt() {
  if (!running_) return;
  dropped_ = true;
  runner_.stop();
}

}  // namespace ergotune
