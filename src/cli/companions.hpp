// Companions of a program (base/process/companion.hpp), here and on nodes, and the server of the live page.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/process/companion.hpp"
#include "base/process/process.hpp"
#include "cli/verb.hpp"

namespace ergotune::cli {

/// `ergotune watch` as a child process that ends with the session.
class WatchChild {
 public:
  /// Starts it and waits for its link. Throws Error on failure.
  WatchChild(const std::filesystem::path& store, std::int64_t session);
  /// Ends it after it has shown the last results.
  ~WatchChild();
  const std::string& url() const { return url_; }

 private:
  std::string url_;
  std::optional<ChildProcess> child_;
};

/// {"energy": {"sensors": [ID, ...], "idle": SECONDS}}: reads sensors; its document is RegionEnergy::json().
/// {"clocks": {"control": ID or null, "take_over": BOOL, "purpose": TEXT, "program": NAME, "wisdom": [PATH, ...],
/// "set": {QUANTITY: VALUE, ...}}}: puts a setting into force. Throws UserError where that cannot be.
std::unique_ptr<Companion> make_companion(const nlohmann::json& what);

struct NodeOptions {
  std::vector<std::string> commands;
  std::string nodes;
  bool any() const { return !commands.empty() || !nodes.empty(); }
};
void add_node_options(Verb verb, NodeOptions& options, const std::string& what);

/// The same on each of the nodes: its document is an array with an object for each: "node" and its document, or
/// "error". Throws UserError where a node cannot.
std::unique_ptr<Companion> companion_on_nodes(const NodeOptions& nodes, const nlohmann::json& what);

/// Set by the extension that knows nodes.
using OpenNodeCompanions = std::unique_ptr<Companion> (*)(const std::vector<std::string>& commands,
                                                          const std::string& nodes, const std::string& what);
void set_node_companions(OpenNodeCompanions open);

}  // namespace ergotune::cli
