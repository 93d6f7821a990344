#include "cluster/cluster.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "evaluate/result_box.hpp"

namespace ergotune {

namespace {
constexpr double kFarewell = 15;  ///< s that agents are given to put their clocks back
constexpr auto kLook = std::chrono::milliseconds(100);
}  // namespace

Cluster::Cluster(const Problem& problem, ClusterOptions options)
    : problem_(problem), options_(std::move(options)), inputs_(problem) {
  options_.open.problem = serialise(inputs_.problem());
  options_.open.inputs = inputs_.list();
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) throw Error("cannot make an event descriptor");
  for (const std::string& command : options_.commands) add_node(command, start_by_command(command, options_.program));
  for (std::size_t i = 0; i < options_.starts.size(); ++i) add_node(fmt::format("node {}", i), options_.starts[i]);
  if (!options_.commands_file.empty())
    for (const std::string& command : node_commands(options_.commands_file))
      add_node(command, start_by_command(command, options_.program));
  if (nodes_.empty()) throw UserError("there is no node to measure on: --worker and --nodes name none");
  thread_ = std::thread([this] { loop(); });
  std::unique_lock lock(mutex_);
  const auto interrupted = [this] { return options_.interrupted && options_.interrupted->load(); };
  while (!open_ && !broken_ && !interrupted()) changed_.wait_for(lock, kLook);
  if (open_) return;
  lock.unlock();
  end_nodes(0);
  if (interrupted()) throw Error("interrupted before a node was ready");
  std::rethrow_exception(broken_);
}

Cluster::~Cluster() { end_nodes(kFarewell); }

/// All of them at once: none waits for its turn behind one that hangs. `farewell` in s for all together.
void Cluster::end_nodes(double farewell) {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake();
  thread_.join();
  std::vector<agents::Pipe*> pipes;
  for (auto& node : nodes_) {
    if (!node->link || node->phase == Phase::greeting) continue;  // who never spoke has set nothing
    pipes.push_back(&node->link->pipe());
    pipes.back()->send(agents::Stop{});
  }
  // True while it may still say something.
  const auto talks = [](agents::Pipe* pipe) {
    try {
      pipe->flush();
      while (pipe->next()) {
      }
      return !pipe->ended();
    } catch (const Error&) {
      return false;  // trailing garbage is ignored
    }
  };
  std::vector<pollfd> polled;
  for (const double until = host_seconds() + farewell; host_seconds() < until;) {
    std::erase_if(pipes, [&](agents::Pipe* pipe) { return !talks(pipe); });
    if (pipes.empty()) break;
    polled.clear();
    for (const agents::Pipe* pipe : pipes)
      polled.push_back({pipe->in(), static_cast<short>(POLLIN | (pipe->unsent() > 0 ? POLLOUT : 0)), 0});
    ::poll(polled.data(), polled.size(), 50);
  }
  for (auto& node : nodes_)
    if (node->link) node->link->end();
  ::close(wake_);
}

void Cluster::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
}

void Cluster::tell(const std::string& words) const {
  if (options_.tell) options_.tell(words);
}

void Cluster::set_controls(std::unique_ptr<ControlSession>, std::vector<Parameter>, std::size_t) {
  throw Error("agents have controls of their own");
}

bool Cluster::establish_reference(const std::vector<Configuration>& candidates) {
  const std::lock_guard lock(mutex_);
  references_ = candidates;
  for (auto& node : nodes_)
    if (node->phase == Phase::ready) node->link->pipe().send(agents::Establish{references_});
  wake();
  return true;
}

std::string Cluster::description() const {
  const std::lock_guard lock(mutex_);
  std::size_t ready = 0, boards = 0;
  for (const auto& node : nodes_) {
    ready += node->phase == Phase::ready;
    if (node->phase == Phase::ready) boards += node->boards.size();
  }
  return fmt::format("{} of {} nodes, {} boards so far ({})", ready, nodes_.size(), boards, opened_.description);
}

