#include "evaluate/compile/compile_farm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ergotune/problem.hpp"
#include "kernel/configure.hpp"

namespace ergotune {

using namespace protocol;

namespace {
constexpr std::size_t kKnownBytes = 256u << 20;
}

CompileFarm::CompileFarm(std::size_t workers, const StartWorker& start, const Setup& setup, double time_limit,
                         const Problem& problem, std::shared_ptr<CompileShare> share)
    : check_mismatch_(problem), share_(std::move(share)), time_limit_(time_limit) {
  prepare_for(problem);
  for (std::size_t i = 0; i < workers; ++i) {
    auto own = std::make_unique<WorkerHandle>(start, setup);
    WorkerHandle& handle = *own_workers_.emplace_back(own.get());
    workers_.push_back(std::make_unique<CompileWorker>(CompileWorker{std::move(own), handle, {}, 0}));
  }
}

CompileFarm::CompileFarm(WorkerHandle& runner, double time_limit, const Problem& problem,
                         std::shared_ptr<CompileShare> share)
    : check_mismatch_(problem), share_(std::move(share)), time_limit_(time_limit) {
  prepare_for(problem);
  workers_.push_back(std::make_unique<CompileWorker>(CompileWorker{nullptr, runner, {}, 0}));
}

void CompileFarm::prepare_for(const Problem& problem) {
  for (const Kernel& kernel : problem.kernels) code_parameters_.push_back(code_parameters(problem, kernel));
}

void CompileFarm::prepare(Job& job) const {
  const Configuration& configuration = job.request.configuration;
  for (std::size_t kernel = 0; kernel < code_parameters_.size(); ++kernel) {
    std::string key = fmt::format("{}:", kernel);
    for (const std::size_t i : code_parameters_[kernel])
      if (i < configuration.size()) key += configuration[i].to_literal() + ",";
    job.code_keys.push_back(std::move(key));
  }
  job.code.resize(code_parameters_.size());
}

void CompileFarm::fill(Job& job) const {
  for (std::size_t kernel = 0; kernel < job.code.size(); ++kernel) {
    if (job.code[kernel]) continue;
    if (const auto known = known_.find(job.code_keys[kernel]); known != known_.end()) job.code[kernel] = known->second;
  }
}

CompileFarm::~CompileFarm() {
  for (auto& worker : workers_) clear(*worker);
}

/// Releases the worker; returns the job it held.
JobPointer CompileFarm::clear(CompileWorker& worker) {
  JobPointer job = std::exchange(worker.job, nullptr);
  if (!job) return job;
  under_way_.erase(job->code_keys[worker.kernel]);
  if (share_) share_->give();
  return job;
}

bool CompileFarm::has_room() const {
  return std::ranges::any_of(workers_,
                             [](const auto& worker) { return worker->handle.idle() || worker->handle.empty(); });
}

void CompileFarm::hand_out(const std::vector<JobPointer>& jobs) {
  const auto count = [&](auto condition) {
    return static_cast<std::size_t>(
        std::ranges::count_if(workers_, [&](const auto& worker) { return condition(worker->handle); }));
  };
  starved_ = false;
  std::size_t starting = count([](const WorkerHandle& handle) { return handle.starting(); });
  const std::size_t could_start = starting + count([](const WorkerHandle& handle) { return handle.empty(); });
  auto free = workers_.begin();
  std::set<std::string> left;  // jobs for which no worker is free
  for (const JobPointer& job : jobs) {
    free = std::find_if(free, workers_.end(), [](const auto& worker) { return worker->handle.idle(); });
    if (free == workers_.end() && left.size() >= could_start) break;
    for (std::uint32_t kernel = 0; kernel < job->code.size(); ++kernel) {
      const std::string& key = job->code_keys[kernel];
      if (job->code[kernel] || under_way_.contains(key)) continue;
      free = std::find_if(free, workers_.end(), [](const auto& worker) { return worker->handle.idle(); });
      if (free == workers_.end()) {
        left.insert(key);
        continue;
      }
      if (share_ && !share_->take()) {
        starved_ = true;
        return;
      }
      (*free)->job = job;
      (*free)->kernel = kernel;
      under_way_.insert(key);
      (*free)->handle.ask(Compile{job->request.id, kernel, job->request.configuration}, time_limit_);
    }
  }
  for (auto& worker : workers_) {
    if (starting >= left.size()) break;
    if (!worker->handle.empty()) continue;
    worker->handle.start();
    ++starting;
  }
}

bool CompileFarm::busy() const {
  return std::ranges::any_of(workers_, [](const auto& worker) { return worker->job != nullptr; });
}

bool CompileFarm::compiles_at(const WorkerHandle& handle) const {
  return std::ranges::any_of(workers_, [&](const auto& worker) { return &worker->handle == &handle && worker->job; });
}

CompileFarm::CompileWorker& CompileFarm::worker_of(const WorkerHandle& handle) {
  return **std::ranges::find_if(workers_, [&](const auto& worker) { return &worker->handle == &handle; });
}

void CompileFarm::keep(const std::string& key, std::shared_ptr<const Binary> binary) {
  if (known_bytes_ + binary->bytes.size() > kKnownBytes) {
    known_.clear();
    known_bytes_ = 0;
  }
  known_bytes_ += binary->bytes.size();
  known_[key] = std::move(binary);
}

std::optional<CompileFarm::Failure> CompileFarm::take(WorkerHandle& handle, Compiled compiled,
                                                      const std::vector<JobPointer>& waiting) {
  CompileWorker& worker = worker_of(handle);
  const JobPointer job = clear(worker);
  const std::string key = job->code_keys[worker.kernel];
  job->compile_seconds += compiled.seconds;
  job->ours += std::max(0.0, handle.since_request() - compiled.seconds);
  check_mismatch_(worker.kernel, job->request.configuration, compiled.mismatch, compiled.message);
  if (compiled.status != Status::ok) return Failure{job, compiled.status, std::move(compiled.message)};
  const auto code = job->code[worker.kernel] = std::make_shared<const Binary>(std::move(compiled.binary));
  keep(key, code);
  for (const JobPointer& other : waiting)
    if (!other->code[worker.kernel] && other->code_keys[worker.kernel] == key) other->code[worker.kernel] = code;
  return std::nullopt;
}

std::optional<CompileFarm::Failure> CompileFarm::take(WorkerHandle& handle, const WorkerLoss& lost) {
  CompileWorker& worker = worker_of(handle);
  const JobPointer job = clear(worker);
  if (!job) return std::nullopt;
  if (lost.why == WorkerLoss::Why::late)
    return Failure{job, Status::timeout, fmt::format("the compiler was stopped after {:g} s", time_limit_)};
  if ((!worker.own || lost.killed()) && !std::exchange(job->compiled_again, true)) return std::nullopt;
  return Failure{job, Status::compile_error, lost.as_text("the compiler")};
}

void CompileFarm::cancel() {
  for (auto& worker : workers_) {
    if (clear(*worker)) worker->handle.clear();
  }
}

}  // namespace ergotune
