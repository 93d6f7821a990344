// ergotune supervise: the process that runs programs for a session and leaves no process of them behind. Started by the
// session.
#include <memory>

#include "cli/command.hpp"
#include "program/supervisor.hpp"

namespace ergotune::cli {

void add_supervise_command(Verb app);

void add_supervise_command(Verb app) {
  auto descriptor = std::make_shared<int>(-1);
  Verb verb = app.add_verb("supervise", "Run programs for a session (started by the session itself)");
  verb.hide();
  verb.add_option("--descriptor", *descriptor, "Socket to the session").required();
  verb.callback([descriptor] {
    if (const int code = run_supervisor(*descriptor); code != 0) throw Exit{code};
  });
}

}  // namespace ergotune::cli
