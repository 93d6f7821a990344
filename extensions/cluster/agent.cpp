#include "cluster/agent.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "base/process/environment.hpp"
#include "cluster/agent_protocol.hpp"
#include "cluster/node_inputs.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "kernel/compile_cache.hpp"
#include "tune/session/device_lock.hpp"
#include "tune/target/target.hpp"

namespace ergotune {

using namespace agents;

namespace {

/// Multiple of the silence: a session may return after a delay, while a node should be replaced soon.
constexpr double kSessionsPatience = 4;
constexpr double kFarewell = 5;  ///< s to write the last messages

/// An agent's messages to and from its session, on a separate thread, so that heartbeats are sent while the agent is
/// busy.
class SessionTransport {
 public:
  SessionTransport(int in, int out);
  /// Writes queued messages as far as the other end reads them.
  ~SessionTransport();
  SessionTransport(const SessionTransport&) = delete;
  SessionTransport& operator=(const SessionTransport&) = delete;

  void send(const Message& message);
  /// The next message; nullopt if there is none within `seconds`, or if the session is gone.
  std::optional<Message> receive(double seconds);
  /// Whether the session is gone: its pipe is closed, its messages are invalid, or it was silent for too long.
  bool ended() const;
  /// Starts heartbeats, six in `silence` s, which continue as long as tick() is called. The session is considered gone
  /// after four times that silence.
  void keep_beating(double silence);
  /// Reports that the agent is working.
  void tick();
  /// Allows the agent to work for this many s without a tick().
  void allow(double seconds);

 private:
  void loop();
  void beat();

  Stream stream_;
  int wake_ = -1;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Message> received_;
  double silence_ = 0, patience_until_ = 0;
  bool ended_ = false, stop_ = false;
  std::thread thread_;
};

SessionTransport::SessionTransport(int in, int out)
    : stream_(kKind, in, out), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  thread_ = std::thread([this] { loop(); });
}

SessionTransport::~SessionTransport() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
  thread_.join();
  const double until = host_seconds() + kFarewell;
  while (stream_.unsent() > 0 && host_seconds() < until) {
    pollfd polled{stream_.out(), POLLOUT, 0};
    ::poll(&polled, 1, 50);
    stream_.flush();
  }
  ::close(wake_);
}

void SessionTransport::send(const Message& message) {
  const std::lock_guard lock(mutex_);
  stream_.post(message);
  const std::uint64_t one = 1;
  if (stream_.unsent() > 0) (void)!::write(wake_, &one, sizeof one);
}

std::optional<Message> SessionTransport::receive(double seconds) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return !received_.empty() || ended_; });
  if (received_.empty()) return std::nullopt;
  Message message = std::move(received_.front());
  received_.pop_front();
  return message;
}

bool SessionTransport::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_ && received_.empty();
}

void SessionTransport::keep_beating(double silence) {
  const std::lock_guard lock(mutex_);
  silence_ = silence;
}

void SessionTransport::tick() {
  const std::lock_guard lock(mutex_);
  patience_until_ = host_seconds() + silence_;
}

void SessionTransport::allow(double seconds) {
  const std::lock_guard lock(mutex_);
  patience_until_ = host_seconds() + seconds;
}

void SessionTransport::beat() {
  const double now = host_seconds();
  if (silence_ <= 0) return;
  if (now - stream_.sent_at() >= silence_ / 6 && now < patience_until_) stream_.post(Heartbeat{});
  if (now - stream_.heard_at() > kSessionsPatience * silence_) ended_ = true;
}

void SessionTransport::loop() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    try {
      while (auto message = stream_.next()) {
        if (!std::holds_alternative<Heartbeat>(*message)) received_.push_back(std::move(*message));
      }
      stream_.flush();
      ended_ = ended_ || stream_.ended() || stream_.broken();
    } catch (const FormatError&) {
      ended_ = true;
    }
    beat();
    changed_.notify_all();
    pollfd polled[] = {{wake_, POLLIN, 0},
                       {ended_ ? -1 : stream_.in(), POLLIN, 0},
                       {stream_.unsent() > 0 ? stream_.out() : -1, POLLOUT, 0}};
    const int pause = silence_ > 0 ? static_cast<int>(std::clamp(silence_ / 12 * 1000, 1.0, 5000.0)) : 5000;
    lock.unlock();
    ::poll(polled, 3, pause);
    std::uint64_t count;
    (void)!::read(wake_, &count, sizeof count);
    lock.lock();
  }
}

