// Nodes that measure together. One agent a node, behind one pipe, owns its boards, compile workers, cache, clocks and
// guardian; the session gives it configurations and takes measurements. Nodes come and go.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cluster/dispatch.hpp"
#include "cluster/node_inputs.hpp"
#include "cluster/node_transport.hpp"
#include "evaluate/live/live.hpp"

namespace ergotune {

struct ClusterOptions {
  /// What each node opens; problem and inputs are filled in.
  agents::Open open;
  /// Commands that start agents, and the program that {} stands for.
  std::vector<std::string> commands;
  std::string program;
  /// Of this program. Agents of another version are refused: they would measure otherwise.
  std::string version;
  /// A file with further commands, looked at again while the session runs; empty: none.
  std::string commands_file;
  /// Instead of commands, for tests: how each node is started.
  std::vector<StartNode> starts;
  /// s until a node that was lost is started again; doubled with each start that fails.
  double retry = 5;
  /// s that a session without any node waits for the file to name another one.
  double list_patience = 60;
  /// Ends the wait for the first node when set; may be null.
  const std::atomic<bool>* interrupted = nullptr;
  /// Told what happens: a node comes, a node is lost. Called from the fleet's thread.
  std::function<void(const std::string&)> tell;
};

/// An evaluator over nodes. Throws what a caller can mend as UserError: a worker command that starts nothing, a problem
/// that no node can open.
class Cluster : public Evaluator, public LiveDevice {
 public:
  /// How many times as long as its silence a node may take until its agent answers: the queue of a cluster, a login.
  static constexpr double kStartSilences = 20;
  /// Starts of a node in a row that come to nothing before it is given up.
  static constexpr int kAttempts = 5;
  /// The same for one that never came: its command is wrong.
  static constexpr int kFirstAttempts = 2;

  /// Starts all nodes and waits for the first that is ready. Throws Error when it is interrupted before.
  Cluster(const Problem& problem, ClusterOptions options);
  ~Cluster() override;
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// What the first node said.
  const agents::Opened& opened() const { return opened_; }

  const DeviceInfo& device() const override { return opened_.devices.front(); }
  std::vector<DeviceInfo> devices() const override { return opened_.devices; }
  const std::string& compiler_identity() const override { return opened_.compiler; }
  /// On every node, those that come later among them.
  bool establish_reference(const std::vector<Configuration>& candidates) override;
  std::vector<std::string> notes() const override { return opened_.notes; }
  /// Agents have controls of their own. Throws Error.
  void set_controls(std::unique_ptr<ControlSession> session, std::vector<Parameter> parameters,
                    std::size_t device) override;

  std::string description() const override;
  Provenance provenance() const override { return opened_.measured ? Provenance::measured : Provenance::simulated; }
  std::size_t capacity() const override;
  std::vector<DeviceShare> boards() const override;
  void submit(EvaluationRequest request) override;
  std::optional<EvaluationResult> wait(double seconds) override;
  std::size_t pending() const override;
  void cancel() override;
  void set_journal(RunJournal* journal) override;

  /// Unexpected answers: late, or received twice.
  std::uint64_t strays() const;
  /// s of processor time that the fleet's thread has used.
  double own_seconds() const;

 private:
  enum class Phase { away, greeting, opening, ready, given_up };
  /// A board that a node has or had.
  struct Share {
    DeviceShare told;   ///< lost: the node that came back has it no more
    double served = 0;  ///< s that it was there, in the node's former lives
  };
  struct Node {
    std::string command, name;
    StartNode start;
    std::unique_ptr<NodeTransport> link;
    Phase phase = Phase::away;
    double started_at = 0, retry_at = 0;  ///< host_seconds()
    bool late = false;                    ///< it was said that its agent does not answer
    int attempts = 0;                     ///< starts in a row that came to nothing
    std::size_t life = 0;                 ///< its number in dispatch_: another one each time it comes
    std::size_t room = 0;
    std::vector<std::string> boards;             ///< as results carry them
    std::map<std::string, std::string> renamed;  ///< its own name for a board -> ours
    std::vector<Share> shares;
    double ready_at = 0;             ///< host_seconds()
    std::deque<std::string> wanted;  ///< inputs that it still has to get
    std::uint64_t offset = 0;        ///< of the first of them
    std::uint64_t cancels = 0;       ///< the last that it has carried out
    bool served = false;             ///< it was ready once
    bool retired = false;            ///< its command is in the list no more
  };

  // With mutex_ held.
  void add_node(const std::string& command, StartNode start);
  void loop();
  void pump(Node& node);
  void start(Node& node);
  void receive(Node& node);
  void take(Node& node, agents::Message message);
  void take_opened(Node& node, agents::Opened opened);
  void take_answer(Node& node, agents::Answer answer);
  void feed(Node& node);
  void lose(Node& node, const std::string& why, bool lost, bool for_good = false);
  void refuse(Node& node, const std::string& why, bool user_error);
  void hand_out();
  void reread_commands();
  void give_up_if_nobody_is_left();
  void tell(const std::string& words) const;
  std::string own_name(const Node& self, const std::string& name) const;
  double poll_until() const;
  void wake() const;
  void end_nodes(double farewell);

  Problem problem_;
  ClusterOptions options_;
  NodeInputs inputs_;
  agents::Opened opened_;
  int wake_ = -1;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Node>> nodes_;
  Dispatch dispatch_;
  std::size_t lives_ = 0;
  std::deque<EvaluationResult> results_;
  std::vector<Configuration> references_;
  RunJournal* journal_ = nullptr;
  bool open_ = false, stop_ = false;
  std::uint64_t cancels_ = 0, strays_ = 0;
  double reread_at_ = 0, alone_since_ = 0;  ///< host_seconds(); 0 while there is a node
  std::exception_ptr broken_;
  std::string last_words_;
  bool user_error_ = false;
  std::thread thread_;
};

/// The documents that nodes' agents give of their devices (`ergotune devices --json`), in the order of the commands;
/// where a node does not answer within `seconds`, why.
struct ListedNode {
  std::string command, node, document, trouble;
};
std::vector<ListedNode> list_nodes(const std::vector<std::string>& commands, const std::string& program,
                                   double seconds);

}  // namespace ergotune
