// The fleet's own thread: reads what nodes say, gives them work, starts them and gives them up.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.hpp"
#include "cluster/cluster.hpp"
#include "ergotune/error.hpp"
#include "evaluate/live/slot.hpp"

namespace ergotune {

using namespace agents;

namespace {

constexpr std::size_t kUnsent = std::size_t{8} << 20;  ///< bytes of inputs under way to one node
constexpr double kReread = 2;                          ///< s between two looks at the file of commands
constexpr double kLongestRetry = 300;                  ///< s
constexpr std::size_t kSlotsOfNode = 4096;

/// Boards whose results may be compared: of one model, with one driver and one compiler.
bool same_kind(const Opened& a, const Opened& b) {
  const DeviceInfo &one = a.devices.front(), &other = b.devices.front();
  return one.backend == other.backend && one.name == other.name && one.driver_version == other.driver_version &&
         one.properties == other.properties && a.compiler == b.compiler;
}

}  // namespace

void Cluster::add_node(const std::string& command, StartNode start) {
  auto node = std::make_unique<Node>();
  node->command = node->name = command;
  node->start = std::move(start);
  nodes_.push_back(std::move(node));
}

double Cluster::poll_until() const {
  double until = host_seconds() + options_.open.silence / 6;
  for (const auto& node : nodes_)
    if (node->phase == Phase::away) until = std::min(until, node->retry_at);
  if (!options_.commands_file.empty()) until = std::min(until, reread_at_);
  if (alone_since_ > 0 && !broken_) until = std::min(until, alone_since_ + options_.list_patience);
  return until;
}

void Cluster::loop() {
  std::vector<pollfd> polled;
  std::unique_lock lock(mutex_);
  while (!stop_) {
    try {
      for (auto& node : nodes_) pump(*node);
      reread_commands();
      hand_out();
      give_up_if_nobody_is_left();
    } catch (...) {
      if (!broken_) broken_ = std::current_exception();
      changed_.notify_all();
    }
    polled.assign(1, {wake_, POLLIN, 0});
    for (const auto& node : nodes_) {
      if (!node->link) continue;
      const Pipe& pipe = node->link->pipe();
      polled.push_back({pipe.in(), static_cast<short>(POLLIN | (pipe.unsent() > 0 ? POLLOUT : 0)), 0});
    }
    const double left = poll_until() - host_seconds();
    lock.unlock();
    ::poll(polled.data(), polled.size(), static_cast<int>(std::clamp(std::ceil(left * 1000), 0.0, 1e6)));
    std::uint64_t count;
    (void)!::read(wake_, &count, sizeof count);
    lock.lock();
  }
}

void Cluster::pump(Node& node) {
  const double now = host_seconds();
  if (node.phase == Phase::given_up) return;
  if (node.phase == Phase::away) {
    if (!broken_ && !node.retired && now >= node.retry_at) start(node);
    return;
  }
  try {
    receive(node);
    if (!node.link) return;
    feed(node);
    Pipe& pipe = node.link->pipe();
    pipe.flush();
    const double silence = options_.open.silence;
    if (now - pipe.said_at() >= silence / 6) pipe.send(Beat{});
    if (pipe.ended()) {
      lose(node, "its agent ended", true);
    } else if (node.phase == Phase::greeting && now - node.started_at > kStartSilences * silence) {
      lose(node, fmt::format("its agent did not start within {:g} s", kStartSilences * silence), true);
    } else if (node.phase == Phase::greeting && now - node.started_at > silence) {
      if (!std::exchange(node.late, true))
        tell(fmt::format(
            "{}: no answer for {:g} s; its agent is waited for until {:g} s have passed, as in the queue of a cluster",
            node.name, silence, kStartSilences * silence));
    } else if (node.phase != Phase::greeting && now - pipe.heard_at() > silence) {
      lose(node, fmt::format("it said nothing for {:g} s", silence), true);
    }
  } catch (const FormatError& error) {
    lose(node, fmt::format("what it says is damaged: {}", error.what()), true);
  }
}

void Cluster::start(Node& node) {
  node.started_at = host_seconds();
  node.late = false;
  node.wanted.clear();
  try {
    node.link = node.start();
    node.phase = Phase::greeting;
    node.link->pipe().send(options_.open);
  } catch (const Error& error) {
    lose(node, error.what(), true);
  }
}

void Cluster::receive(Node& node) {
  while (node.link) {
    auto message = node.link->pipe().next();
    if (!message) return;
    take(node, std::move(*message));
  }
}

void Cluster::take(Node& node, Message message) {
  if (auto* hello = std::get_if<Hello>(&message)) {
    if (node.phase != Phase::greeting) throw FormatError("a second greeting");
    node.name = own_name(node, hello->node);
    if (hello->program != options_.version)
      return refuse(
          node,
          fmt::format("its ergotune is {} and this one {}, which may measure otherwise: install the same on both",
                      hello->program, options_.version),
          true);
    node.phase = Phase::opening;
  } else if (auto* need = std::get_if<Need>(&message)) {
    for (const std::string& hash : need->hashes)
      (void)inputs_.size(hash);  // a missing one is reported before it is sent
    node.wanted.assign(need->hashes.begin(), need->hashes.end());
    node.offset = 0;
  } else if (auto* opened = std::get_if<Opened>(&message)) {
    take_opened(node, std::move(*opened));
  } else if (const auto* refused = std::get_if<Refused>(&message)) {
    refuse(node, refused->message, refused->user_error);
  } else if (const auto* begun = std::get_if<StartedMessage>(&message)) {
    const EvaluationRequest* request = dispatch_.begun(node.life, begun->id);
    if (request && journal_)
      journal_->about_to_run(*request, node.life * kSlotsOfNode + std::min<std::size_t>(begun->slot, kSlotsOfNode - 1));
  } else if (auto* answer = std::get_if<Answer>(&message)) {
    take_answer(node, std::move(*answer));
  } else if (const auto* cancelled = std::get_if<Cancelled>(&message)) {
    node.cancels = cancelled->number;
    changed_.notify_all();
  } else if (const auto* note = std::get_if<Note>(&message)) {
    tell(fmt::format("{}: {}", node.name, note->words));
  } else if (const auto* leaving = std::get_if<LeavingMessage>(&message)) {
    lose(node, leaving->why, false);
  } else if (!std::holds_alternative<Beat>(message)) {
    throw FormatError("a message that no agent sends");
  }
}

/// Boards without a number of their own go by their node's name, so that a node keeps it: one that comes back has it
/// still, and no other node gets it meanwhile.
std::string Cluster::own_name(const Node& self, const std::string& name) const {
  const auto taken = [&](const std::string& text) {
    return std::any_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
      return node.get() != &self && (node->link || node->life > 0) && node->name == text;
    });
  };
  if (!taken(name)) return name;
  for (int i = 2;; ++i)
    if (const std::string other = fmt::format("{}-{}", name, i); !taken(other)) return other;
}