constexpr double kOpening = 600;    ///< s that opening devices may take: drivers, buffers, a reference on the CPU
constexpr double kLooksFor = 0.01;  ///< s between two polls of the pipe during a measurement

std::string node_name() {
  if (const std::string slurm = environment_variable("SLURMD_NODENAME"); !slurm.empty()) return slurm;
  char name[256] = "node";
  ::gethostname(name, sizeof name - 1);
  return std::string(name).substr(0, std::string(name).find('.'));
}

/// All devices of the same kind as the best one, if that is a GPU.
std::string tied_best_configurations(const Problem& problem) {
  const DeviceInfo best = devices_named("", &problem).front();
  if (best.is_cpu) return best.id;
  std::string ids;
  for (const auto& kind : by_kind(list_devices()))
    for (const DeviceInfo& device : kind)
      if (kind.front().name == best.name && device.backend == best.backend) ids += (ids.empty() ? "" : ",") + device.id;
  return ids;
}

class Agent : private RunJournal {
 public:
  explicit Agent(const AgentOptions& options) : options_(options), transport_(options.in, options.out) {}
  int run();

 private:
  bool interrupted() const { return options_.interrupted && options_.interrupted->load(); }
  void about_to_run(const EvaluationRequest& request, std::size_t device) override {
    transport_.send(Started{request.id, device});
  }
  void open(const Open& requested);
  void fetch(InputFolder& inputs, const std::vector<InputFile>& list);
  Opened opened() const;
  void serve();
  void accompany(const std::string& what);
  bool take(const Message& message);
  void answer(EvaluationResult result);

  const AgentOptions& options_;
  SessionTransport transport_;
  std::optional<Target> target_;
};

void Agent::fetch(InputFolder& inputs, const std::vector<InputFile>& list) {
  const std::vector<std::string> missing = inputs.missing(list);
  if (missing.empty()) return;
  transport_.send(Need{missing});
  for (std::size_t left = missing.size(); left > 0;) {
    transport_.allow(kOpening);
    const auto message = transport_.receive(1);
    if (transport_.ended() || interrupted()) throw Error("the session is gone");
    if (!message) continue;
    const auto* piece = std::get_if<Piece>(&*message);
    if (!piece) throw FormatError("a message in the middle of the inputs");
    inputs.take(*piece);
    left -= piece->last;
  }
}

void Agent::open(const Open& requested) {
  transport_.keep_beating(requested.silence);
  transport_.allow(kOpening);
  ProblemFile problem = deserialise(requested.problem);
  InputFolder inputs(CompileCache::default_folder().parent_path() / "inputs");
  fetch(inputs, requested.inputs);
  inputs.settle(problem, requested.inputs);
  transport_.allow(kOpening);
  SetupOptions options;
  options.run = problem.run;
  options.run.node_commands.clear();
  options.run.nodes.clear();
  options.run.occupancy = 0;  // applied by the session
  options.energy = options.energy || requested.energy;
  options.take_over = requested.take_over;
  options.further_metrics = requested.further_metrics;
  options.interrupted = options_.interrupted;
  options.notify = [this](const std::string& text) { transport_.send(Note{text}); };
  if (options.run.device.empty()) options.run.device = tied_best_configurations(problem);
  target_.emplace(open_target(std::move(problem), options));
  if (target_->live)
    target_->device_lock = wait_for_locks(target_->live->devices(), options.notify, options_.interrupted);
  target_->evaluator->set_journal(this);
  transport_.send(opened());
}

