// ergotune watch: serves a page on the content of a store, during a session or afterwards.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/run_here.hpp"
#include "ergotune/error.hpp"
#include "watch/watch.hpp"

namespace ergotune::cli {

namespace {

struct WatchArguments {
  std::string place = kDefaultStore;
  std::int64_t session = 0, until = 0;
  int port = 0, descriptor = -1;
  bool json = false, wait = false;
};

void announce(const WatchArguments& arguments, const std::string& url) {
  const std::string line = nlohmann::ordered_json{{"url", url}}.dump() + "\n";
  if (arguments.descriptor >= 0) {
    (void)!::write(arguments.descriptor, line.data(), line.size());
    ::close(arguments.descriptor);
  } else if (arguments.json) {
    fmt::print("{}", line);
  } else {
    fmt::print(
        "{}\nOpen this link in a browser on this machine; Ctrl-C ends it. From elsewhere: ssh -L {}:127.0.0.1:{} "
        "THIS-MACHINE\n",
        url, url.substr(17, url.find('/', 17) - 17), url.substr(17, url.find('/', 17) - 17));
  }
  std::fflush(stdout);
}

void watch(const WatchArguments& arguments) {
  if (arguments.port < 0 || arguments.port > 65535)
    throw UserError("--port is a number from 0 (any that is free) to 65535");
  const auto* interrupted = interruption();
  WatchServer server(
      {.place = arguments.place, .session = arguments.session, .port = arguments.port, .wait = arguments.wait});
  announce(arguments, server.url());
  server.serve(*interrupted, arguments.until);
}

}  // namespace

void add_watch_command(Verb app) {
  auto arguments = std::make_shared<WatchArguments>();
  Verb verb = app.add_verb("watch", "Show a session in the browser, while it runs or after");
  verb.add_option("place", arguments->place, "A store, or a folder with stores").show_default();
  verb.add_option("--session", arguments->session, "Session that is shown first (default: the one worked on last)");
  verb.add_option("--port", arguments->port, "Port on 127.0.0.1; 0: any that is free").show_default();
  verb.add_flag("--wait", arguments->wait, "Wait until the store exists");
  verb.add_option("--until", arguments->until, "End when the process with this id has ended");
  verb.add_option("--descriptor", arguments->descriptor,
                  "Write the line of --json to this descriptor, and nothing else");
  verb.add_flag("--json", arguments->json, "Print {\"url\": ...} as the first line");
  verb.footer(
      "Examples:\n"
      "  ergotune watch\n"
      "  ergotune watch results.db --port 8080\n"
      "  ergotune watch . --json\n"
      "It reads what is stored and changes nothing; stop, pause and \"confirm now\" are asked of the session at work. "
      "The link\n"
      "holds a secret: who has it may see the sessions and end them.\n"
      "In Python: ergotune.watch(\"results.db\")");
  verb.callback([arguments] { watch(*arguments); });
}

}  // namespace ergotune::cli
