// The compile workers: they run ahead of the device workers, which share them. Code that is known needs no compiler:
// another clock, a repetition.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "evaluate/compile/job.hpp"
#include "evaluate/compile/worker_handle.hpp"
#include "evaluate/live/live_device.hpp"

namespace ergotune {

class CompileFarm {
 public:
  /// A job that cannot be compiled.
  struct Failure {
    JobPointer job;
    Status status = Status::compile_error;
    std::string message;
  };

  /// `time_limit` in s for one compilation.
  CompileFarm(std::size_t workers, const StartWorker& start, const protocol::Setup& setup, double time_limit,
              const Problem& problem, std::shared_ptr<CompileShare> share = nullptr);
  /// Of one worker, a runner that compiles as well: it is owned by the caller, who passes on its answers while
  /// compiles_at() is true of it.
  CompileFarm(WorkerHandle& runner, double time_limit, const Problem& problem,
              std::shared_ptr<CompileShare> share = nullptr);
  ~CompileFarm();

  /// Starts the first worker and waits for it; the compiler's identity. Throws as WorkerHandle::start_and_wait does.
  std::string open() { return workers_.front()->handle.start_and_wait("compiler").compiler; }
  std::size_t size() const { return workers_.size(); }
  /// Those that it owns.
  const std::vector<WorkerHandle*>& own_workers() const { return own_workers_; }
  bool compiles_at(const WorkerHandle& handle) const;

  /// To be called once for each new job.
  void prepare(Job& job) const;
  /// Gives a job the code that is known.
  void fill(Job& job) const;
  /// Compiles what `jobs` lack, in their order, as far as there are workers; starts workers for the rest.
  /// Throws Error when one cannot be started.
  void hand_out(const std::vector<JobPointer>& jobs);
  bool busy() const;
  /// hand_out() may do something: a worker has nothing to do, or could be started.
  bool has_room() const;
  /// A request waits until other sessions compile less: look again soon.
  bool starved() const { return starved_; }

  /// Those of `waiting` that wait for the same code have it then.
  std::optional<Failure> take(WorkerHandle& handle, protocol::Compiled compiled,
                              const std::vector<JobPointer>& waiting);
  /// nullopt where no configuration is to blame, or not yet: a runner may have been damaged by what ran in it before,
  /// and what it compiled when it ended is compiled once more.
  std::optional<Failure> take(WorkerHandle& handle, const Lost& lost);
  /// Ends those that are at work.
  void cancel();

 private:
  struct CompileWorker {
    std::unique_ptr<WorkerHandle> own;  ///< null: owned elsewhere
    WorkerHandle& handle;
    JobPointer job;
    std::uint32_t kernel = 0;
  };
  void prepare_for(const Problem& problem);
  CompileWorker& worker_of(const WorkerHandle& handle);
  JobPointer clear(CompileWorker& worker);
  void keep(const std::string& key, std::shared_ptr<const Binary> binary);

  std::shared_ptr<CompileShare> share_;
  bool starved_ = false;
  double time_limit_;
  std::vector<std::vector<std::size_t>> code_parameters_;  ///< by kernel: what its code depends on
  std::vector<std::unique_ptr<CompileWorker>> workers_;
  std::vector<WorkerHandle*> own_workers_;
  std::set<std::string> under_way_;  ///< keys of code that is being compiled
  std::map<std::string, std::shared_ptr<const Binary>> known_;
  std::size_t known_bytes_ = 0;
};

}  // namespace ergotune