void Cluster::take_opened(Node& node, Opened opened) {
  if (node.phase != Phase::opening || opened.devices.empty()) throw FormatError("it opens what it was not asked for");
  if (open_ && !same_kind(opened, opened_))
    return refuse(
        node,
        fmt::format("its boards are of another kind ({}) than those of this session ({}), and results cannot be "
                    "compared: tune on it in a session of its own",
                    opened.devices.front().name, opened_.devices.front().name),
        true);
  if (open_ && opened.problem != opened_.problem)
    return refuse(node, "clocks and limits can be set to other values there than on this session's boards", true);
  node.phase = Phase::ready;
  node.attempts = 0;
  node.ready_at = host_seconds();
  node.life = ++lives_;
  node.room = std::min<std::size_t>(std::max<std::uint64_t>(1, opened.capacity), 100000);
  node.cancels = cancels_;
  node.boards.clear();
  node.renamed.clear();
  for (Share& share : node.shares) share.told.lost = true;
  for (const DeviceInfo& device : opened.devices) {
    const std::string id = fmt::format("{}/{}", node.name, device.id),
                      own = device.uuid.empty() ? device.id : device.uuid;
    node.renamed[own] = device.uuid.empty() ? id : device.uuid;
    node.boards.push_back(node.renamed[own]);
    const auto former = std::find_if(node.shares.begin(), node.shares.end(),
                                     [&](const Share& share) { return share.told.board == node.boards.back(); });
    if (former == node.shares.end()) {
      node.shares.push_back({{node.boards.back(), id, device.name, 0, 0, 0, false}, 0});
    } else {
      former->told.lost = false;
    }
  }
  if (!references_.empty()) node.link->pipe().send(Establish{references_});
  dispatch_.add_node(node.life, node.boards, node.room);
  tell(fmt::format("{}: {} of {}", node.name,
                   node.boards.size() == 1 ? "a board" : fmt::format("{} boards", node.boards.size()),
                   opened.devices.front().name));
  if (!open_) opened_ = std::move(opened);
  open_ = true;
  changed_.notify_all();
}

void Cluster::take_answer(Node& node, Answer answer) {
  auto request = dispatch_.answered(node.life, answer.id);
  if (node.phase != Phase::ready || !request) {
    ++strays_;
    return;
  }
  const auto board = node.renamed.find(answer.board);
  for (Share& share : node.shares) {
    if (board == node.renamed.end() || share.told.board != board->second) continue;
    ++share.told.results;
    share.told.busy_seconds += answer.measurement.verify_seconds + answer.measurement.measure_seconds;
  }
  results_.push_back({request->id, request->index, std::move(answer.measurement),
                      board == node.renamed.end() ? std::string() : board->second, answer.disturbed});
  changed_.notify_all();
}

