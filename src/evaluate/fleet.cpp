#include "evaluate/fleet.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/problem/load.hpp"
#include "evaluate/result_box.hpp"

namespace ergotune {

Fleet::Fleet(const Problem& problem, FleetOptions options) : problem_(problem), options_(std::move(options)), inputs_(problem) {
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
  changed_.wait(lock, [this] { return open_ || broken_; });
  if (open_) return;
  stop_ = true;
  lock.unlock();
  wake();
  thread_.join();
  ::close(wake_);
  std::rethrow_exception(broken_);
}

Fleet::~Fleet() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake();
  thread_.join();
  // Agents put their clocks back before they end: they are given time for that.
  constexpr double kFarewell = 15;
  const double until = host_seconds() + kFarewell;
  for (auto& node : nodes_) {
    if (!node->link) continue;
    agents::Pipe& pipe = node->link->pipe();
    try {
      pipe.send(agents::Stop{});
      while (!pipe.ended() && host_seconds() < until) {
        pipe.flush();
        while (pipe.next()) {
        }
        pollfd polled{pipe.in(), static_cast<short>(POLLIN | (pipe.unsent() > 0 ? POLLOUT : 0)), 0};
        if (!pipe.ended()) ::poll(&polled, 1, 50);
      }
    } catch (const Error&) {
      // garbage at the end is nobody's any more
    }
    node->link->end();
  }
  ::close(wake_);
}

void Fleet::wake() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_, &one, sizeof one);
}

void Fleet::tell(const std::string& words) const {
  if (options_.tell) options_.tell(words);
}

void Fleet::set_controls(std::unique_ptr<ControlSession>, std::vector<Parameter>, std::size_t) {
  throw Error("agents have controls of their own");
}

bool Fleet::establish_reference(const std::vector<Configuration>& candidates) {
  const std::lock_guard lock(mutex_);
  references_ = candidates;
  for (auto& node : nodes_)
    if (node->phase == Phase::ready) node->link->pipe().send(agents::Establish{references_});
  wake();
  return true;
}

std::string Fleet::description() const {
  const std::lock_guard lock(mutex_);
  std::size_t ready = 0, boards = 0;
  for (const auto& node : nodes_) {
    ready += node->phase == Phase::ready;
    if (node->phase == Phase::ready) boards += node->boards.size();
  }
  return fmt::format("{} of {} nodes, {} boards so far ({})", ready, nodes_.size(), boards, opened_.description);
}

std::size_t Fleet::capacity() const {
  const std::lock_guard lock(mutex_);
  std::size_t room = 0;
  for (const auto& node : nodes_)
    if (node->phase == Phase::ready) room += node->room;
  return std::max<std::size_t>(1, room);
}

std::vector<BoardShare> Fleet::boards() const {
  const std::lock_guard lock(mutex_);
  std::vector<BoardShare> boards;
  for (const auto& node : nodes_) {
    for (BoardShare share : node->shares) {
      share.lost = node->phase != Phase::ready;
      if (!share.lost) share.idle_seconds = std::max(0.0, host_seconds() - node->ready_at - share.busy_seconds);
      boards.push_back(std::move(share));
    }
  }
  return boards;
}

void Fleet::submit(EvaluationRequest request) {
  const std::lock_guard lock(mutex_);
  dispatch_.add(std::move(request));
  wake();
}

std::optional<EvaluationResult> Fleet::wait(double seconds) {
  std::unique_lock lock(mutex_);
  return take_result(lock, changed_, results_, broken_, seconds);
}

std::size_t Fleet::pending() const {
  const std::lock_guard lock(mutex_);
  return dispatch_.pending() + results_.size();
}

/// Waits until no node runs anything of it any more; one that does not say so is lost soon.
void Fleet::cancel() {
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

void Fleet::set_journal(RunJournal* journal) {
  const std::lock_guard lock(mutex_);
  journal_ = journal;
}

std::uint64_t Fleet::strays() const {
  const std::lock_guard lock(mutex_);
  return strays_;
}

double Fleet::own_seconds() const {
  clockid_t clock{};
  timespec used{};
  if (::pthread_getcpuclockid(const_cast<std::thread&>(thread_).native_handle(), &clock) != 0 || ::clock_gettime(clock, &used) != 0)
    return 0;
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

std::vector<ListedNode> list_nodes(const std::vector<std::string>& commands, const std::string& program, double seconds) {
  std::vector<ListedNode> nodes;
  std::vector<std::unique_ptr<NodeLink>> links;
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
