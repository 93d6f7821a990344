#include "capture/verbs/watched_program.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/clock.hpp"
#include "base/process/process.hpp"
#include "device/cuda/cuda_api.hpp"
#include "ergotune/error.hpp"
#include "measure/observers/cupti_api.hpp"

extern char** environ;

namespace ergotune::cli {
namespace {

/// A socket in a folder of its own, accessible to this user only; both go with the object.
class Listener {
 public:
  Listener() {
    std::string name = (std::filesystem::temp_directory_path() / "ergotune-XXXXXX").string();
    if (name.size() > 90) name = "/tmp/ergotune-XXXXXX";  // a socket's path has room for 107 characters
    if (!::mkdtemp(name.data()))
      throw Error(fmt::format("cannot make a folder for a socket: {}", std::strerror(errno)));
    folder_ = name;
    path_ = name + "/layer";
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    if (socket_ < 0 || ::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket_, 64) != 0)
      throw Error(fmt::format("cannot listen on a socket: {}", std::strerror(errno)));
  }
  ~Listener() {
    if (socket_ >= 0) ::close(socket_);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int get() const { return socket_; }
  const std::string& path() const { return path_; }

 private:
  std::string folder_, path_;
  int socket_ = -1;
};

volatile std::sig_atomic_t end_signal = 0;
extern "C" void note_end(int signal) { end_signal = signal; }

/// While it runs, signals are for the program: what is typed (Ctrl-C) reaches it anyway, and what asks this process to
/// end is passed on. When the program has ended this process tells what it has.
class SignalGuard {
 public:
  SignalGuard() {
    end_signal = 0;
    for (std::size_t i = 0; i < 4; ++i) former_[i] = ::signal(kSignals[i], i < 2 ? SIG_IGN : note_end);
    for (std::size_t i = 2; i < 4; ++i)
      if (former_[i] == SIG_IGN) ::signal(kSignals[i], SIG_IGN);  // who started us with nohup wants it ignored
  }
  ~SignalGuard() {
    for (std::size_t i = 0; i < 4; ++i) ::signal(kSignals[i], former_[i]);
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  /// The signal that came since the last question; 0: none.
  static int requested() {
    const int signal = end_signal;
    end_signal = 0;
    return signal;
  }

 private:
  static constexpr int kSignals[4] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
  void (*former_[4])(int) = {};
};

pid_t start(const WatchedProgram& program, const std::string& socket) {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry, name = text.substr(0, text.find('='));
    if (!program.environment.contains(name) && name != capture::kSocketVariable) variables.push_back(text);
  }
  for (const auto& [name, value] : program.environment) variables.push_back(name + "=" + value);
  variables.push_back(fmt::format("{}={}", capture::kSocketVariable, socket));
  std::vector<char*> arguments, environment;
  for (const std::string& text : program.arguments) arguments.push_back(const_cast<char*>(text.c_str()));
  for (std::string& text : variables) environment.push_back(text.data());
  arguments.push_back(nullptr);
  environment.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t files;
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_init(&files);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  sigaddset(&defaults, SIGQUIT);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  if (program.output_aside) posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
  pid_t pid = -1;
  const int failure = ::posix_spawnp(&pid, arguments[0], &files, &attributes, arguments.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failure) throw UserError(fmt::format("cannot start {}: {}", program.arguments[0], std::strerror(failure)));
  return pid;
}

using Connections = std::vector<std::unique_ptr<capture::Stream>>;

/// Takes what has come; false when the other end is through.
bool serve(capture::Stream& stream, const WatchedProgram& program) {
  try {
    while (const auto message = stream.next())
      if (const capture::Message answer = program.answer(*message); !answer.empty()) stream.send(answer);
    return !stream.ended();
  } catch (const Disconnected&) {
    return false;
  } catch (const FormatError&) {
    return false;
  }
}

/// Serves what there is; false when nothing came for `milliseconds`.
bool serve_all(int listener, Connections& connections, const WatchedProgram& program, int milliseconds) {
  std::vector<pollfd> polled{{listener, POLLIN, 0}};
  for (const auto& connection : connections) polled.push_back({connection->in(), POLLIN, 0});
  if (::poll(polled.data(), polled.size(), milliseconds) <= 0) return false;
  for (std::size_t i = connections.size(); i-- > 0;) {
    if (polled[i + 1].revents == 0 || serve(*connections[i], program)) continue;
    connections.erase(connections.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (polled[0].revents) {
    const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket >= 0)
      connections.push_back(std::make_unique<capture::Stream>(capture::kKind, socket, socket));
    else
      ::usleep(20'000);  // no descriptor is left, and the connection stays in the queue
  }
  return true;
}

}  // namespace

ProgramEnd run_watched(const WatchedProgram& program) {
  const Listener listener;
  const SignalGuard aside;
  const pid_t pid = start(program, listener.path());
  Connections connections;
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (const int signal = aside.requested()) ::kill(pid, signal);
    serve_all(listener.get(), connections, program, 20);
  }
  // what it said last; children that outlive it are not waited for
  const double until = host_seconds() + 2;
  while (serve_all(listener.get(), connections, program, 0) && host_seconds() < until) {
  }
  if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), WTERMSIG(status)};
  return {WEXITSTATUS(status), 0};
}

