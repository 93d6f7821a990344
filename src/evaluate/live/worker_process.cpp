// A worker process: compiles, or runs, for the session at the other end of a socket.
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <thread>

#include "base/clock.hpp"
#include "ergotune/problem_file.hpp"
#include "evaluate/compile/compile_step.hpp"
#include "evaluate/live/machine_fault.hpp"
#include "evaluate/live/serial_device.hpp"
#include "evaluate/live/worker_transport.hpp"
#include "kernel/configure.hpp"
#include "kernel/round.hpp"
#include "measure/energy/device_load.hpp"

namespace ergotune {
namespace {

using namespace protocol;

// Sanitizers' shadow memory counts as private memory and exceeds any limit.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryMayBeLimited = false;
#else
constexpr bool kMemoryMayBeLimited = true;
#endif

/// A kernel that never ends does not let the worker read the socket: this starts a thread that ends the worker when the
/// session has gone.
void end_with_session(int descriptor) {
  std::thread([descriptor] {
    pollfd polled{descriptor, POLLRDHUP, 0};
    while (true) {
      if (::poll(&polled, 1, -1) > 0 && (polled.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) ::_exit(0);
    }
  }).detach();
}

void redirect_output(int log) {
  if (const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) {
    ::dup2(nowhere, STDOUT_FILENO);
    ::close(nowhere);
  }
  if (log >= 0) {
    ::dup2(log, STDERR_FILENO);
    ::close(log);
  }
}

/// Bytes of free memory; 0 if unknown.
std::uint64_t free_memory() {
  std::ifstream in("/proc/meminfo");
  std::string name, unit;
  std::uint64_t kilobytes = 0;
  while (in >> name >> kilobytes) {
    std::getline(in, unit);
    if (name == "MemAvailable:") return kilobytes * 1024;
  }
  return 0;
}

/// Bytes of private memory of this process.
std::uint64_t own_memory() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t pages = 0;
  for (int field = 0; field < 6; ++field) in >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// Limits kernels that allocate endlessly to three quarters of the free memory, since a CPU device shares its memory
/// with all processes. (Not for GPUs, whose drivers reserve far more than they use.)
void limit_memory() {
  const std::uint64_t free = free_memory();
  if (!kMemoryMayBeLimited || free == 0) return;
  const std::uint64_t bytes = own_memory() + std::max<std::uint64_t>(free / 4 * 3, 1ull << 30);
  const rlimit limit{bytes, bytes};
  ::setrlimit(RLIMIT_DATA, &limit);
}

class CompileService {
 public:
  /// `device` and `problem` must outlive this object.
  CompileService(const Setup& setup, const Problem& problem, const DeviceInfo& device,
                 std::unique_ptr<Compiler> compiler)
      : problem_(problem),
        device_(device),
        constants_(problem_.constants_for(device_.name, device_.properties)),
        step_(std::move(compiler), device_, setup.cache_folder) {}

  const std::string& identity() const { return step_.identity(); }

  Compiled compile(const Compile& request) {
    const Kernel& kernel = problem_.kernels.at(request.kernel);
    CompileOutcome outcome =
        step_.run([&] { return make_compile_job(problem_, kernel, device_, constants_, request.configuration); });
    if (outcome.status != Status::ok) outcome.message = with_kernel_name(kernel, outcome.message);
    return {request.id,         outcome.status,  std::move(outcome.message), std::move(outcome.binary), outcome.seconds,
            outcome.from_cache, outcome.mismatch};
  }

 private:
  const Problem& problem_;
  const DeviceInfo& device_;
  Constants constants_;
  CompileStep step_;
};

MeasureOptions with_limits(MeasureOptions options, bool calls_functions) {
  options.sets_allocation_limits = calls_functions;
  return options;
}

class RunService {
 public:
  RunService(const Setup& setup, Problem problem)
      : problem_(std::move(problem)),
        device_(open_device(setup.device_id, &problem_)),
        runner_(*device_, problem_, with_limits(setup.measure, calls_functions())),
        notes_(runner_.notes()) {
    if (setup.energy) {
      add_energy_observers(runner_, device_->info(), setup.sensors, setup.energy_seconds, setup.measure, notes_);
      if (!device_->info().is_cpu) warm_ = KeepWarm::make(*device_);
    }
  }

  /// Returns the next message. While none arrives and energy is measured, keeps the device warm, so that the next
  /// configuration starts near the steady state.
  std::optional<Message> next(Stream& session) {
    const double since = host_seconds();
    while (warm_ && has_run_ && runner_.healthy() && host_seconds() - since < KeepWarm::kLongest) {
      if (auto message = session.receive(0)) return message;
      if (!warm_->heat(0.005)) warm_.reset();
    }
    return session.receive(-1);
  }

  bool on_cpu() const { return device_->info().is_cpu; }
  bool calls_functions() const { return device_->info().backend == "host"; }

  /// Creates a compiler in this process; null if one in a separate process is no slower. OpenCL drivers for CPUs are
  /// loaded here anyway, and programs that they have built here need not be built again.
  std::unique_ptr<CompileService> make_compiler(const Setup& setup) {
    if (!setup.may_compile || !on_cpu() || device_->info().backend != "opencl") return nullptr;
    return std::make_unique<CompileService>(setup, problem_, device_->info(), device_->make_compiler());
  }

  Ready ready() const {
    Ready answer;
    answer.device = device_->info();
    answer.has_reference = runner_.has_reference();
    answer.notes = notes_;
    return answer;
  }

  Ran run(const Run& request) {
    const double started = host_seconds();
    Ran answer;
    answer.id = request.id;
    answer.measurement = runner_.run(request.configuration, request.binaries, request.options);
    throw_machine_fault(answer.measurement.status, answer.measurement.message, device_->info());
    answer.healthy = runner_.healthy();
    has_run_ = true;
    answer.has_reference = runner_.has_reference();
    answer.seconds = host_seconds() - started;
    return answer;
  }

 private:
  Problem problem_;
  std::unique_ptr<Device> device_;
  Runner runner_;
  std::unique_ptr<KeepWarm> warm_;
  bool has_run_ = false;
  std::vector<std::string> notes_;
};

/// Code is allocated and freed with every configuration: returning the memory each time would cost page faults.
void keep_memory() {
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
  ::mallopt(M_MMAP_THRESHOLD, 64 << 20);
}

void serve_compiler(Stream& session, const Setup& setup) {
  keep_memory();
  const Problem problem = deserialise(setup.problem);
  CompileService service(setup, problem, setup.device, open_compiler(setup.device_id));
  Ready ready;
  ready.device = setup.device;
  ready.compiler = service.identity();
  session.send(ready);
  while (true) {
    const std::optional<Message> message = session.receive(-1);
    if (std::holds_alternative<Stop>(*message)) return;
    session.send(service.compile(std::get<Compile>(*message)));
  }
}

void serve_runner(Stream& session, const Setup& setup) {
  RunService service(setup, deserialise(setup.problem));
  if (service.on_cpu()) limit_memory();
  if (!service.calls_functions()) keep_memory();
  const std::unique_ptr<CompileService> compiler = service.make_compiler(setup);
  Ready ready = service.ready();
  if (compiler) ready.compiler = compiler->identity();
  session.send(ready);
  while (true) {
    const std::optional<Message> message = service.next(session);
    if (std::holds_alternative<Stop>(*message)) return;
    if (const auto* compile = std::get_if<Compile>(&*message); compile && compiler) {
      session.send(compiler->compile(*compile));
    } else {
      session.send(service.run(std::get<Run>(*message)));
    }
  }
}

void report_failure(Stream& session, bool user_error, const std::string& message) {
  try {
    session.send(Failed{user_error, message});
  } catch (const Error&) {
    // the session has gone as well
  }
}

Stream* serving = nullptr;  // of run_worker()

}  // namespace

void limit_worker(double seconds, const std::string& message) {
  static std::atomic<std::uint64_t> current{0};
  const std::uint64_t mine = ++current;
  if (seconds <= 0) return;
  std::thread([=] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    if (current != mine) return;
    if (serving) report_failure(*serving, true, message);
    ::_exit(2);
  }).detach();
}

int run_worker(int descriptor, int log) {
  redirect_output(log);
  ::signal(SIGINT, SIG_IGN);  // the session handles Ctrl-C and ends its workers itself
  Stream session(kKind, descriptor, descriptor);
  serving = &session;
  end_with_session(descriptor);
  int code = 0;
  try {
    const std::optional<Message> first = session.receive(-1);
    const Setup& setup = std::get<Setup>(*first);
    if (setup.role == Role::compiler) {
      serve_compiler(session, setup);
    } else {
      serve_runner(session, setup);
    }
  } catch (const Disconnected&) {
  } catch (const UserError& error) {
    report_failure(session, true, error.what());
    code = 2;
  } catch (const std::exception& error) {
    report_failure(session, false, error.what());
    code = 1;
  }
  // Some drivers' exit handlers hang after a fault, and nothing else needs exit handlers.
  ::_exit(code);
}

}  // namespace ergotune
