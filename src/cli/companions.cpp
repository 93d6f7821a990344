#include "cli/companions.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "cli/hold_settings.hpp"
#include "ergotune/error.hpp"
#include "measure/energy/region_monitor.hpp"

namespace ergotune::cli {
namespace {

/// s to wait for the link
constexpr int kPatience = 30;

/// Reads the first line from a descriptor; returns what was read if nothing more arrives for some time.
std::string first_line(int descriptor) {
  std::string line;
  for (char c = 0; line.size() < 4096;) {
    pollfd wait{descriptor, POLLIN, 0};
    if (::poll(&wait, 1, kPatience * 1000) <= 0 || ::read(descriptor, &c, 1) != 1 || c == '\n') break;
    line += c;
  }
  return line;
}

}  // namespace

WatchChild::WatchChild(const std::filesystem::path& store, std::int64_t session) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error("cannot make a pipe");
  try {
    child_ = ChildProcess::start({own_program(), "watch", store.string(), "--session", std::to_string(session),
                                  "--until", std::to_string(::getpid()), "--descriptor", "3"},
                                 {}, ends[1]);
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
  const auto reported = nlohmann::json::parse(first_line(ends[0]), nullptr, false);
  ::close(ends[0]);
  if (!reported.is_object() || !reported.contains("url"))
    throw Error("the page's server did not begin: try \"ergotune watch\" on its own");
  url_ = reported["url"].get<std::string>();
}

WatchChild::~WatchChild() {
  if (!child_) return;
  child_->kill(SIGTERM);
  child_->wait(3);
}

namespace {

using nlohmann::json;

class EnergyCompanion final : public Companion {
 public:
  explicit EnergyCompanion(const json& what) : monitor_(what.at("sensors").get<std::vector<std::string>>()) {
    if (const double idle = what.at("idle"); idle > 0) monitor_.measure_idle(idle);
  }
  void begin() override {
    monitor_.set_program_runs(true);
    span_.from = host_seconds();
  }
  std::string end() override {
    span_.to = host_seconds();
    monitor_.set_program_runs(false);
    return monitor_.energy("program", {span_}).json();
  }

 private:
  RegionMonitor monitor_;
  TimeSpan span_;
};

class ClocksCompanion final : public Companion {
 public:
  explicit ClocksCompanion(const json& what) {
    require_controls_allowed();
    const json& id = what.at("control");
    auto control = chosen_control(id.is_null() ? std::nullopt : std::optional(id.get<std::string>()));
    ControlSetting setting;
    if (const std::vector<std::string> wisdom = what.at("wisdom"); !wisdom.empty())
      setting = setting_of_wisdom(wisdom, *control, what.at("program"));
    for (const auto& [name, value] : what.at("set").items())
      if (const auto quantity = control_quantity_from(name)) setting[*quantity] = value;
    json set = json::object();
    for (const auto& [quantity, value] : setting) set[to_string(quantity)] = value;
    document_ = {{"control", control->id()}, {"set", std::move(set)}};
    session_ = put_into_force(std::move(control), setting, what.at("take_over"), what.at("purpose"));
  }
  void begin() override {}
  std::string end() override {
    const RestoreReport report = session_->finish();
    if (!report.complete) throw Error(description_of(report));
    return document_.dump();
  }

 private:
  json document_;
  std::unique_ptr<ControlSession> session_;
};

OpenNodeCompanions& node_companions() {
  static OpenNodeCompanions open = nullptr;
  return open;
}

}  // namespace

std::unique_ptr<Companion> make_companion(const json& what) {
  if (what.contains("energy")) return std::make_unique<EnergyCompanion>(what["energy"]);
  return std::make_unique<ClocksCompanion>(what.at("clocks"));
}

void add_node_options(Verb verb, NodeOptions& options, const std::string& what) {
  verb.add_option("--node-command", options.commands,
                  what + " the node that this command starts an agent on; repeatable")
      .kind("TEXT");
  verb.add_option("--nodes", options.nodes,
                  what + " these nodes: slurm, or a file: a node command in each line, or Open MPI's hostfile")
      .kind("TEXT");
}

std::unique_ptr<Companion> companion_on_nodes(const NodeOptions& nodes, const json& what) {
  if (!node_companions())
    throw UserError("this build of ergotune knows no nodes: its extension \"cluster\" was switched off");
  return node_companions()(nodes.commands, nodes.nodes, what.dump());
}

void set_node_companions(OpenNodeCompanions open) { node_companions() = open; }

}  // namespace ergotune::cli
