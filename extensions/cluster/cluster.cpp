#include "cluster/cluster.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"

namespace ergotune {

using namespace agents;

namespace {

constexpr double kFarewell = 15;  ///< s that agents have to restore their clocks
constexpr double kLook = 0.1;     ///< s between two checks for an interruption
constexpr double kReread = 2;     ///< s between two reads of the file of commands
constexpr std::size_t kDevicesOfNode = 4096;

/// Whether results may be compared: devices of one model, with the same driver and compiler.
bool same_kind(const Opened& a, const Opened& b) {
  const DeviceInfo &one = a.devices.front(), &other = b.devices.front();
  return one.backend == other.backend && one.name == other.name && one.driver_version == other.driver_version &&
         one.properties == other.properties && a.compiler == b.compiler;
}

/// True while more may come.
bool still_open(Stream& stream) {
  try {
    stream.flush();
    while (stream.next()) {
    }
    return !stream.ended();
  } catch (const Error&) {
    return false;  // trailing garbage is ignored
  }
}

}  // namespace

Cluster::Cluster(const ProblemFile& problem, ClusterOptions options) : options_(std::move(options)), inputs_(problem) {
  options_.open.problem = serialise(inputs_.problem());
  options_.open.inputs = inputs_.list();
  for (const std::string& command : options_.commands) add_node(command);
  for (std::size_t i = 0; i < options_.starts.size(); ++i)
    nodes_.push_back(std::make_unique<Node>(fmt::format("node {}", i), options_.starts[i]));
  if (!options_.commands_file.empty())
    for (const std::string& command : node_commands(options_.commands_file)) add_node(command);
  if (nodes_.empty()) throw UserError("there is no node to measure on: --node-command and --nodes name none");
  start_thread();
  const auto interrupted = [this] { return options_.interrupted && options_.interrupted->load(); };
  bool open = false;
  while (!await(kLook, [&] { return open = open_; }) && !interrupted()) {
  }
  if (open) return;
  end_nodes(0);
  if (interrupted()) throw Error("interrupted before a node was ready");
  rethrow_fault();
}

Cluster::~Cluster() { end_nodes(kFarewell); }

/// Ends all nodes at the same time, so that none waits for one that hangs. `farewell`: s for all together.
void Cluster::end_nodes(double farewell) {
  end_thread();
  std::vector<Stream*> streams;
  for (auto& node : nodes_) {
    if (!node->transport() || node->phase() == Node::Phase::greeting)
      continue;  // its agent has not changed any
                 // setting yet
    streams.push_back(&node->stream());
    streams.back()->post(Stop{});
  }
  std::vector<pollfd> polled;
  for (const double until = host_seconds() + farewell; host_seconds() < until;) {
    std::erase_if(streams, [](Stream* stream) { return !still_open(*stream); });
    if (streams.empty()) break;
    polled.clear();
    for (const Stream* stream : streams) polled.push_back({stream->in(), stream->events(), 0});
    ::poll(polled.data(), polled.size(), 50);
  }
  for (auto& node : nodes_)
    if (node->transport()) node->transport()->end();
}

void Cluster::notify(const std::string& message) const {
  if (options_.notify) options_.notify(message);
}

bool Cluster::establish_reference(const std::vector<Configuration>& candidates) {
  call([&] {
    references_ = candidates;
    for (auto& node : nodes_)
      if (node->ready()) node->stream().post(Establish{references_});
  });
  return true;
}

std::string Cluster::description() const {
  std::size_t ready = 0, nodes = 0, devices = 0;
  call([&] {
    nodes = nodes_.size();
    for (const auto& node : nodes_) {
      if (!node->ready()) continue;
      ++ready;
      devices += node->devices().size();
    }
  });
  return fmt::format("{} of {} nodes, devices so far: {} ({})", ready, nodes, devices, opened_.description);
}

std::size_t Cluster::capacity() const {
  const std::lock_guard lock(mutex_);
  return std::max<std::size_t>(1, room_);
}

std::vector<DeviceShare> Cluster::gpus() const {
  std::vector<DeviceShare> all;
  call([&] {
    for (const auto& node : nodes_)
      for (DeviceShare& share : node->shares()) all.push_back(std::move(share));
  });
  return all;
}

void Cluster::cancel() {
  AsyncEvaluator::cancel();
  await(options_.open.silence + 10, [this] { return cancelling_ == 0; });
}

void Cluster::add_node(const std::string& command) {
  nodes_.push_back(std::make_unique<Node>(command, start_by_command(command, options_.program)));
}

void Cluster::drop() {
  dispatch_.clear();
  ++cancels_;
  for (auto& node : nodes_)
    if (node->ready()) node->stream().post(Cancel{cancels_});
  count_nodes();
}

void Cluster::advance() {
  for (auto& node : nodes_) pump(*node);
  reread_commands();
  hand_out();
  count_nodes();
  require_nodes();
}

double Cluster::watch(std::vector<pollfd>& polled) {
  double until = host_seconds() + options_.open.silence / 6;
  for (const auto& node : nodes_) {
    if (node->transport()) polled.push_back({node->stream().in(), node->stream().events(), 0});
    if (node->phase() == Node::Phase::away) until = std::min(until, node->start_at());
  }
  if (!options_.commands_file.empty()) until = std::min(until, reread_at_);
  if (alone_since_ > 0) until = std::min(until, alone_since_ + options_.list_patience);
  return until;
}

/// Starts a node, or handles its messages and sends it inputs.
void Cluster::pump(Node& node) {
  if (node.phase() == Node::Phase::given_up) return;
  if (node.phase() == Node::Phase::away) {
    if (node.retired() || host_seconds() < node.start_at()) return;
    try {
      node.start(options_.open);
    } catch (const Error& error) {
      lose(node, error.what(), true);
    }
    return;
  }
  try {
    while (node.transport()) {
      auto message = node.stream().next();
      if (!message) break;
      take(node, std::move(*message));
    }
    if (!node.transport()) return;
    node.feed(inputs_);
    if (const std::string why = node.keep_alive(options_.open.silence); !why.empty()) return lose(node, why, true);
    if (node.is_late(options_.open.silence))
      notify(fmt::format(
          "{}: no answer for {:g} s; its agent is waited for until {:g} s have passed, as in the queue of a cluster",
          node.name(), options_.open.silence, Node::kStartSilences * options_.open.silence));
  } catch (const FormatError& error) {
    lose(node, fmt::format("its messages are damaged: {}", error.what()), true);
  }
}

void Cluster::take(Node& node, Message message) {
  if (auto* hello = std::get_if<Hello>(&message)) {
    if (node.phase() != Node::Phase::greeting) throw FormatError("a second greeting");
    node.greet(unique_name(node, hello->node));
    if (hello->program != options_.version)
      refuse(node,
             fmt::format("its ergotune is {} and this one {}, which may measure otherwise: install the same on both",
                         hello->program, options_.version),
             true);
  } else if (auto* need = std::get_if<Need>(&message)) {
    for (const std::string& hash : need->hashes)
      (void)inputs_.size(hash);  // throws for a missing file before anything is sent
    node.want(need->hashes);
  } else if (auto* opened = std::get_if<Opened>(&message)) {
    take_opened(node, std::move(*opened));
  } else if (const auto* refused = std::get_if<Refused>(&message)) {
    refuse(node, refused->message, refused->user_error);
  } else if (const auto* started = std::get_if<Started>(&message)) {
    if (const EvaluationRequest* request = dispatch_.begun(node.life(), started->id))
      note_run(*request, node.life() * kDevicesOfNode + std::min<std::size_t>(started->device, kDevicesOfNode - 1));
  } else if (auto* answer = std::get_if<Answer>(&message)) {
    take_answer(node, std::move(*answer));
  } else if (const auto* cancelled = std::get_if<Cancelled>(&message)) {
    node.cancelled(cancelled->number);
  } else if (const auto* note = std::get_if<Note>(&message)) {
    notify(fmt::format("{}: {}", node.name(), note->text));
  } else if (const auto* leaving = std::get_if<Leaving>(&message)) {
    lose(node, leaving->why, false);
  } else if (!std::holds_alternative<Heartbeat>(message)) {
    throw FormatError("a message that no agent sends");
  }
}

/// Devices without a UUID are named after their node. A node that returns keeps its name, and no other node can get it.
std::string Cluster::unique_name(const Node& self, const std::string& name) const {
  const auto taken = [&](const std::string& text) {
    return std::ranges::any_of(
        nodes_, [&](const auto& node) { return node.get() != &self && node->has_name() && node->name() == text; });
  };
  if (!taken(name)) return name;
  for (int i = 2;; ++i)
    if (const std::string other = fmt::format("{}-{}", name, i); !taken(other)) return other;
}

void Cluster::take_opened(Node& node, Opened opened) {
  if (node.phase() != Node::Phase::opening || opened.devices.empty())
    throw FormatError("it opens what it was not asked for");
  if (open_ && !same_kind(opened, opened_))
    return refuse(node,
                  fmt::format("its devices are of another kind ({}) than those of this session ({}), and results "
                              "cannot be compared: tune on it in a separate session",
                              opened.devices.front().name, opened_.devices.front().name),
                  true);
  if (open_ && opened.problem != opened_.problem)
    return refuse(node, "clocks and limits can be set to other values there than on this session's devices", true);
  node.open(opened, ++lives_);
  node.cancelled(cancels_);
  if (!references_.empty()) node.stream().post(Establish{references_});
  dispatch_.add_node(node.life(), node.devices(), node.room());
  const std::size_t count = node.devices().size();
  notify(fmt::format("{}: {} of {}", node.name(), count == 1 ? "a device" : fmt::format("{} devices", count),
                     opened.devices.front().name));
  if (open_) return;
  opened_ = std::move(opened);
  count_nodes();
  update([this] { open_ = true; });
}

void Cluster::take_answer(Node& node, Answer answer) {
  auto request = dispatch_.answered(node.life(), answer.id);
  if (!node.ready() || !request) return;  // late, or received twice
  const std::string gpu = node.result_device_name(answer.gpu);
  node.count(gpu, answer.measurement);
  deliver({request->id, request->index, std::move(answer.measurement), gpu, answer.disturbed});
}

void Cluster::lose(Node& node, const std::string& why, bool lost, bool for_good) {
  const bool served = node.ready();
  const ProcessEnding ending = node.lose(options_.retry, for_good);
  last_loss_ = fmt::format("{}: {}", node.name(), why);
  if (lost && !ending.description.empty()) last_loss_ += ending.added_to(", " + ending.description);
  if (served) {
    for (const EvaluationRequest& request : dispatch_.remove_node(node.life(), lost))
      deliver(
          {request.id,
           request.index,
           failed_measurement(Status::runtime_error, fmt::format("{} nodes were lost while it ran, the last of them {}",
                                                                 Dispatch::kLosses, last_loss_)),
           {}});
  }
  notify(fmt::format(
      "{}{}", last_loss_,
      node.phase() == Node::Phase::given_up ? "; it is given up" : "; it is started again later, others go on"));
}

void Cluster::refuse(Node& node, const std::string& why, bool user_error) {
  user_error_ = user_error_ || user_error;
  lose(node, why, false, true);
}

void Cluster::hand_out() {
  while (auto next = dispatch_.next()) {
    const Dispatch::Node life = next->first;  // names, not bindings, which clang 14 cannot capture in a lambda
    EvaluationRequest& request = next->second;
    Node& node = **std::ranges::find_if(nodes_, [&](const auto& n) { return n->ready() && n->life() == life; });
    request.gpu = node.node_device_name(request.gpu);
    node.stream().post(Ask{std::move(request)});
  }
}

void Cluster::reread_commands() {
  if (options_.commands_file.empty() || host_seconds() < reread_at_) return;
  reread_at_ = host_seconds() + kReread;
  std::vector<std::string> commands = options_.commands;
  try {
    for (std::string& command : node_commands(options_.commands_file)) commands.push_back(std::move(command));
  } catch (const UserError&) {
    return;  // the file is just being written
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = *nodes_[i];
    if (i >= options_.commands.size() && i < options_.commands.size() + options_.starts.size()) continue;
    const bool listed = std::ranges::find(commands, node.command()) != commands.end();
    if (!listed && !node.retired()) {
      node.retire();
      if (node.transport()) lose(node, "it was taken out of the list", false);
    } else if (listed && node.retired()) {
      node.restore();
    }
  }
  for (const std::string& command : commands)
    if (std::ranges::none_of(nodes_, [&](const auto& node) { return node->command() == command; })) add_node(command);
}

/// Ends the work if no node is left.
void Cluster::require_nodes() {
  const auto given_up = [](const auto& node) { return node->phase() == Node::Phase::given_up; };
  if (!std::ranges::all_of(nodes_, given_up)) {
    alone_since_ = 0;
    return;
  }
  if (!options_.commands_file.empty()) {
    if (alone_since_ == 0) {
      alone_since_ = host_seconds();
      notify(fmt::format("no node is left; the session ends in {:g} s unless {} names another", options_.list_patience,
                         options_.commands_file));
    }
    if (host_seconds() < alone_since_ + options_.list_patience) return;
  }
  const std::string message = "no node is left to measure on; the last was " + last_loss_;
  // The user has to correct commands that never started an agent.
  if (user_error_ || !open_) throw UserError(message);
  throw Error(message);
}

void Cluster::count_nodes() {
  std::size_t room = 0, cancelling = 0;
  for (const auto& node : nodes_) {
    room += node->room();
    cancelling += node->cancels(cancels_);
  }
  if (room == room_ && cancelling == cancelling_) return;
  update([&] {
    room_ = room;
    cancelling_ = cancelling;
  });
}

}  // namespace ergotune
