// Compile workers: they run ahead of the slots, which share them. Code that is known needs no compiler:
// another clock, a repetition.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/problem/problem.hpp"
#include "evaluate/job.hpp"
#include "evaluate/seat.hpp"

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
  CompileFarm(std::size_t seats, const StartLink& start, const protocol::Setup& setup, double time_limit,
              const Problem& problem);

  /// Starts the first worker and waits for it; the compiler's identity. Throws as Seat::start_and_wait does.
  std::string open() { return desks_.front()->seat.start_and_wait("compiler").compiler; }
  std::size_t size() const { return desks_.size(); }
  std::vector<Seat*> seats();

  /// To be called once for each new job.
  void prepare(Job& job) const;
  /// Gives a job the code that is known.
  void fill(Job& job) const;
  /// Compiles what `jobs` lack, in their order, as far as there are workers; starts workers for the rest.
  /// Throws Error when one cannot be started.
  void hand_out(const std::vector<JobPointer>& jobs);
  bool busy() const;

  std::optional<Failure> take(Seat& seat, protocol::Compiled compiled);
  std::optional<Failure> take(Seat& seat, const Lost& lost);
  /// Ends those that are at work.
  void cancel();

 private:
  struct Desk {
    Seat seat;
    JobPointer job;
    std::uint32_t kernel = 0;
  };
  Desk& desk_of(const Seat& seat);
  bool being_compiled(const std::string& key) const;
  void keep(const std::string& key, std::shared_ptr<const Binary> binary);

  double time_limit_;
  std::vector<std::vector<std::size_t>> code_parameters_;  ///< by kernel: what its code depends on
  std::vector<std::unique_ptr<Desk>> desks_;
  std::map<std::string, std::shared_ptr<const Binary>> known_;
  std::size_t known_bytes_ = 0;
};

}  // namespace ergotune
