#include "base/process/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "base/clock.hpp"

extern char** environ;

namespace ergotune {
namespace {

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw NoProcess(std::string("cannot make a pipe: ") + std::strerror(errno));
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    close_read();
    close_write();
  }
  void close_read() {
    if (read >= 0) ::close(std::exchange(read, -1));
  }
  void close_write() {
    if (write >= 0) ::close(std::exchange(write, -1));
  }
};

// fork + exec. Everything the child needs is prepared before the fork, because after it only async-signal-safe calls
// are allowed. An exec failure comes back as errno through a close-on-exec pipe.
pid_t spawn(const std::vector<std::string>& arguments, const ProcessOptions& options, int in, int out, int err,
            int kept) {
  if (arguments.empty()) throw Error("no program to run");
  std::vector<char*> argv;
  for (const auto& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> variables;
  for (char** e = environ; *e; ++e) {
    const std::string entry = *e;
    if (!options.environment.contains(entry.substr(0, entry.find('=')))) variables.push_back(entry);
  }
  for (const auto& [name, value] : options.environment) variables.push_back(name + "=" + value);
  std::vector<char*> envp;
  for (auto& v : variables) envp.push_back(v.data());
  envp.push_back(nullptr);

  Pipe failure;
  const pid_t pid = fork();
  if (pid < 0) throw NoProcess(std::string("cannot start a process: ") + std::strerror(errno));
  if (pid == 0) {
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int s : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD}) signal(s, SIG_DFL);
    if (in >= 0) dup2(in, 0);
    if (out >= 0) dup2(out, 1);
    if (err >= 0) dup2(err, 2);
    if (kept == 3)
      fcntl(3, F_SETFD, 0);
    else if (kept >= 0)
      dup2(kept, 3);
    int report = failure.write;
    if (report == 3) report = -1;  // was overwritten by the kept descriptor; an exec failure shows as exit code 127
    if (options.folder.empty() || chdir(options.folder.c_str()) == 0) execvpe(argv[0], argv.data(), envp.data());
    const int code = errno;
    if (report >= 0) (void)!::write(report, &code, sizeof code);
    _exit(127);
  }
  setpgid(pid, pid);
  failure.close_write();
  int code = 0;
  ssize_t n;
  do n = ::read(failure.read, &code, sizeof code);
  while (n < 0 && errno == EINTR);
  if (n == sizeof code) {
    waitpid(pid, nullptr, 0);
    throw Error("cannot run " + arguments[0] + ": " + std::strerror(code));
  }
  return pid;
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  Pipe in, out, err;
  const pid_t pid = spawn(arguments, options, in.read, out.write, err.write, -1);
  in.close_read();
  out.close_write();
  err.close_write();
  fcntl(in.write, F_SETFL, O_NONBLOCK);
  ProcessResult result;
  const double deadline = options.timeout > 0 ? host_seconds() + options.timeout : 0;
  std::size_t sent = 0;
  if (options.input.empty()) in.close_write();
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before);
  while (out.read >= 0 || err.read >= 0) {
    pollfd polled[3] = {{out.read, POLLIN, 0}, {err.read, POLLIN, 0}, {in.write, POLLOUT, 0}};
    int wait_ms = -1;
    if (deadline > 0) wait_ms = static_cast<int>(std::max(0.0, deadline - host_seconds()) * 1000) + 1;
    const int ready = poll(polled, 3, wait_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (deadline > 0 && host_seconds() >= deadline && !result.timed_out) {
      result.timed_out = true;
      ::kill(-pid, SIGKILL);
      break;
    }
    auto drain = [&](Pipe& pipe, std::string& text) {
      char buffer[16384];
      const ssize_t n = ::read(pipe.read, buffer, sizeof buffer);
      if (n > 0) {
        if (text.size() < options.output_limit) text.append(buffer, static_cast<std::size_t>(n));
      } else if (n == 0 || errno != EINTR) {
        pipe.close_read();
      }
    };
    if (polled[0].revents) drain(out, result.out);
    if (polled[1].revents) drain(err, result.err);
    if (polled[2].revents && in.write >= 0) {
      const ssize_t n = ::write(in.write, options.input.data() + sent, options.input.size() - sent);
      if (n > 0) sent += static_cast<std::size_t>(n);
      if ((n < 0 && errno != EAGAIN && errno != EINTR) || sent == options.input.size()) in.close_write();
    }
  }
  sigaction(SIGPIPE, &before, nullptr);
  in.close_write();
  // The program may continue after closing both streams; the deadline still applies.
  int status = 0;
  while (true) {
    const pid_t reaped = waitpid(pid, &status, deadline > 0 && !result.timed_out ? WNOHANG : 0);
    if (reaped == pid) break;
    if (reaped < 0 && errno != EINTR) break;
    if (reaped == 0) {
      if (host_seconds() >= deadline) {
        result.timed_out = true;
        ::kill(-pid, SIGKILL);
      } else {
        usleep(1000);
      }
    }
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

ChildProcess ChildProcess::start(const std::vector<std::string>& arguments, const ProcessOptions& options,
                                 int kept_descriptor, int output) {
  return ChildProcess(spawn(arguments, options, -1, output, -1, kept_descriptor));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(pid_, other.pid_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) {
    kill(SIGKILL);
    wait();
  }
}

void ChildProcess::kill(int signal) {
  if (pid_ > 0) ::kill(-pid_, signal);
}

std::optional<int> ChildProcess::wait(double seconds) {
  if (pid_ <= 0) return 0;
  int status = 0;
  if (seconds < 0) {
    (void)!TEMP_FAILURE_RETRY(waitpid(pid_, &status, 0));
  } else if (!reap(pid_, seconds, &status)) {
    return std::nullopt;
  }
  pid_ = -1;
  return status;
}

bool reap(pid_t child, double seconds, int* status) {
  const double deadline = host_seconds() + seconds;
  while (waitpid(child, status, WNOHANG) == 0) {
    if (host_seconds() >= deadline) return false;
    usleep(200);
  }
  return true;
}

std::string own_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::vector<pid_t> descendants_of(pid_t pid) {
  std::vector<pid_t> found;
  std::error_code error;
  // A child belongs to the thread that started it.
  const std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid) + "/task", error), none;
  for (auto thread = threads; !error && thread != none; thread.increment(error)) {
    std::ifstream children(thread->path() / "children");
    for (pid_t child = 0; children >> child;) {
      found.push_back(child);
      const std::vector<pid_t> below = descendants_of(child);
      found.insert(found.end(), below.begin(), below.end());
    }
  }
  return found;
}

}  // namespace ergotune