/// Inputs, in pieces, as fast as the node reads.
void Cluster::feed(Node& node) {
  Pipe& pipe = node.link->pipe();
  while (!node.wanted.empty() && pipe.unsent() < kUnsent) {
    const std::string hash = node.wanted.front();
    Piece piece{hash, inputs_.read(hash, node.offset, kPiece), false};
    node.offset += piece.bytes.size();
    piece.last = node.offset >= inputs_.size(hash);
    if (piece.last) {
      node.wanted.pop_front();
      node.offset = 0;
    }
    pipe.send(piece);
  }
}

void Cluster::lose(Node& node, const std::string& why, bool lost, bool for_good) {
  const bool served = node.phase == Phase::ready;
  node.phase = Phase::away;
  std::string words = why;
  if (const auto link = std::exchange(node.link, nullptr)) {
    if (const std::string ending = link->end(); lost && !ending.empty()) words += ", " + ending;
  }
  last_words_ = fmt::format("{}: {}", node.name, words);
  if (served) {
    for (Share& share : node.shares)
      if (!share.told.lost) share.served += host_seconds() - node.ready_at;
    for (const EvaluationRequest& request : dispatch_.remove_node(node.life, lost)) {
      Measurement failed = failed_measurement(
          Status::runtime_error,
          fmt::format("{} nodes were lost while it ran, the last of them {}", Dispatch::kLosses, last_words_));
      results_.push_back({request.id, request.index, std::move(failed), {}});
    }
  }
  node.attempts = served ? 1 : node.attempts + 1;
  node.served = node.served || served;
  if (for_good || node.attempts >= (node.served ? kAttempts : kFirstAttempts) || node.retired) {
    node.phase = Phase::given_up;
  } else {
    node.retry_at = host_seconds() + std::min(kLongestRetry, options_.retry * std::pow(2, node.attempts - 1));
  }
  tell(fmt::format("{}{}", last_words_,
                   node.phase == Phase::given_up ? "; it is given up" : "; it is started again later, others go on"));
  changed_.notify_all();
}

void Cluster::refuse(Node& node, const std::string& why, bool user_error) {
  user_error_ = user_error_ || user_error;
  lose(node, why, false, true);
}

void Cluster::hand_out() {
  while (auto next = dispatch_.next()) {
    const Dispatch::Node life = next->first;  // names, not bindings: clang 14 takes none of these into a lambda
    EvaluationRequest& request = next->second;
    const auto node = std::find_if(nodes_.begin(), nodes_.end(),
                                   [&](const auto& n) { return n->phase == Phase::ready && n->life == life; });
    for (const auto& [own, ours] : (*node)->renamed)
      if (ours == request.board) request.board = own;
    (*node)->link->pipe().send(Ask{std::move(request)});
  }
}

void Cluster::reread_commands() {
  if (options_.commands_file.empty() || host_seconds() < reread_at_) return;
  reread_at_ = host_seconds() + kReread;
  std::vector<std::string> commands = options_.commands;
  try {
    for (std::string& command : node_commands(options_.commands_file)) commands.push_back(std::move(command));
  } catch (const UserError&) {
    return;  // it is being written just now
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    auto& node = nodes_[i];
    if (i >= options_.commands.size() && i < options_.commands.size() + options_.starts.size()) continue;
    const bool listed = std::find(commands.begin(), commands.end(), node->command) != commands.end();
    if (!listed && !node->retired) {
      node->retired = true;
      if (node->link) lose(*node, "it was taken out of the list", false);
      node->phase = Phase::given_up;
    } else if (listed && node->retired) {
      node->retired = false;
      node->attempts = 0;
      node->phase = Phase::away;
    }
  }
  for (const std::string& command : commands) {
    if (std::none_of(nodes_.begin(), nodes_.end(), [&](const auto& node) { return node->command == command; }))
      add_node(command, start_by_command(command, options_.program));
  }
}

void Cluster::give_up_if_nobody_is_left() {
  if (broken_) return;
  if (std::any_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node->phase != Phase::given_up; })) {
    alone_since_ = 0;
    return;
  }
  if (!options_.commands_file.empty()) {
    if (alone_since_ == 0) {
      alone_since_ = host_seconds();
      tell(fmt::format("no node is left; the session ends in {:g} s unless {} names another", options_.list_patience,
                       options_.commands_file));
    }
    if (host_seconds() < alone_since_ + options_.list_patience) return;
  }
  const std::string words = "no node is left to measure on; the last was " + last_words_;
  // Commands that never gave an agent are for their user to mend.
  broken_ = user_error_ || !open_ ? std::make_exception_ptr(UserError(words)) : std::make_exception_ptr(Error(words));
  changed_.notify_all();
}

}  // namespace ergotune
