// An evaluator that measures on several nodes. One agent per node, connected by a pipe, controls the node's devices,
// compile workers, cache, clocks and guardian. The session sends it requests and receives measurements. Nodes may join
// and leave at any time.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/cluster_node.hpp"
#include "cluster/dispatch.hpp"
#include "evaluate/async_evaluator.hpp"
#include "evaluate/live/live_device.hpp"

namespace ergotune {

struct ClusterOptions {
  /// What each node opens; problem and inputs are set by Cluster.
  agents::Open open;
  /// Commands that start agents, and the program that replaces {} in them.
  std::vector<std::string> commands;
  std::string program;
  /// Version of this program. Agents of another version are rejected, since their measurements might differ.
  std::string version;
  /// A file with further commands, which is read repeatedly during the session; empty: none.
  std::string commands_file;
  /// For tests: functions that start nodes, used instead of commands.
  std::vector<StartNode> starts;
  /// s until a lost node is started again; doubled after each failed start.
  double retry = 5;
  /// s for which a session without any node waits for the file to name a new one.
  double list_patience = 60;
  /// When set, ends the wait for the first node; may be null.
  const std::atomic<bool>* interrupted = nullptr;
  /// Called with a message when a node joins or is lost, from the evaluator's thread.
  std::function<void(const std::string&)> notify;
};

/// An evaluator over nodes. Throws UserError for mistakes that the user can correct: a node command that starts no
/// agent, a problem that no node can open.
class Cluster : public AsyncEvaluator, public LiveDevice {
 public:
  /// Starts all nodes and waits until the first is ready. Throws Error if interrupted before that.
  Cluster(const ProblemFile& problem, ClusterOptions options);
  ~Cluster() override;

  /// The answer of the first node that was ready.
  const agents::Opened& opened() const { return opened_; }

  const DeviceInfo& device() const override { return opened_.devices.front(); }
  std::vector<DeviceInfo> devices() const override { return opened_.devices; }
  const std::string& compiler_identity() const override { return opened_.compiler; }
  /// Establishes the reference on all nodes, including those that join later.
  bool establish_reference(const std::vector<Configuration>& candidates) override;
  std::vector<std::string> notes() const override { return opened_.notes; }

  std::string description() const override;
  Provenance provenance() const override { return opened_.measured ? Provenance::measured : Provenance::simulated; }
  std::size_t capacity() const override;
  std::vector<DeviceShare> gpus() const override;
  /// Also waits until no node runs a cancelled request; a node that does not answer is soon considered lost.
  void cancel() override;

 private:
  using Node = ClusterNode;

  void end_nodes(double farewell);

  // The functions below are called in the thread only.
  void accept(EvaluationRequest request) override { dispatch_.add(std::move(request)); }
  void advance() override;
  double watch(std::vector<pollfd>& polled) override;
  void drop() override;
  void pump(Node& node);
  void take(Node& node, agents::Message message);
  void take_opened(Node& node, agents::Opened opened);
  void take_answer(Node& node, agents::Answer answer);
  void lose(Node& node, const std::string& why, bool lost, bool for_good = false);
  void refuse(Node& node, const std::string& why, bool user_error);
  void hand_out();
  void reread_commands();
  void add_node(const std::string& command);
  void require_nodes();
  void count_nodes();
  void notify(const std::string& message) const;
  std::string unique_name(const Node& self, const std::string& name) const;

  ClusterOptions options_;
  NodeInputs inputs_;
  agents::Opened opened_;

  // Used by the thread only.
  std::vector<std::unique_ptr<Node>> nodes_;
  Dispatch dispatch_;
  std::size_t lives_ = 0;
  std::vector<Configuration> references_;
  std::uint64_t cancels_ = 0;
  double reread_at_ = 0, alone_since_ = 0;  ///< host_seconds(); 0 while there is a node
  std::string last_loss_;
  bool user_error_ = false;

  // Read by callers; changed through update().
  bool open_ = false;
  std::size_t room_ = 0;
  std::size_t cancelling_ = 0;  ///< nodes that have not carried out the last cancellation
};

}  // namespace ergotune
