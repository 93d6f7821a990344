// The main program: ergotune VERB ...
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/extensions.hpp"
#include "base/json_text.hpp"
#include "base/process/process.hpp"
#include "cli/command.hpp"
#include "cli/output/table.hpp"
#include "device/device.hpp"
#include "device/driver_trial.hpp"
#include "ergotune/error.hpp"
#include "power/guardian/guardian.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune::cli {

// Each is defined in verbs/NAME_command.cpp.
void add_doctor_command(Verb app);
void add_init_command(Verb app);
void add_tune_command(Verb app);
void add_show_command(Verb app);
void add_report_command(Verb app);
void add_space_command(Verb app);
void add_measure_command(Verb app);
void add_trace_command(Verb app);
void add_model_command(Verb app);
void add_schema_command(Verb app);
void add_compare_command(Verb app);
void add_predict_command(Verb app);
void add_analyse_command(Verb app);
void add_wisdom_command(Verb app);
void add_import_command(Verb app);
void add_export_command(Verb app);
void add_devices_command(Verb app);
void add_clocks_command(Verb app);
void add_calibrate_command(Verb app);
void add_energy_command(Verb app);
void add_worker_command(Verb app);
/// Adds the verbs of the extensions; defined in a file that CMake generates.
void add_extension_verbs(Verb app);

// Output of compilers and programs may not be UTF-8 (a comment in Latin-1) and must not lose the answer.
void print_warnings(const std::filesystem::path& file, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print(stderr, "warning: {}: {}\n", file.string(), warning);
}

void print_json(const nlohmann::ordered_json& document) { fmt::print("{}\n", json_text(document, 2)); }

Option add_json_option(Verb verb, bool& json) {
  return verb.add_flag("--json", json, "Print one JSON document on standard output");
}

}  // namespace ergotune::cli

namespace {

/// "ergotune --version"
void add_version_command(ergotune::cli::Verb app) {
  using namespace ergotune;
  auto json = std::make_shared<bool>(false);
  auto without = std::make_shared<std::optional<std::string>>();
  cli::Verb verb = app.add_verb("version", "Print the version and the backends that were found");
  cli::add_json_option(verb, *json);
  verb.add_option(std::string(device::kTrialOption), *without, "Only start the drivers, other than these");
  verb.hide();
  verb.callback([json, without] {
    if (*without) return device::try_drivers(**without);
    device::leave_out_crashing_drivers(own_program());
    std::vector<std::string> notes;
    std::map<std::string, int> backends;
    for (const DeviceInfo& device : list_devices(&notes)) ++backends[device.backend];
    if (*json) return cli::print_json({{"version", ERGOTUNE_VERSION}, {"backends", backends}, {"unavailable", notes}});
    fmt::print("ergotune " ERGOTUNE_VERSION "\n");
    for (const auto& [name, devices] : backends)
      fmt::print("{}: {} device{}\n", name, devices, devices == 1 ? "" : "s");
    for (const std::string& note : notes) fmt::print("unavailable: {}\n", note);
  });
}

void add_verbs(ergotune::cli::Verb app) {
  using namespace ergotune;
  // in the order in which users need them
  cli::add_doctor_command(app);
  cli::add_init_command(app);
  cli::add_tune_command(app);
  cli::add_show_command(app);
  cli::add_report_command(app);
  app.group_verbs("First steps");
  cli::add_space_command(app);
  cli::add_measure_command(app);
  cli::add_trace_command(app);
  cli::add_model_command(app);
  cli::add_schema_command(app);
  app.group_verbs("Problems and measurements");
  cli::add_compare_command(app);
  cli::add_predict_command(app);
  cli::add_analyse_command(app);
  cli::add_wisdom_command(app);
  cli::add_import_command(app);
  cli::add_export_command(app);
  app.group_verbs("Results");
  cli::add_devices_command(app);
  cli::add_clocks_command(app);
  cli::add_calibrate_command(app);
  cli::add_energy_command(app);
  app.group_verbs("Devices");
  cli::add_worker_command(app);
  add_version_command(app);
  cli::add_extension_verbs(app);
  app.group_verbs("Programs, clusters and more");
}

/// Reports stores that were lost and clocks that a session could not restore, after all other output. In that case the
/// exit code is not 0.
int with_losses(int code) {
  const auto lost = ergotune::take_lost_stores();
  for (const auto& store : lost)
    fmt::print(
        stderr,
        "ergotune: {}: the store was removed or replaced while it was written; this run's results are not in it\n",
        store.string());
  const auto reports = ergotune::take_failed_restores();
  for (const auto& report : reports) fmt::print(stderr, "ergotune: {}\n", ergotune::description_of(report));
  return (reports.empty() && lost.empty()) || code != 0 ? code : 1;
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n > 0)
      bytes.remove_prefix(static_cast<std::size_t>(n));
    else if (n == 0 || errno != EINTR)
      return false;
  }
  return true;
}

