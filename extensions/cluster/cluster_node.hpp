// One node of a cluster: its agent, how far it has come, its devices.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/node_inputs.hpp"
#include "cluster/node_transport.hpp"
#include "evaluate/evaluator.hpp"

namespace ergotune {

class ClusterNode {
 public:
  enum class Phase { away, greeting, opening, ready, given_up };
  /// How many times as long as its silence a node may take until its agent answers: the queue of a cluster, a login.
  static constexpr double kStartSilences = 20;
  /// Starts of a node in a row that come to nothing before it is given up.
  static constexpr int kAttempts = 5;
  /// The same for one that never came: its command is wrong.
  static constexpr int kFirstAttempts = 2;

  ClusterNode(std::string command, StartNode start) : command_(std::move(command)), start_(std::move(start)) {}

  const std::string& command() const { return command_; }
  /// As its agent is known here; its command before the agent has greeted.
  const std::string& name() const { return name_.empty() ? command_ : name_; }
  Phase phase() const { return phase_; }
  bool ready() const { return phase_ == Phase::ready; }
  /// It is there, or was once: its name is taken.
  bool has_name() const { return transport_ || life_ > 0; }
  /// Null while it is away.
  NodeTransport* transport() const { return transport_.get(); }
  agents::Stream& stream() { return transport_->stream(); }
  /// Its number among all lives of nodes: another one each time it comes.
  std::size_t life() const { return life_; }
  std::size_t room() const { return ready() ? room_ : 0; }
  const std::vector<std::string>& devices() const { return devices_; }
  /// On host_seconds(): when it is to be started (again).
  double start_at() const { return start_at_; }

  /// Starts its agent and asks it to open what is tuned. Throws Error.
  void start(const agents::Open& open);
  void greet(const std::string& name);
  /// It is ready to measure, with `life` for its number.
  void open(const agents::Opened& opened, std::size_t life);
  /// Inputs that it still has to get; sent by feed(), in pieces, as fast as it reads.
  void want(const std::vector<std::string>& hashes);
  void feed(const NodeInputs& inputs);
  /// Sends a heartbeat where it is due. Why the node is lost; empty: it is not.
  std::string keep_alive(double silence);
  /// True once: its agent has not answered for `silence` s.
  bool is_late(double silence);
  /// Ends its agent, how that ended. It is started again after `retry` s, doubled with each start that fails; given up
  /// after too many, `for_good`, or where it was taken out of the list.
  ProcessEnding lose(double retry, bool for_good);
  /// Its command is in the list no more, or again.
  void retire();
  void restore();
  bool retired() const { return retired_; }

  /// All that was asked before cancellation `number` is dropped.
  void cancelled(std::uint64_t number) { cancelled_ = number; }
  bool cancels(std::uint64_t number) const { return ready() && cancelled_ < number; }

  /// Our name (EvaluationResult::GPU) of one of its devices, and its own name of it; empty for an unknown one.
  std::string our_device(const std::string& own) const;
  std::string own_device(const std::string& ours) const;
  void count(const std::string& our_device, const Measurement& measurement);
  /// What its devices have done, those included that it has no more.
  std::vector<DeviceShare> shares() const;

 private:
  struct Share {
    DeviceShare total;  ///< lost: the node that came back has it no more
    double served = 0;  ///< s that it was there, in the node's former lives
  };

  std::string command_, name_;
  StartNode start_;
  std::unique_ptr<NodeTransport> transport_;
  Phase phase_ = Phase::away;
  double started_at_ = 0, start_at_ = 0, ready_at_ = 0;  ///< host_seconds()
  bool late_ = false, served_ = false, retired_ = false;
  int attempts_ = 0;  ///< starts in a row that came to nothing
  std::size_t life_ = 0, room_ = 0;
  std::vector<std::string> devices_;            ///< as results carry them
  std::map<std::string, std::string> renamed_;  ///< its own name of a device -> ours
  std::vector<Share> shares_;
  std::deque<std::string> wanted_;  ///< inputs that it still has to get
  std::uint64_t offset_ = 0;        ///< of the first of them
  std::uint64_t cancelled_ = 0;     ///< the last that it has carried out
};

}  // namespace ergotune