Opened Agent::opened() const {
  Opened opened;
  Problem resolved;  // values that only the node knows
  resolved.parameters = target_->problem.parameters;
  resolved.execution_parameters = target_->problem.execution_parameters;
  opened.problem = serialise(resolved);
  if (target_->live) {
    opened.devices = target_->live->devices();
    opened.compiler = target_->live->compiler_identity();
  } else {
    opened.devices = {target_->device};
    const auto shares = target_->evaluator->gpus();
    if (!shares.empty()) opened.devices.clear();
    for (const DeviceShare& share : shares) {
      opened.devices.push_back(target_->device);
      opened.devices.back().id = share.gpu;
    }
    opened.compiler = target_->conditions;
  }
  opened.description = target_->evaluator->description();
  opened.gpu_key = target_->gpu_key;
  opened.base_clock_mhz = target_->base_clock_mhz;
  opened.notes = target_->notes;
  opened.capacity = target_->evaluator->capacity();
  opened.measured = target_->evaluator->provenance() == Provenance::measured;
  return opened;
}

/// Handles a message; returns false if the session has ended.
bool Agent::take(const Message& message) {
  if (const auto* ask = std::get_if<Ask>(&message)) {
    target_->evaluator->submit(ask->request);
  } else if (const auto* establish = std::get_if<Establish>(&message)) {
    transport_.allow(kOpening);
    if (target_->live) target_->live->establish_reference(establish->candidates);
  } else if (const auto* cancel = std::get_if<Cancel>(&message)) {
    target_->evaluator->cancel();
    transport_.send(Cancelled{cancel->number});
  } else {
    return false;
  }
  return true;
}

void Agent::answer(EvaluationResult result) {
  // The only simulated device of a node has no name of its own.
  if (result.gpu.empty() && !target_->live) result.gpu = target_->device.id;
  transport_.send(Answer{result.id, std::move(result.measurement), std::move(result.gpu), result.disturbed});
}

void Agent::serve() {
  Evaluator& evaluator = *target_->evaluator;
  while (!transport_.ended() && !interrupted()) {
    transport_.tick();
    if (evaluator.pending() > 0)
      for (auto result = evaluator.wait(kLooksFor); result; result = evaluator.wait(0)) answer(std::move(*result));
    while (auto message = transport_.receive(evaluator.pending() > 0 ? 0 : 0.2))
      if (!take(*message)) return;
  }
}

void Agent::accompany(const std::string& what) {
  const std::unique_ptr<Companion> companion = options_.accompany(what);
  transport_.send(Ready{});
  while (!transport_.ended() && !interrupted()) {
    const auto message = transport_.receive(0.2);
    if (!message) continue;
    if (std::holds_alternative<Begin>(*message)) {
      companion->begin();
    } else {
      transport_.send(Listed{companion->end()});
      return;
    }
  }
  if (interrupted()) throw Error("its node received SIGTERM");
}

int Agent::run() {
  transport_.send(Hello{options_.program, options_.node.empty() ? node_name() : options_.node});
  try {
    std::optional<Message> first;
    while (!first && !transport_.ended() && !interrupted()) first = transport_.receive(1);
    if (first && std::holds_alternative<List>(*first)) {
      transport_.send(Listed{options_.list_devices ? options_.list_devices() : std::string()});
      return 0;
    }
    if (first && std::holds_alternative<Accompany>(*first)) accompany(std::get<Accompany>(*first).what);
    if (first && std::holds_alternative<Open>(*first)) {
      open(std::get<Open>(*first));
      serve();
      if (interrupted()) {
        target_->evaluator->cancel();
        transport_.send(Leaving{"its node received SIGTERM"});
      }
      target_.reset();  // restores the clocks before the session is notified
    }
    return 0;
  } catch (const UserError& error) {
    target_.reset();
    transport_.send(Refused{true, error.what()});
    return 2;
  } catch (const std::exception& error) {
    target_.reset();
    transport_.send(Refused{false, error.what()});
    return 1;
  }
}

}  // namespace

int run_agent(const AgentOptions& options) { return Agent(options).run(); }

}  // namespace ergotune
