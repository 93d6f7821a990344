#include "evaluate/live/live_evaluator.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/clock.hpp"
#include "base/process/environment.hpp"
#include "base/process/process.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "evaluate/live/machine_fault.hpp"
#include "kernel/compile_cache.hpp"

namespace ergotune {

using namespace protocol;

namespace {

constexpr int kMostFailuresInARow = 5;
constexpr double kLook = 1;   ///< s between two checks of the clock while a worker is awaited
constexpr double kStood = 1;  ///< s; a process that wakes later than this was suspended

std::size_t compilers_for(const LiveOptions& options, const DeviceInfo& device) {
  if (options.jobs > 0) return static_cast<std::size_t>(options.jobs);
  return std::max(1u, usable_processors() - (device.is_cpu ? 0 : 1));
}

Setup setup_for(const Problem& problem, const LiveOptions& options) {
  Setup setup;
  setup.problem = serialise(problem);
  setup.device_id = options.device;
  setup.measure = options.measure;
  setup.energy = options.energy;
  setup.energy_seconds = options.energy_seconds;
  setup.sensors = options.sensors;
  if (options.use_cache) {
    CompileCache::limit_from_environment();  // reports an invalid value here, before workers fail with it
    setup.cache_folder =
        (options.cache_folder.empty() ? CompileCache::default_folder() : options.cache_folder).string();
  }
  return setup;
}

LiveOptions with_devices(const Problem& problem, LiveOptions options) {
  if (options.devices.empty() && names_several_devices(options.device))
    for (const DeviceInfo& device : devices_named(options.device, &problem)) options.devices.push_back(device.id);
  return options;
}

std::vector<std::string> worker_command(const LiveOptions& options) {
  return options.worker_command.empty() ? std::vector<std::string>{own_program(), "worker"} : options.worker_command;
}

}  // namespace

LiveEvaluator::Memory::~Memory() {
  if (descriptor >= 0) ::close(descriptor);
}

LiveEvaluator::LiveEvaluator(const Problem& problem, LiveOptions options)
    : LiveEvaluator(problem, with_devices(problem, options), start_children(worker_command(options))) {}

LiveEvaluator::LiveEvaluator(const Problem& problem, const LiveOptions& options, const StartWorker& start) {
  Setup setup = setup_for(data_files_.lay_out(problem), options);
  // The outputs of the first correct configuration, for workers that replace the first one.
  reference_file_.descriptor = ::memfd_create("ergotune-reference", MFD_CLOEXEC);
  if (reference_file_.descriptor >= 0 && setup.measure.reference_file.empty())
    setup.measure.reference_file = fmt::format("/proc/{}/fd/{}", ::getpid(), reference_file_.descriptor);
  setup.may_compile = options.jobs == 0 && options.devices.size() < 2 && usable_processors() == 1;
  open_device_workers(options, start, setup);
  open_compile_workers(problem, options, start, std::move(setup));
  start_thread();
}

LiveEvaluator::~LiveEvaluator() { end_thread(); }

void LiveEvaluator::open_device_workers(const LiveOptions& options, const StartWorker& start, Setup setup) {
  setup.role = Role::runner;
  const std::vector<std::string> ids = options.devices.empty() ? std::vector{options.device} : options.devices;
  workers_.reserve(ids.size());
  for (const std::string& id : ids) {
    setup.device_id = id;
    workers_.emplace_back(workers_.size(), start, setup, options.time_limit);
    workers_.back().handle().start();
  }
  for (DeviceWorker& worker : workers_) {
    for (std::string& note : worker.open(options.interrupted))
      if (std::ranges::find(notes_, note) == notes_.end()) notes_.push_back(std::move(note));
    devices_.push_back(worker.device());
  }
  const bool cpu = device().is_cpu;
  one_at_a_time_ = workers_.size() > 1 && (options.quiet_node || cpu);
  // A CPU device shares its cores with the compilers, and a node sensor measures their power.
  compiling_disturbs_ = cpu || (options.quiet_node && !options.sensors.empty());
}

void LiveEvaluator::open_compile_workers(const Problem& problem, const LiveOptions& options, const StartWorker& start,
                                         Setup setup) {
  DeviceWorker& first = workers_.front();
  if (setup.may_compile && !first.compiler().empty()) {
    farm_.emplace(first.handle(), options.compile_time_limit, problem, options.compile_share);
    compiler_identity_ = first.compiler();
    return;
  }
  setup.role = Role::compiler;
  setup.device = device();
  setup.device_id = device().id;
  farm_.emplace(compilers_for(options, device()), start, setup, options.compile_time_limit, problem,
                options.compile_share);
  compiler_identity_ = farm_->open();
}

void LiveEvaluator::set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters,
                                 std::size_t device) {
  auto controls = std::make_unique<DeviceControls>(std::move(session), std::move(parameters));
  call([this, &controls, device] {
    const std::string id = controls->id();
    workers_.at(device).set_controls(std::move(controls));
    update([&] { control_ += (control_.empty() ? "" : ", ") + id; });
  });
}

