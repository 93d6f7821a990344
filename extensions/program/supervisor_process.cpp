// The supervising process: single-threaded and stateless between runs.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/clock.hpp"
#include "base/process/process.hpp"
#include "program/supervisor.hpp"

extern char** environ;

namespace ergotune {
namespace {

/// Reaps ended children; returns whether others are left.
bool children_are_left() {
  pid_t reaped;
  while ((reaped = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
  }
  return !(reaped < 0 && errno == ECHILD);
}

/// Ends all processes below this one, in any group or session; orphans among them are adopted by this process. Returns
/// how many still ran: a process that had ended without being waited for (popen() without pclose()) does not count.
int end_all() {
  int running = 0;
  const double limit = host_seconds() + kLongestEnd;
  for (bool first = true; children_are_left() && host_seconds() < limit; first = false) {
    const std::vector<pid_t> all = descendants_of(::getpid());
    for (const pid_t pid : all) ::kill(pid, SIGKILL);
    if (first) running = static_cast<int>(all.size());
    ::usleep(500);
  }
  return running;
}

/// Keeps the end of a stream; if a file is given, writes the complete stream to it.
class Tail {
 public:
  Tail(int descriptor, std::uint64_t most, int whole = -1)
      : descriptor_(descriptor), whole_(whole), most_(std::max<std::uint64_t>(most, 1)) {
    ::fcntl(descriptor_, F_SETFL, O_NONBLOCK);
  }
  ~Tail() {
    close();
    if (whole_ >= 0) ::close(whole_);
  }
  int descriptor() const { return descriptor_; }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  /// Reads available bytes, a limited number each time, since more may arrive as fast as they are read.
  void drain() {
    char bytes[16384];
    const ssize_t n = descriptor_ < 0 ? 0 : ::read(descriptor_, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) return close();
    total_ += static_cast<std::uint64_t>(n);
    copy(bytes, static_cast<std::size_t>(n));
    text_.append(bytes, static_cast<std::size_t>(n));
    if (text_.size() > 2 * most_) text_.erase(0, text_.size() - most_);
  }
  void drain_all() {
    while (descriptor_ >= 0) {
      const std::uint64_t before = total_;
      drain();
      if (total_ == before) break;  // all writers have closed it
    }
  }
  std::uint64_t total() const { return total_; }
  /// errno of a failed write to the file; 0 if the file is complete.
  int failure() const { return failure_; }
  std::string take() {
    if (text_.size() > most_) text_.erase(0, text_.size() - most_);
    return std::move(text_);
  }

 private:
  void copy(const char* bytes, std::size_t size) {
    while (whole_ >= 0 && failure_ == 0 && size > 0) {
      const ssize_t n = ::write(whole_, bytes, size);
      if (n < 0 && errno != EINTR) failure_ = errno;
      if (n > 0) bytes += n, size -= static_cast<std::size_t>(n);
    }
  }

  int descriptor_, whole_, failure_ = 0;
  std::uint64_t most_, total_ = 0;
  std::string text_;
};

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) == 0) read = ends[0], write = ends[1];
  }
  ~Pipe() {
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
  }
  int take_read() { return std::exchange(read, -1); }
  void close_write() {
    if (write >= 0) ::close(std::exchange(write, -1));
  }
};

/// Data that the child needs, allocated before the fork.
struct Prepared {
  std::vector<std::string> variables;
  std::vector<char*> argv, envp;

  explicit Prepared(const SupervisedRun& run) {
    for (const std::string& argument : run.arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    for (char** e = environ; *e; ++e) {
      const std::string entry = *e;
      if (!run.environment.contains(entry.substr(0, entry.find('=')))) variables.push_back(entry);
    }
    for (const auto& [name, value] : run.environment) variables.push_back(name + "=" + value);
    for (std::string& variable : variables) envp.push_back(variable.data());
    envp.push_back(nullptr);
  }
};

[[noreturn]] void become(const SupervisedRun& run, Prepared& prepared, const Pipe& out, const Pipe& err,
                         const Pipe& failure) {
  ::setsid();  // no controlling terminal, and a separate process group
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int s : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGPIPE}) ::signal(s, SIG_DFL);
  const int nothing = ::open("/dev/null", O_RDONLY);
  int code = 0;
  if (nothing < 0 || ::dup2(nothing, 0) < 0 || ::dup2(out.write, 1) < 0 || ::dup2(err.write, 2) < 0) code = errno;
  if (code == 0 && !run.folder.empty() && ::chdir(run.folder.c_str()) != 0) code = -errno;
  if (code == 0) {
    ::execvpe(prepared.argv[0], prepared.argv.data(), prepared.envp.data());
    code = errno;
  }
  (void)!::write(failure.write, &code, sizeof code);
  ::_exit(127);
}