std::size_t Cluster::capacity() const {
  const std::lock_guard lock(mutex_);
  std::size_t room = 0;
  for (const auto& node : nodes_)
    if (node->phase == Phase::ready) room += node->room;
  return std::max<std::size_t>(1, room);
}

std::vector<DeviceShare> Cluster::boards() const {
  const std::lock_guard lock(mutex_);
  std::vector<DeviceShare> boards;
  for (const auto& node : nodes_) {
    for (const Share& share : node->shares) {
      DeviceShare& told = boards.emplace_back(share.told);
      told.lost = told.lost || node->phase != Phase::ready;
      const double served = share.served + (told.lost ? 0 : host_seconds() - node->ready_at);
      told.idle_seconds = std::max(0.0, served - told.busy_seconds);
    }
  }
  return boards;
}

void Cluster::submit(EvaluationRequest request) {
  const std::lock_guard lock(mutex_);
  dispatch_.add(std::move(request));
  wake();
}

std::optional<EvaluationResult> Cluster::wait(double seconds) {
  std::unique_lock lock(mutex_);
  return take_result(lock, changed_, results_, broken_, seconds);
}

std::size_t Cluster::pending() const {
  const std::lock_guard lock(mutex_);
  return dispatch_.pending() + results_.size();
}

/// Waits until no node runs anything of it any more; one that does not say so is lost soon.
void Cluster::cancel() {
  std::unique_lock lock(mutex_);
  dispatch_.clear();
  results_.clear();
  ++cancels_;
  for (auto& node : nodes_)
    if (node->phase == Phase::ready) node->link->pipe().send(agents::Cancel{cancels_});
  wake();
  changed_.wait_for(lock, std::chrono::duration<double>(options_.open.silence + 10), [this] {
    return broken_ || std::all_of(nodes_.begin(), nodes_.end(), [this](const auto& node) {
             return node->phase != Phase::ready || node->cancels >= cancels_;
           });
  });
}

void Cluster::set_journal(RunJournal* journal) {
  const std::lock_guard lock(mutex_);
  journal_ = journal;
}

std::uint64_t Cluster::strays() const {
  const std::lock_guard lock(mutex_);
  return strays_;
}

double Cluster::own_seconds() const {
  clockid_t clock{};
  timespec used{};
  if (::pthread_getcpuclockid(const_cast<std::thread&>(thread_).native_handle(), &clock) != 0 ||
      ::clock_gettime(clock, &used) != 0)
    return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

std::vector<ListedNode> list_nodes(const std::vector<std::string>& commands, const std::string& program,
                                   double seconds) {
  std::vector<ListedNode> nodes;
  std::vector<std::unique_ptr<NodeTransport>> links;
  for (const std::string& command : commands) {
    nodes.push_back({command, {}, {}, fmt::format("no answer within {:g} s", seconds)});
    links.push_back(start_by_command(command, program)());
    links.back()->pipe().send(agents::List{});
  }
  const double until = host_seconds() + seconds;
  for (std::size_t i = 0; i < links.size(); ++i) {
    agents::Pipe& pipe = links[i]->pipe();
    try {
      while (nodes[i].document.empty() && host_seconds() < until) {
        while (auto message = pipe.next()) {
          if (const auto* hello = std::get_if<agents::Hello>(&*message)) nodes[i].node = hello->node;
          if (const auto* listed = std::get_if<agents::Listed>(&*message)) nodes[i].document = listed->document;
          if (const auto* refused = std::get_if<agents::Refused>(&*message)) throw Error(refused->message);
        }
        if (!nodes[i].document.empty()) break;
        if (pipe.ended()) throw Error("it ended with " + links[i]->end());
        pollfd polled{pipe.in(), static_cast<short>(POLLIN | (pipe.unsent() > 0 ? POLLOUT : 0)), 0};
        ::poll(&polled, 1, 100);
        pipe.flush();
      }
      if (!nodes[i].document.empty()) nodes[i].trouble.clear();
    } catch (const Error& error) {
      nodes[i].trouble = error.what();
    }
  }
  return nodes;
}

}  // namespace ergotune
