// ergotuned: the optional root helper. Its only inputs are its command line and policy file: the environment is cleared
// first, and clients cannot name files, libraries or roots.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "ergotune/error.hpp"
#include "helper/daemon.hpp"
#include "power/guardian/guardian.hpp"

namespace {

constexpr const char* kUsage =
    "ergotuned: sets GPU clocks and power limits for the users that its policy lists, and restores them\n\n"
    "  --policy FILE       who may do what (default /etc/ergotune/ergotuned.toml)\n"
    "  --socket PATH       where clients find it (default /run/ergotune/ergotuned.sock)\n"
    "  --state-dir FOLDER  journals and locks (default /var/lib/ergotune)\n"
    "  --audit-log FILE    one line per event (default: standard error)\n"
    "  --nvml FILE         the NVML library (default libnvidia-ml.so.1)\n"
    "  --sysfs-root FOLDER where /sys is found (default /)\n\n"
    "Example: ergotuned --policy /etc/ergotune/ergotuned.toml\n"
    "SIGHUP reads the policy again; SIGTERM restores everything and ends.\n";

}  // namespace

int main(int argc, char** argv) {
  using namespace ergotune;
  ::clearenv();
  ::umask(077);
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "guardian") return run_guardian({arguments.begin() + 1, arguments.end()});
  enable_guardian_verb("guardian");
  helper::DaemonOptions options;
  options.environment.state_folder = "/var/lib/ergotune";
  try {
    for (std::size_t i = 0; i < arguments.size(); i += 2) {
      const auto& name = arguments[i];
      if (name == "--help" || name == "-h") {
        fmt::print("{}", kUsage);
        return 0;
      }
      if (i + 1 == arguments.size()) throw UserError(fmt::format("{} needs a value", name));
      const auto& value = arguments[i + 1];
      if (name == "--policy")
        options.policy = value;
      else if (name == "--socket")
        options.socket = value;
      else if (name == "--state-dir")
        options.environment.state_folder = value;
      else if (name == "--audit-log")
        options.audit_log = value;
      else if (name == "--nvml")
        options.environment.nvml_library = value;
      else if (name == "--sysfs-root")
        options.environment.sysfs_root = value;
      else
        throw UserError(fmt::format(
            "unknown option {}{}", name,
            suggestion(name, {"--policy", "--socket", "--state-dir", "--audit-log", "--nvml", "--sysfs-root"})));
    }
    return helper::run_daemon(options);
  } catch (const UserError& error) {
    std::fprintf(stderr, "ergotuned: %s\n", error.what());  // fmt::print throws if standard error is closed
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ergotuned: %s\n", error.what());
    return 1;
  }
}
