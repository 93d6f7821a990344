#include "evaluate/live/scheduler.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "base/process/processors.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "evaluate/result_box.hpp"
#include "kernel/compile_cache.hpp"

namespace ergotune {

using namespace protocol;

namespace {

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
    CompileCache::limit_from_environment();  // refused here, before the workers meet it
    setup.cache_folder =
        (options.cache_folder.empty() ? CompileCache::default_folder() : options.cache_folder).string();
  }
  return setup;
}

}  // namespace

Scheduler::Descriptor::~Descriptor() {
  if (number >= 0) ::close(number);
}

Scheduler::Scheduler(const Problem& problem, const LiveOptions& options, StartLink start) {
  Setup setup = setup_for(data_files_.lay_out(problem), options);
  // What the first correct configuration put out, for the runners after the first: memory that dies with us.
  reference_file_.number = ::memfd_create("ergotune-reference", MFD_CLOEXEC);
  if (reference_file_.number >= 0 && setup.measure.reference_file.empty())
    setup.measure.reference_file = fmt::format("/proc/{}/fd/{}", ::getpid(), reference_file_.number);
  wake_.number = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_.number < 0) throw Error("cannot make an event descriptor");

  setup.may_compile = options.jobs == 0 && options.devices.size() < 2 && usable_processors() == 1;
  open_slots(options, start, setup);
  open_farm(problem, options, start, std::move(setup));
  thread_ = std::thread([this] { loop(); });
}

void Scheduler::open_slots(const LiveOptions& options, const StartLink& start, Setup setup) {
  setup.role = Role::runner;
  const std::vector<std::string> ids = options.devices.empty() ? std::vector{options.device} : options.devices;
  slots_.reserve(ids.size());
  for (const std::string& id : ids) {
    setup.device_id = id;
    slots_.emplace_back(slots_.size(), start, setup, options.time_limit);
    slots_.back().seat().start();
  }
  for (DeviceWorker& slot : slots_) {
    for (std::string& note : slot.open())
      if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(std::move(note));
    devices_.push_back(slot.device());
  }
  const bool cpu = device().is_cpu;
  one_at_a_time_ = slots_.size() > 1 && (options.quiet_node || cpu);
  // A CPU device shares its cores with the compilers, and a node's meter sees them.
  compiling_disturbs_ = cpu || (options.quiet_node && !options.sensors.empty());
}

void Scheduler::open_farm(const Problem& problem, const LiveOptions& options, const StartLink& start, Setup setup) {
  DeviceWorker& first = slots_.front();
  if (setup.may_compile && !first.compiler().empty()) {
    farm_.emplace(first.seat(), options.compile_time_limit, problem, options.compile_share);
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

Scheduler::~Scheduler() {
  post([this] { stop_ = true; });
  thread_.join();
}

void Scheduler::wake() {
  const std::uint64_t one = 1;
  (void)!::write(wake_.number, &one, sizeof one);
}

void Scheduler::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    ++tasks_posted_;
  }
  wake();
}

void Scheduler::call(std::function<void()> task) {
  std::unique_lock lock(mutex_);
  tasks_.push_back(std::move(task));
  const std::uint64_t number = ++tasks_posted_;
  wake();
  changed_.wait(lock, [&] { return tasks_done_ >= number; });
}

void Scheduler::submit(EvaluationRequest request) {
  auto job = std::make_shared<Job>();
  job->request = std::move(request);
  {
    const std::lock_guard lock(mutex_);
    ++pending_;
  }
  post([this, job] { accept(job); });
}

std::optional<EvaluationResult> Scheduler::wait(double seconds) {
  std::unique_lock lock(mutex_);
  auto result = take_result(lock, changed_, results_, broken_, seconds);
  if (result) --pending_;
  return result;
}

std::size_t Scheduler::pending() const {
  const std::lock_guard lock(mutex_);
  return pending_;
}

void Scheduler::cancel() {
  call([this] {
    drop_work();
    const std::lock_guard lock(mutex_);
    ended_.clear();
    results_.clear();
    pending_ = 0;
  });
}

void Scheduler::set_journal(RunJournal* journal) {
  call([this, journal] { journal_ = journal; });
}

void Scheduler::set_controls(std::unique_ptr<DeviceControls> controls, std::size_t device) {
  call([this, &controls, device] {
    const std::string id = controls->id();
    slots_.at(device).set_controls(std::move(controls));
    const std::lock_guard lock(mutex_);
    control_ += (control_.empty() ? "" : ", ") + id;
  });
}

std::vector<DeviceShare> Scheduler::boards() {
  std::vector<DeviceShare> boards;
  if (slots_.size() < 2) return boards;
  call([&] {
    for (const DeviceWorker& slot : slots_) boards.push_back(slot.state());
  });
  return boards;
}

std::string Scheduler::control() const {
  const std::lock_guard lock(mutex_);
  return control_;
}

// Every compile worker busy, one configuration on each device, and one or two ready to follow it. With clocks
// more: what is seen beforehand can be put in order.
std::size_t Scheduler::capacity() const {
  const std::size_t usual = device().is_cpu ? farm_->size() : farm_->size() + 3 * slots_.size();
  return control().empty() ? usual : std::max<std::size_t>(8 * slots_.size(), 2 * usual);
}

void Scheduler::ask_for_reference(std::size_t slot, const Configuration& configuration) {
  auto job = std::make_shared<Job>();
  job->request.id = ~std::uint64_t{0};
  job->request.configuration = configuration;
  job->reference_only = true;
  job->slot = slot;
  {
    const std::lock_guard lock(mutex_);
    ++references_pending_;
  }
  post([this, job] { accept(job); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return references_pending_ == 0 || broken_; });
}

bool Scheduler::establish_reference(const std::vector<Configuration>& candidates) {
  bool everywhere = true;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    bool there = false;
    const auto look = [&] { there = slots_[slot].has_reference(); };
    call(look);
    for (const Configuration& candidate : candidates) {
      if (there) break;
      ask_for_reference(slot, candidate);
      call(look);
    }
    everywhere = everywhere && there;
  }
  return everywhere;
}

int Scheduler::runner_pid() {
  int pid = 0;
  call([&] { pid = slots_.front().seat().process(); });
  return pid;
}

}  // namespace ergotune
