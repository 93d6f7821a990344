// ergotune worker: a process that compiles or runs configurations for a session, which starts it.
#include <memory>

#include "cli/command.hpp"
#include "ergotune/error.hpp"
#include "evaluate/live/worker_transport.hpp"

namespace ergotune::cli {

void add_worker_command(Verb app) {
  struct Options {
    int descriptor = -1, log = -1;
  };
  auto options = std::make_shared<Options>();
  Verb verb = app.add_verb("worker", "Serve a tuning session (started by `tune` itself)");
  verb.hide();
  verb.add_option("--descriptor", options->descriptor, "Socket to the session").required();
  verb.add_option("--log", options->log, "Where standard error goes");
  verb.callback([options] { run_worker(options->descriptor, options->log); });
}

}  // namespace ergotune::cli