std::string LiveEvaluator::control() const {
  const std::lock_guard lock(mutex_);
  return control_;
}

std::string LiveEvaluator::description() const {
  const std::string set_through = control();
  std::vector<std::string> ids;
  for (const DeviceInfo& one : devices_) ids.push_back(one.id);
  return fmt::format("{} ({}){}{}", fmt::join(ids, ", "), device().name,
                     set_through.empty() ? "" : ", clocks set through ", set_through);
}

std::vector<DeviceShare> LiveEvaluator::gpus() const {
  std::vector<DeviceShare> shares;
  if (workers_.size() < 2) return shares;
  call([&] {
    for (const DeviceWorker& worker : workers_) shares.push_back(worker.state());
  });
  return shares;
}

// All compile workers busy, one configuration on each device, and one or two ready to follow it. With clocks more:
// waiting configurations can be ordered by setting.
std::size_t LiveEvaluator::capacity() const {
  const std::size_t usual = device().is_cpu ? farm_->size() : farm_->size() + 3 * workers_.size();
  return control().empty() ? usual : std::max<std::size_t>(8 * workers_.size(), 2 * usual);
}

int LiveEvaluator::runner_pid() const {
  int pid = 0;
  call([&] { pid = workers_.front().handle().process(); });
  return pid;
}

void LiveEvaluator::take_reference(std::size_t device, const Configuration& configuration) {
  auto job = std::make_shared<Job>();
  job->request.id = ~std::uint64_t{0};
  job->request.configuration = configuration;
  job->reference_only = true;
  job->device = device;
  update([this] { ++references_pending_; });
  call([&] { accept(job); });
  while (!await(1e6, [this] { return references_pending_ == 0; })) {
  }
}

bool LiveEvaluator::establish_reference(const std::vector<Configuration>& candidates) {
  bool everywhere = true;
  for (std::size_t device = 0; device < workers_.size(); ++device) {
    bool there = false;
    const auto look = [&] { there = workers_[device].has_reference(); };
    call(look);
    for (const Configuration& candidate : candidates) {
      if (there) break;
      take_reference(device, candidate);
      call(look);
    }
    everywhere = everywhere && there;
  }
  return everywhere;
}

void LiveEvaluator::accept(EvaluationRequest request) {
  auto job = std::make_shared<Job>();
  job->request = std::move(request);
  accept(job);
}

void LiveEvaluator::accept(const JobPointer& job) {
  if (failed()) return;
  farm_->prepare(*job);
  farm_->fill(*job);
  if (const std::string& gpu = job->request.gpu; !gpu.empty()) {
    const auto worker = std::ranges::find_if(workers_, [&](const DeviceWorker& w) { return w.gpu() == gpu; });
    if (worker == workers_.end())
      return finish(*job, failed_measurement(Status::launch_error, "there is no device " + gpu), gpu);
    job->device = worker->number();
  }
  if (const DeviceControls* controls = workers_.front().controls(); controls && !job->reference_only)
    job->setting = controls->setting_of(job->request.configuration);
  waiting_.insert(job->request.first ? waiting_.begin() : waiting_.end(), job);
}

void LiveEvaluator::advance() {
  if (waiting_.empty()) return;
  const auto running = [](const DeviceWorker& worker) { return worker.running(); };
  // Devices first: everything else waits for them.
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    DeviceWorker& worker = workers_[(first_worker_ + i) % workers_.size()];
    if (worker.handle().empty() && !waiting_.empty()) worker.handle().start();
    if (!worker.handle().idle() || (compiling_disturbs_ && farm_->busy())) continue;
    if (one_at_a_time_ && std::ranges::any_of(workers_, running)) continue;
    start_next(worker);
    if (worker.running()) first_worker_ = worker.number() + 1;  // round robin
  }
  const auto measures = [this](const DeviceWorker& w) { return w.running() || w.next(waiting_) != nullptr; };
  if (compiling_disturbs_ && std::ranges::any_of(workers_, measures)) return;
  if (!farm_->has_room()) return;
  if (control_.empty()) return farm_->hand_out(waiting_);
  std::vector<JobPointer> in_order;
  for (const DeviceWorker& worker : workers_)
    std::ranges::copy(worker.in_order(waiting_), std::back_inserter(in_order));
  farm_->hand_out(in_order);  // a single call for all workers: it records whether a job has to wait for other sessions
}

void LiveEvaluator::start_next(DeviceWorker& worker) {
  while (JobPointer job = worker.next(waiting_)) {
    if (worker.controls()) publish();  // a change of clocks takes some time
    if (const auto refusal = worker.apply_setting(*job)) {
      refuse(worker, job->setting, *refusal);
      continue;
    }
    for (const JobPointer& other : waiting_) {
      if (other == job) break;
      ++other->overtaken_count;
    }
    remove(job);
    if (!job->reference_only) note_run(job->request, worker.number());
    worker.run(std::move(job));
    return;
  }
}

