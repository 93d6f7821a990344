// One node of a cluster: its agent, its state, its devices.
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
  /// A node may take this multiple of the silence until its agent answers, because of a cluster's queue or a login.
  static constexpr double kStartSilences = 20;
  /// Consecutive failed starts after which a node is given up.
  static constexpr int kAttempts = 5;
  /// The same for a node that has never joined: its command is wrong.
  static constexpr int kFirstAttempts = 2;

  ClusterNode(std::string command, StartNode start) : command_(std::move(command)), start_(std::move(start)) {}

  const std::string& command() const { return command_; }
  /// The unique name of the node; its command until the agent's Hello.
  const std::string& name() const { return name_.empty() ? command_ : name_; }
  Phase phase() const { return phase_; }
  bool ready() const { return phase_ == Phase::ready; }
  /// Set once a node of this name has joined; the name stays reserved after the node is lost.
  bool has_name() const { return transport_ || life_ > 0; }
  /// null while the node is not started.
  NodeTransport* transport() const { return transport_.get(); }
  agents::Stream& stream() { return transport_->stream(); }
  /// A number that is unique for each connection of any node: it changes whenever the node returns.
  std::size_t life() const { return life_; }
  std::size_t room() const { return ready() ? room_ : 0; }
  const std::vector<std::string>& devices() const { return devices_; }
  /// Time of its next start, host_seconds().
  double start_at() const { return start_at_; }

  /// Starts the agent and sends it `open`. Throws Error on failure.
  void start(const agents::Open& open);
  void greet(const std::string& name);
  /// Marks the node as ready to measure, with the number `life`.
  void open(const agents::Opened& opened, std::size_t life);
  /// Queues inputs that the node lacks; feed() sends them in pieces, as fast as the node reads.
  void want(const std::vector<std::string>& hashes);
  void feed(const NodeInputs& inputs);
  /// Sends a heartbeat if it is due. Returns why the node is lost; empty: it is not.
  std::string keep_alive(double silence);
  /// Returns true once when the agent has not answered for `silence` s.
  bool is_late(double silence);
  /// Ends the agent and returns how it ended. The node is started again after `retry` s, doubled after each failed
  /// start, or given up: after too many failures, if `for_good`, or if it is retired.
  ProcessEnding lose(double retry, bool for_good);
  /// retire(): its command was removed from the list; restore(): it was added again.
  void retire();
  void restore();
  bool retired() const { return retired_; }

  /// Records that all requests before cancellation `number` are dropped.
  void cancelled(std::uint64_t number) { cancelled_ = number; }
  bool cancels(std::uint64_t number) const { return ready() && cancelled_ < number; }

  /// Converts between the name of a device in results (EvaluationResult::gpu) and its name on the node; empty: unknown.
  std::string result_device_name(const std::string& own) const;
  std::string node_device_name(const std::string& ours) const;
  void count(const std::string& result_device_name, const Measurement& measurement);
  /// Statistics of its devices, including those that it no longer has.
  std::vector<DeviceShare> shares() const;

 private:
  struct Share {
    DeviceShare total;  ///< lost: the node returned without this device
    double served = 0;  ///< s for which it was available in former connections of the node
  };

  std::string command_, name_;
  StartNode start_;
  std::unique_ptr<NodeTransport> transport_;
  Phase phase_ = Phase::away;
  double started_at_ = 0, start_at_ = 0, ready_at_ = 0;  ///< host_seconds()
  bool late_ = false, served_ = false, retired_ = false;
  int attempts_ = 0;  ///< consecutive failed starts
  std::size_t life_ = 0, room_ = 0;
  std::vector<std::string> devices_;            ///< names as in results
  std::map<std::string, std::string> renamed_;  ///< name on the node -> name in results
  std::vector<Share> shares_;
  std::deque<std::string> wanted_;  ///< inputs to be sent
  std::uint64_t offset_ = 0;        ///< position in the first of them
  std::uint64_t cancelled_ = 0;     ///< the last cancellation carried out
};

}  // namespace ergotune
