// Nodes that measure together. One agent a node, behind one pipe, owns its devices, compile workers, cache, clocks and
// guardian; the session gives it configurations and takes measurements. Nodes come and go.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster_node.hpp"
#include "cluster/dispatch.hpp"
#include "evaluate/async_evaluator.hpp"
#include "evaluate/live/live_device.hpp"

namespace ergotune {

struct ClusterOptions {
  /// What each node opens; problem and inputs are filled in.
  agents::Open open;
  /// Commands that start agents, and the program that {} stands for.
  std::vector<std::string> commands;
  std::string program;
  /// Of this program. Agents of another version are refused: they would measure otherwise.
  std::string version;
  /// A file with further commands, read again while the session runs; empty: none.
  std::string commands_file;
  /// Instead of commands, for tests: how each node is started.
  std::vector<StartNode> starts;
  /// s until a node that was lost is started again; doubled with each start that fails.
  double retry = 5;
  /// s that a session without any node waits for the file to name another one.
  double list_patience = 60;
  /// Ends the wait for the first node when set; may be null.
  const std::atomic<bool>* interrupted = nullptr;
  /// Called when a node comes or is lost, from the evaluator's thread.
  std::function<void(const std::string&)> tell;
};

/// An evaluator over nodes. Throws what a caller can mend as UserError: a node command that starts nothing, a problem
/// that no node can open.
class Cluster : public AsyncEvaluator, public LiveDevice {
 public:
  /// Starts all nodes and waits for the first that is ready. Throws Error when it is interrupted before.
  Cluster(const ProblemFile& problem, ClusterOptions options);
  ~Cluster() override;

  /// What the first node answered.
  const agents::Opened& opened() const { return opened_; }

  const DeviceInfo& device() const override { return opened_.devices.front(); }
  std::vector<DeviceInfo> devices() const override { return opened_.devices; }
  const std::string& compiler_identity() const override { return opened_.compiler; }
  /// On every node, those that come later among them.
  bool establish_reference(const std::vector<Configuration>& candidates) override;
  std::vector<std::string> notes() const override { return opened_.notes; }

  std::string description() const override;
  Provenance provenance() const override { return opened_.measured ? Provenance::measured : Provenance::simulated; }
  std::size_t capacity() const override;
  std::vector<DeviceShare> gpus() const override;
  /// Waits also until no node runs anything of it any more; one that does not answer is lost soon.
  void cancel() override;

  /// Unexpected answers: late, or received twice.
  std::uint64_t strays() const;
  /// s of processor time that the evaluator's thread has used.
  double own_seconds() const;

 private:
  using Node = ClusterNode;

  void end_nodes(double farewell);

  // All below is done by the thread alone.
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
  void tell(const std::string& message) const;
  std::string unique_name(const Node& self, const std::string& name) const;

  ClusterOptions options_;
  NodeInputs inputs_;
  agents::Opened opened_;

  // The thread's own.
  std::vector<std::unique_ptr<Node>> nodes_;
  Dispatch dispatch_;
  std::size_t lives_ = 0;
  std::vector<Configuration> references_;
  std::uint64_t cancels_ = 0, strays_ = 0;
  double reread_at_ = 0, alone_since_ = 0;  ///< host_seconds(); 0 while there is a node
  std::string last_loss_;
  bool user_error_ = false;

  // What callers read (update()).
  bool open_ = false;
  std::size_t room_ = 0;
  std::size_t cancelling_ = 0;  ///< nodes that have not carried out the last cancellation
};

}  // namespace ergotune
