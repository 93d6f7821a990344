// The compile workers. All device workers share them, and they run ahead of these. Known code is not compiled again,
// for example for another clock or a repetition.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "evaluate/compile/compile_step.hpp"
#include "evaluate/compile/worker_handle.hpp"
#include "evaluate/live/live_device.hpp"

namespace ergotune {

struct Problem;

class CompileFarm {
 public:
  /// A job that could not be compiled.
  struct Failure {
    JobPointer job;
    Status status = Status::compile_error;
    std::string message;
  };

  /// `time_limit` in s for one compilation.
  CompileFarm(std::size_t workers, const StartWorker& start, const protocol::Setup& setup, double time_limit,
              const Problem& problem, std::shared_ptr<CompileShare> share = nullptr);
  /// Compiles in one runner that serves as compiler too. The caller owns it and passes on its answers while
  /// compiles_at() returns true for it.
  CompileFarm(WorkerHandle& runner, double time_limit, const Problem& problem,
              std::shared_ptr<CompileShare> share = nullptr);
  ~CompileFarm();

  /// Starts the first worker, waits for it and returns the compiler's identity. Throws as WorkerHandle::start_and_wait
  /// does.
  std::string open() { return workers_.front()->handle.start_and_wait("compiler").compiler; }
  std::size_t size() const { return workers_.size(); }
  /// The workers owned by this object.
  const std::vector<WorkerHandle*>& own_workers() const { return own_workers_; }
  /// Whether this worker is compiling a job of this object.
  bool compiles_at(const WorkerHandle& handle) const;

  /// Must be called once for each new job.
  void prepare(Job& job) const;
  /// Adds the code that is already known to a job.
  void fill(Job& job) const;
  /// Assigns missing compilations of `jobs`, in their order, to idle workers and starts further workers for the rest.
  /// Throws Error if a worker cannot be started.
  void hand_out(const std::vector<JobPointer>& jobs);
  bool busy() const;
  /// Whether a worker is idle or could be started, so that hand_out() may have an effect.
  bool has_room() const;
  /// Whether a compilation waits because other sessions use all compile workers; the caller has to retry soon.
  bool waits_for_share() const { return starved_; }

  /// Accepts compiled code and adds it to the jobs in `waiting` that need the same code. Returns the failure, if the
  /// compilation failed. Throws as MismatchCheck does.
  std::optional<Failure> take(WorkerHandle& handle, protocol::Compiled compiled,
                              const std::vector<JobPointer>& waiting);
  /// Handles a lost worker. Returns nullopt if it was not compiling, or if the job is compiled once more: a runner may
  /// have been damaged by a kernel that ran in it earlier, and a killed compiler says nothing about its job.
  std::optional<Failure> take(WorkerHandle& handle, const WorkerLoss& lost);
  /// Ends the workers that are compiling.
  void cancel();

 private:
  struct CompileWorker {
    std::unique_ptr<WorkerHandle> own;  ///< null: owned by the caller
    WorkerHandle& handle;
    JobPointer job;
    std::uint32_t kernel = 0;
  };
  void prepare_for(const Problem& problem);
  MismatchCheck check_mismatch_;
  CompileWorker& worker_of(const WorkerHandle& handle);
  JobPointer clear(CompileWorker& worker);
  void keep(const std::string& key, std::shared_ptr<const Binary> binary);

  std::shared_ptr<CompileShare> share_;
  bool starved_ = false;
  double time_limit_;
  std::vector<std::vector<std::size_t>> code_parameters_;  ///< by kernel: positions of the parameters that its code
                                                           ///< depends on
  std::vector<std::unique_ptr<CompileWorker>> workers_;
  std::vector<WorkerHandle*> own_workers_;
  std::set<std::string> under_way_;  ///< keys of code that is being compiled
  std::map<std::string, std::shared_ptr<const Binary>> known_;
  std::size_t known_bytes_ = 0;
};

}  // namespace ergotune