/// Makes control characters visible, because names and messages from files may hold escape sequences that change the
/// terminal's title or clear it. Line ends, tabs and the sequences that ergotune itself prints stay.
std::string without_control_characters(std::string_view bytes) {
  constexpr std::array<std::string_view, 6> kOurs{"\r\x1b[K", "\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m"};
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto ours =
        std::ranges::find_if(kOurs, [&](std::string_view sequence) { return bytes.substr(i).starts_with(sequence); });
    const auto c = static_cast<unsigned char>(bytes[i]);
    const auto next = static_cast<unsigned char>(i + 1 < bytes.size() ? bytes[i + 1] : 0);
    if (ours != kOurs.end()) {
      text += *ours;
      i += ours->size() - 1;
    } else if (c == 0xc2 && next >= 0x80 && next < 0xa0) {  // U+0080 to U+009F
      text += fmt::format("\\x{:02x}", next);
      ++i;
    } else if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      text += fmt::format("\\x{:02x}", c);
    } else {
      text += bytes[i];
    }
  }
  return text;
}

/// Ignores write errors on standard error: a full disk behind 2> must not end a run or lose results. (fmt::print throws
/// if a stream accepts nothing.)
void let_standard_error_fail() {
  const auto write = [](void*, const char* bytes, std::size_t size) -> ssize_t {
    (void)write_all(STDERR_FILENO, without_control_characters({bytes, size}));
    return static_cast<ssize_t>(size);
  };
  std::FILE* stream = ::fopencookie(nullptr, "w", {nullptr, write, nullptr, nullptr});
  if (!stream) return;
  std::setvbuf(stream, nullptr, _IONBF, 0);
  stderr = stream;
}

/// Only for a terminal: files and pipes receive all bytes unchanged.
void guard_terminal() {
  if (::isatty(STDOUT_FILENO) != 1) return;
  const auto write = [](void*, const char* bytes, std::size_t size) -> ssize_t {
    return write_all(STDOUT_FILENO, without_control_characters({bytes, size})) ? static_cast<ssize_t>(size) : 0;
  };
  std::FILE* stream = ::fopencookie(nullptr, "w", {nullptr, write, nullptr, nullptr});
  if (!stream) return;
  std::setvbuf(stream, nullptr, _IOLBF, 0);
  stdout = stream;
}

/// Opens /dev/null for standard streams that are closed; otherwise the next opened file, such as the store, would take
/// their descriptor. Writing to a closed standard output still fails.
void open_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0) (void)::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace ergotune;
  try {
    register_extensions();
    open_standard_streams();
    let_standard_error_fail();
    guard_terminal();
    // Treat a limit on file sizes (ulimit -f) like a full disk. A handler, not SIG_IGN, which child processes would
    // inherit.
    std::signal(SIGXFSZ, [](int) {});
    std::error_code gone;
    (void)std::filesystem::current_path(gone);
    if (gone) throw UserError("the working folder is not there any more; change to another (cd)");
    const int code = cli::run_command(
        "Finds the configuration of a GPU kernel that needs the least energy, the least time, or the best trade-off "
        "between them.",
        add_verbs, argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return with_losses(code);
    if (errno == EPIPE) return with_losses(1);  // "ergotune ... | head": the reader needs no more
    // a script must be able to detect an incomplete document
    fmt::print(stderr, "ergotune: standard output cannot be written: {}\n", std::strerror(errno));
    return with_losses(1);
  } catch (const UserError& error) {
    fmt::print(stderr, "{} {}\n", cli::styled("ergotune:", cli::Style::error, STDERR_FILENO), error.what());
    return with_losses(2);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{} {}\n", cli::styled("ergotune:", cli::Style::error, STDERR_FILENO), error.what());
    return with_losses(1);
  }
}
