// The heart of the live evaluator: one ordinary thread owns slots and compile workers and moves
// configurations from the one to the other. Callers leave it tasks and wait for results; one mutex and one
// condition variable stand between them and it.
#pragma once

#include <poll.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "evaluate/compile/compile_farm.hpp"
#include "evaluate/live/data_files.hpp"
#include "evaluate/live/live.hpp"
#include "evaluate/live/slot.hpp"

namespace ergotune {

class Scheduler {
 public:
  /// Starts a runner for each of the devices that the options name and waits until they are ready, then one compile
  /// worker unless the runner compiles as well. Throws as LiveEvaluator does.
  Scheduler(const Problem& problem, const LiveOptions& options, StartLink start);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  const DeviceInfo& device() const { return devices_.front(); }
  const std::vector<DeviceInfo>& devices() const { return devices_; }
  /// Empty where there is one device.
  std::vector<DeviceShare> boards();
  const std::string& compiler_identity() const { return compiler_identity_; }
  const std::vector<std::string>& notes() const { return notes_; }
  std::size_t capacity() const;

  void submit(EvaluationRequest request);
  /// Throws what has ended the work, once the results that there were are handed out.
  std::optional<EvaluationResult> wait(double seconds);
  std::size_t pending() const;
  /// When this returns nothing runs any more and nothing more is noted.
  void cancel();
  /// When this returns the journal from before is not used any more.
  void set_journal(RunJournal* journal);
  /// Those of a device, by its position.
  void set_controls(std::unique_ptr<DeviceControls> controls, std::size_t device = 0);
  /// The control's id; empty when there is none.
  std::string control() const;
  bool establish_reference(const std::vector<Configuration>& candidates);
  int runner_pid();

 private:
  struct Descriptor {
    int number = -1;
    ~Descriptor();
  };
  using Event = std::variant<protocol::Message, Lost>;

  // What callers do.
  void post(std::function<void()> task);
  /// Has `task` done by the scheduler's thread and waits for its end.
  void call(std::function<void()> task);
  void wake();
  void ask_for_reference(std::size_t slot, const Configuration& configuration);

  void open_slots(const LiveOptions& options, const StartLink& start, protocol::Setup setup);
  /// Compile workers; with one processor the runner itself where it can.
  void open_farm(const Problem& problem, const LiveOptions& options, const StartLink& start, protocol::Setup setup);

  // All below is done by the scheduler's thread alone.
  void loop();
  /// False: it is time to end.
  bool do_tasks();
  void wait_for_workers();
  void read_workers();
  void hand_out();
  void start_next(DeviceWorker& slot);
  bool another_session_measures() const;
  void check(const Event& event);
  void handle(DeviceWorker& slot, Event event);
  void handle(WorkerHandle& compiler, Event event);
  void read(std::size_t place, WorkerHandle& seat, const std::function<void(Event)>& handle);
  void accept(const JobPointer& job);
  /// True where it was still waiting.
  bool remove(const JobPointer& job);
  void refuse(const DeviceWorker& slot, const ControlSetting& setting, const Measurement& refusal);
  void deliver(const Job& job, Measurement measurement, const std::string& board, bool disturbed = false);
  /// Gives wait() what has ended: after the next run was begun, since the device is what everything waits for.
  void publish();
  void drop_work();
  void break_down();

  // Set by the constructor.
  std::vector<DeviceInfo> devices_;
  bool one_at_a_time_ = false;  ///< slots would disturb each other
  bool compiling_disturbs_ = false;
  std::string compiler_identity_;
  std::vector<std::string> notes_;
  Descriptor reference_file_, wake_;
  DataFiles data_files_;

  // The thread's own.
  std::vector<DeviceWorker> slots_;
  std::optional<CompileFarm> farm_;
  std::vector<JobPointer> waiting_;      ///< in the order in which they came; compiled or not
  std::vector<pollfd> polled_;           ///< the wake-up call, slots, compilers; -1 where a seat is empty
  std::vector<EvaluationResult> ended_;  ///< not yet published
  RunJournal* journal_ = nullptr;
  std::size_t first_slot_ = 0;  ///< that is asked first
  int failures_in_a_row_ = 0;   ///< workers that ended before they could serve
  bool over_ = false, stop_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::uint64_t tasks_posted_ = 0, tasks_done_ = 0;
  std::deque<EvaluationResult> results_;
  std::size_t pending_ = 0;             ///< requests taken and not yet returned
  std::size_t references_pending_ = 0;  ///< reference_only requests without their end
  std::string control_;
  std::exception_ptr broken_;  ///< why nothing can be measured any more
  std::thread thread_;
};

}  // namespace ergotune