/// A device refuses a setting for itself only: jobs that another device may run wait for that one.
void LiveEvaluator::refuse(const DeviceWorker& worker, const ControlSetting& setting, const Measurement& refusal) {
  const std::vector<JobPointer> waiting = waiting_;
  for (const JobPointer& job : waiting) {
    if (job->reference_only || job->request.resources_only || job->setting != setting || !worker.may_run(*job))
      continue;
    job->refused_by.insert(worker.number());
    if (std::ranges::any_of(workers_, [&](const DeviceWorker& other) { return other.may_run(*job); })) continue;
    remove(job);
    finish(*job, refusal, worker.gpu(), worker.controls()->disturbed());
  }
}

void LiveEvaluator::for_each_worker(const std::function<void(WorkerHandle&, DeviceWorker*)>& visit) {
  for (DeviceWorker& worker : workers_) visit(worker.handle(), &worker);
  for (WorkerHandle* compiler : farm_->own_workers()) visit(*compiler, nullptr);
}

double LiveEvaluator::watch(std::vector<pollfd>& polled) {
  const double now = host_seconds();
  double until = now + 1e6;
  for_each_worker([&](WorkerHandle& worker, DeviceWorker*) {
    polled.push_back({worker.descriptor(), POLLIN, 0});
    if (worker.deadline() > 0) until = std::min(until, worker.deadline());
  });
  if (farm_->waits_for_share()) until = std::min(until, now + 0.02);
  return until < now + 1e5 ? std::clamp(until, now, now + kLook) : until;
}

void LiveEvaluator::react(const std::vector<pollfd>& polled, double overslept) {
  std::size_t place = 1;
  for_each_worker([&](WorkerHandle& worker, DeviceWorker* device) {
    // If a batch system suspends the job or a container is paused, the workers were suspended as well and are not late.
    if (overslept > kStood) worker.extend_deadline(overslept);
    // Read only the workers that have input: there may be many.
    const bool readable = polled[place++].revents != 0;
    if (!readable && !worker.late()) return;
    while (auto event = worker.next()) device ? handle(*device, std::move(*event)) : handle(worker, std::move(*event));
  });
}

/// Throws if this event ends the session.
void LiveEvaluator::check(const Event& event) {
  if (const auto* lost = std::get_if<WorkerLoss>(&event)) {
    if (const std::string full = full_disk_message(lost->ending.output_tail); !full.empty()) throw UserError(full);
    if (!lost->served && ++failures_in_a_row_ >= kMostFailuresInARow)
      throw Error(
          lost->ending.added_to(fmt::format("{} workers in a row ended before they could serve, the last with {}",
                                            failures_in_a_row_, lost->ending.description)));
    return;
  }
  const Message& message = std::get<Message>(event);
  if (const auto* failed = std::get_if<Failed>(&message)) {
    if (failed->user_error) throw UserError(failed->message);
    throw Error(failed->message);
  }
  if (std::holds_alternative<Ready>(message)) failures_in_a_row_ = 0;
}

void LiveEvaluator::handle(DeviceWorker& worker, Event event) {
  if (farm_->compiles_at(worker.handle())) return handle(worker.handle(), std::move(event));
  check(event);
  std::optional<DeviceWorker::Finished> finished;
  if (const auto* lost = std::get_if<WorkerLoss>(&event)) {
    finished = worker.take(*lost);
  } else if (auto& message = std::get<Message>(event); auto* ran = std::get_if<Ran>(&message)) {
    finished = worker.take(std::move(*ran));
  } else {
    worker.take(std::get<Ready>(message));
  }
  if (!finished) return;
  if (finished->must_rerun)
    waiting_.insert(waiting_.begin(), std::move(finished->job));
  else
    finish(*finished->job, std::move(finished->measurement), worker.gpu(), finished->disturbed);
}

void LiveEvaluator::handle(WorkerHandle& compiler, Event event) {
  check(event);
  std::optional<CompileFarm::Failure> failure;
  if (const auto* lost = std::get_if<WorkerLoss>(&event)) {
    failure = farm_->take(compiler, *lost);
  } else if (auto* compiled = std::get_if<Compiled>(&std::get<Message>(event))) {
    failure = farm_->take(compiler, std::move(*compiled), waiting_);
  }
  // A job that no longer waits has a result already: its setting was refused.
  if (failure && remove(failure->job)) finish(*failure->job, failed_measurement(failure->status, failure->message), {});
}

void LiveEvaluator::finish(const Job& job, Measurement measurement, const std::string& gpu, bool disturbed) {
  if (job.reference_only) return update([this] { --references_pending_; });
  measurement.compile_seconds = job.compile_seconds;
  measurement.tuner_seconds = job.ours;
  deliver({job.request.id, job.request.index, std::move(measurement), gpu, disturbed});
}

void LiveEvaluator::drop() {
  waiting_.clear();
  farm_->cancel();
  for (DeviceWorker& worker : workers_) worker.cancel();
  update([this] { references_pending_ = 0; });
}

}  // namespace ergotune