std::vector<std::string> program_arguments(std::vector<std::string> rest, const std::string& verb) {
  const bool marked = !rest.empty() && rest.front() == "--";
  if (marked) rest.erase(rest.begin());
  if (rest.empty()) throw UserError(fmt::format("name the program to run: ergotune {} ... -- PROGRAM ARGUMENTS", verb));
  if (!marked && rest.front().starts_with('-'))
    throw UserError(fmt::format("there is no option \"{}\"; \"ergotune {} --help\" lists all", rest.front(), verb));
  return rest;
}

std::filesystem::path layer_library(const std::string& interface) {
  const std::string name = fmt::format("libergotune-capture-{}.so", interface);
  const auto command = std::filesystem::path(own_program()).parent_path();
  std::vector<std::filesystem::path> folders{command, command.parent_path() / "lib" / "ergotune",
                                             ERGOTUNE_LAYER_FOLDER};
  if (const char* first = std::getenv("ERGOTUNE_LAYER_DIR")) folders.insert(folders.begin(), first);
  std::error_code ignored;
  for (const auto& folder : folders)
    if (std::filesystem::exists(folder / name, ignored)) return std::filesystem::absolute(folder / name);
  return {};
}

std::map<std::string, std::string> layer_environment(bool replaces) {
  std::map<std::string, std::string> environment;
  const auto put_before = [&](const char* name, const std::string& ours) {
    const char* present = environment.contains(name) ? environment[name].c_str() : std::getenv(name);
    environment[name] = present && *present ? ours + ":" + present : ours;
  };
  for (const char* interface : {"opencl", "cuda", "hip"})
    if (const auto library = layer_library(interface); !library.empty()) put_before("LD_PRELOAD", library.string());
  // CUPTI reports launches and what is loaded; it lies where the program's loader may not look
  if (const auto library = layer_library("cuda"); !replaces && !library.empty()) {
    environment["CUDA_INJECTION64_PATH"] = library.string();
    if (cuda::api().usable() && cupti::api().usable())
      environment["ERGOTUNE_LAYER_CUPTI"] = cupti::api().library_name();
  }
  if (environment.empty())
    throw Error(
        "the libraries that watch a program (libergotune-capture-*.so) are not beside the command; install it whole, "
        "or name their folder in ERGOTUNE_LAYER_DIR");
  // they keep binaries, which have no source
  environment["PYOPENCL_NO_CACHE"] = "1";
  if (!replaces) environment["CUPY_CACHE_IN_MEMORY"] = "1";
  return environment;
}

void check_max_memory(std::uint64_t mebibytes) {
  if (mebibytes > UINT64_MAX >> 20)
    throw UserError(fmt::format("--max-memory: {} MiB are more than a machine can have", mebibytes));
}

std::string description_of(const ProgramEnd& end) {
  if (end.signal) return fmt::format("the program was ended by signal {} ({})", end.signal, ::strsignal(end.signal));
  return end.exit_code ? fmt::format("the program ended with {}", end.exit_code) : std::string();
}

}  // namespace ergotune::cli
