// The command: ergotune VERB ...
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/command.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/power/guardian.hpp"

namespace ergotune::cli {

void print_json(const nlohmann::ordered_json& document) { fmt::print("{}\n", document.dump(2)); }

Option add_json_option(Verb verb, bool& json) {
  return verb.add_flag("--json", json, "Print one JSON document on standard output");
}

}  // namespace ergotune::cli

namespace {

void add_verbs(ergotune::cli::Verb app) {
  using namespace ergotune;
  // in the order a user meets them
  cli::add_devices_command(app);
  cli::add_space_command(app);
  cli::add_tune_command(app);
  cli::add_measure_command(app);
  cli::add_program_command(app);
  cli::add_score_command(app);
  cli::add_worker_command(app);
  cli::add_agent_command(app);
  cli::add_supervise_command(app);
  cli::add_show_command(app);
  cli::add_report_command(app);
  cli::add_watch_command(app);
  cli::add_compare_command(app);
  cli::add_import_command(app);
  cli::add_export_command(app);
  cli::add_wisdom_command(app);
  cli::add_analyse_command(app);
  cli::add_model_command(app);
  cli::add_trace_command(app);
  cli::add_temperature_command(app);
  cli::add_counters_command(app);
  cli::add_clocks_command(app);
  cli::add_calibrate_command(app);
  cli::add_capture_command(app);
  cli::add_run_command(app);
}

/// Clocks that a session could not put back are named last of all, and whatever the verb said, that is no success.
int with_failed_restores(int code) {
  const auto reports = ergotune::take_failed_restores();
  for (const auto& report : reports) fmt::print(stderr, "ergotune: {}\n", ergotune::words_of(report));
  return reports.empty() || code != 0 ? code : 1;
}

}  // namespace

namespace {

/// A full disk behind 2> ends no work and loses no result: who cannot be told is not told. (fmt::print throws where a stream takes
/// nothing.)
void let_standard_error_fail() {
  const auto write = [](void*, const char* bytes, std::size_t size) -> ssize_t {
    for (std::size_t done = 0; done < size;) {
      const ssize_t n = ::write(STDERR_FILENO, bytes + done, size - done);
      if (n > 0) done += static_cast<std::size_t>(n);
      else if (n == 0 || errno != EINTR) break;
    }
    return static_cast<ssize_t>(size);
  };
  std::FILE* stream = ::fopencookie(nullptr, "w", {nullptr, write, nullptr, nullptr});
  if (!stream) return;
  std::setvbuf(stream, nullptr, _IONBF, 0);
  stderr = stream;
}

/// Whoever closed a standard stream gets none: else the next file that is opened, the store for one, would be in its place.
/// What is written to a closed standard output fails, as it should.
void open_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0) (void)::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ergotune;
  try {
    open_standard_streams();
    let_standard_error_fail();
    std::error_code gone;
    (void)std::filesystem::current_path(gone);
    if (gone) throw UserError("the working folder is not there any more; change to another (cd)");
    const int code = cli::run_command(
        "ergotune: finds the configuration of a GPU kernel that needs least energy, least time, or the best "
        "of both.",
        add_verbs, argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return with_failed_restores(code);
    // a script must not take half a document for a whole one
    fmt::print(stderr, "ergotune: standard output cannot be written: {}\n", std::strerror(errno));
    return with_failed_restores(1);
  } catch (const UserError& error) {
    fmt::print(stderr, "ergotune: {}\n", error.what());
    return with_failed_restores(2);
  } catch (const std::exception& error) {
    fmt::print(stderr, "ergotune: {}\n", error.what());
    return with_failed_restores(1);
  }
}