/// Waits until the program has ended, its time is over, or the request was withdrawn (returns false). Drains both
/// streams.
bool watch(int process, int socket, double deadline, Tail& out, Tail& err, SupervisedResult& result) {
  while (true) {
    pollfd polled[4] = {
        {process, POLLIN, 0}, {socket, POLLRDHUP, 0}, {out.descriptor(), POLLIN, 0}, {err.descriptor(), POLLIN, 0}};
    int wait_ms = -1;
    if (deadline > 0)
      wait_ms = static_cast<int>(std::min(std::ceil(std::max(0.0, deadline - host_seconds()) * 1000), 1e9));
    const int ready = ::poll(polled, 4, wait_ms);
    if (ready < 0 && errno != EINTR) return false;
    if (polled[0].revents) {
      result.end = host_seconds();
      return true;
    }
    if (polled[1].revents) return false;
    if (polled[2].revents) out.drain();
    if (polled[3].revents) err.drain();
    if (deadline > 0 && host_seconds() >= deadline) {
      result.timed_out = true;
      result.end = host_seconds();
      return true;
    }
  }
}

void note_end(pid_t pid, SupervisedResult& result) {
  if (result.timed_out) ::kill(-pid, SIGKILL);
  int status = 0;
  rusage used{};
  while (::wait4(pid, &status, 0, &used) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  result.cpu_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  result.peak_bytes = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;  // ru_maxrss is in kB on Linux
}

/// Runs a program and fills in the result; returns false if the session has gone.
bool carry_out(const SupervisedRun& run, int socket, SupervisedResult& result) {
  if (run.arguments.empty()) {
    result.not_started = "no program is named";
    return true;
  }
  Prepared prepared(run);
  const auto nothing_starts = [&result](const std::string& what) {
    result.nothing_starts = what + ": " + std::strerror(errno);
    return true;
  };
  Pipe out, err, failure;
  if (out.read < 0 || err.read < 0 || failure.read < 0) return nothing_starts("no pipe can be made");
  const bool keeps = !run.whole_out.empty();
  const int whole = keeps ? ::open(run.whole_out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
  if (keeps && whole < 0) return nothing_starts(run.whole_out);
  Tail out_tail(out.take_read(), run.kept_bytes, whole), err_tail(err.take_read(), run.kept_bytes);
  result.begin = host_seconds();
  const pid_t pid = ::fork();
  if (pid < 0) return nothing_starts("no process can be started");
  if (pid == 0) become(run, prepared, out, err, failure);
  out.close_write();
  err.close_write();
  failure.close_write();
  int code = 0;
  if (::read(failure.read, &code, sizeof code) == sizeof code) {
    ::waitpid(pid, nullptr, 0);
    result.not_started =
        code < 0 ? run.folder + ": " + std::strerror(-code) : run.arguments[0] + ": " + std::strerror(code);
    return true;
  }
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  const double deadline = run.time_limit > 0 ? result.begin + run.time_limit : 0;
  const bool wanted = process >= 0 && watch(process, socket, deadline, out_tail, err_tail, result);
  if (process >= 0) ::close(process);
  if (!wanted) return false;
  note_end(pid, result);
  result.left_behind = end_all();
  out_tail.drain_all();
  err_tail.drain_all();
  result.out_bytes = out_tail.total();
  result.err_bytes = err_tail.total();
  if (out_tail.failure() != 0) result.not_whole = run.whole_out + ": " + std::strerror(out_tail.failure());
  result.out = out_tail.take();
  result.err = err_tail.take();
  return true;
}

}  // namespace

int run_supervisor(int descriptor) {
  // It ends only when its session has gone: a signal to the whole process group must not leave programs behind.
  for (const int s : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGPIPE}) ::signal(s, SIG_IGN);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  SupervisorStream session(kSupervisorKind, descriptor, descriptor);
  int code = 0;
  try {
    while (true) {
      const SupervisorMessage run = *session.receive(-1);
      SupervisedResult result;
      if (!carry_out(std::get<SupervisedRun>(run), descriptor, result)) break;
      session.send(result);
    }
  } catch (const Disconnected&) {
  } catch (const std::exception&) {
    code = 1;
  }
  (void)end_all();
  return code;
}

}  // namespace ergotune
