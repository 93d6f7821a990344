// What the session's own threads spend on a result when 200 devices answer at once.
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include "base/clock.hpp"
#include "cluster/cluster.hpp"
#include "ergotune/problem_file.hpp"
#include "evaluate/live/live_evaluator.hpp"
#include "nodes.hpp"

namespace ergotune::bench {
namespace {

double resident_megabytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t pages = 0;
  in >> pages >> pages;
  return static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

Measurement a_measurement(std::uint64_t id) {
  Measurement m;
  for (const char* name : {"time", "energy", "power", "core_clock", "temperature", "registers"})
    m.quantities[name] = {1e-3 * static_cast<double>(id % 97 + 1), 1e-6, 9, "bench", "", Provenance::simulated};
  m.times.assign(9, 1e-3);
  return m;
}

/// All nodes' simulated devices, in one thread: each answers what it is asked at once.
class Devices {
 public:
  explicit Devices(int gpus) : gpus_(gpus), thread_([this] { serve(); }) {}
  ~Devices() {
    stop_ = true;
    thread_.join();
  }
  void add(int socket) {
    const std::lock_guard lock(mutex_);
    streams_.push_back(std::make_unique<agents::Stream>(agents::kKind, socket, socket));
    streams_.back()->post(agents::Hello{"bench", fmt::format("n{}", streams_.size())});
  }

 private:
  agents::Opened opened(std::size_t node) const {
    agents::Opened opened;
    opened.problem = serialise(Problem());
    opened.compiler = "bench";
    opened.capacity = static_cast<std::uint64_t>(4 * gpus_);
    for (int b = 0; b < gpus_; ++b) {
      DeviceInfo device;
      device.id = fmt::format("bench:{}", b);
      device.name = "Bench";
      device.uuid = fmt::format("GPU-{}-{}", node, b);
      opened.devices.push_back(device);
    }
    return opened;
  }
  void serve() {
    while (!stop_) {
      std::vector<pollfd> polled;
      {
        const std::lock_guard lock(mutex_);
        for (std::size_t i = 0; i < streams_.size(); ++i) {
          agents::Stream& stream = *streams_[i];
          while (auto message = stream.next()) {
            if (std::holds_alternative<agents::Open>(*message)) stream.post(opened(i));
            if (const auto* cancel = std::get_if<agents::Cancel>(&*message))
              stream.post(agents::Cancelled{cancel->number});
            if (const auto* ask = std::get_if<agents::Ask>(&*message)) {
              stream.post(agents::Started{ask->request.id, 0});
              stream.post(
                  agents::Answer{ask->request.id, a_measurement(ask->request.id),
                                 fmt::format("GPU-{}-{}", i, ask->request.id % static_cast<std::uint64_t>(gpus_))});
            }
          }
          stream.flush();
          if (!stream.ended()) polled.push_back({stream.in(), POLLIN, 0});
        }
      }
      ::poll(polled.data(), polled.size(), 20);
    }
  }

  int gpus_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::vector<std::unique_ptr<agents::Stream>> streams_;
  std::thread thread_;
};

class BenchAgent final : public NodeTransport {
 public:
  explicit BenchAgent(int socket) : NodeTransport(agents::kKind, socket) {}
  ProcessEnding end() override { return {}; }
};

template <class Evaluates>
void drive(Evaluates& evaluator, std::size_t devices, std::uint64_t results, const std::function<double()>& own,
           const char* name) {
  const double own_before = own(), began = host_seconds();
  double memory = 0;
  std::uint64_t requested = 0, done = 0;
  while (done < results) {
    const std::size_t capacity = evaluator.capacity();
    while (requested < results && requested - done < capacity) {
      ++requested;
      evaluator.submit({requested,
                        requested,
                        {Value(static_cast<std::int64_t>(requested)), Value(std::string("float"))},
                        false,
                        1e300,
                        "time"});
    }
    done += evaluator.wait(1).has_value();
    if (done == results / 4) memory = resident_megabytes();
  }
  const double wall = host_seconds() - began;
  fmt::print(
      "{}: {} devices, {} results, {:.1f} us of its own processor time a result, {:.0f} results a second; resident "
      "{:.1f} MB after a "
      "quarter, {:.1f} MB at the end\n",
      name, devices, results, 1e6 * (own() - own_before) / static_cast<double>(results),
      static_cast<double>(results) / wall, memory, resident_megabytes());
}

/// Device and compile workers of the live evaluator, that answers at once; all of them in one thread.
class Workers {
 public:
  Workers() : thread_([this] { serve(); }) {}
  ~Workers() {
    stop_ = true;
    thread_.join();
  }
  StartWorker starter() {
    return [this](const protocol::Setup& setup) {
      const auto sockets = make_socket_pair();
      struct Plain final : WorkerTransport {
        using WorkerTransport::WorkerTransport;
        ProcessEnding end() override { return {}; }
      };
      auto session = std::make_unique<protocol::Stream>(protocol::kKind, sockets.theirs, sockets.theirs);
      DeviceInfo device;
      device.id = setup.device_id;
      device.uuid = "GPU-" + setup.device_id;
      device.name = "Bench";
      session->send(protocol::Ready{device, "bench", true, {}});
      const std::lock_guard lock(mutex_);
      sessions_.push_back(std::move(session));
      return std::make_unique<Plain>(protocol::kKind, sockets.ours);
    };
  }

 private:
  void serve() {
    while (!stop_) {
      std::vector<pollfd> polled;
      {
        const std::lock_guard lock(mutex_);
        for (auto& session : sessions_) polled.push_back({session->in(), POLLIN, 0});
      }
      ::poll(polled.data(), polled.size(), 20);
      const std::lock_guard lock(mutex_);
      for (std::size_t i = 0; i < polled.size(); ++i)
        if (polled[i].revents & POLLIN) answer(*sessions_[i]);
    }
  }
  static void answer(protocol::Stream& session) {
    try {
      while (auto message = session.receive(0)) {
        if (const auto* compile = std::get_if<protocol::Compile>(&*message)) {
          protocol::Compiled compiled;
          compiled.id = compile->id;
          compiled.binary.bytes.assign(20000, 'x');
          session.send(compiled);
        }
        if (const auto* run = std::get_if<protocol::Run>(&*message)) {
          protocol::Ran ran;
          ran.id = run->id;
          ran.has_reference = true;
          ran.measurement = a_measurement(run->id);
          session.send(ran);
        }
      }
    } catch (const Error&) {
    }
  }

  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::vector<std::unique_ptr<protocol::Stream>> sessions_;
  std::thread thread_;
};

/// Processor time of the process less that of the threads that play devices would be unsteady: the evaluator's thread
/// is known by being the last that was made.
double thread_seconds(pid_t thread) {
  std::ifstream in(fmt::format("/proc/self/task/{}/schedstat", thread));
  double nanoseconds = 0;
  in >> nanoseconds;
  return nanoseconds * 1e-9;
}
pid_t last_thread() {
  pid_t last = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    last = std::max(last, static_cast<pid_t>(std::stoi(entry.path().filename())));
  return last;
}

}  // namespace

int cost(int count, char** arguments) {
  const auto nodes = static_cast<std::size_t>(std::stoul(option(count, arguments, "nodes", "200")));
  const int gpus = std::stoi(option(count, arguments, "boards", "1"));
  const std::uint64_t results = std::stoull(option(count, arguments, "results", "20000"));
  {
    Devices devices(gpus);
    ClusterOptions options;
    options.version = "bench";
    for (std::size_t i = 0; i < nodes; ++i) {
      options.starts.push_back([&devices]() -> std::unique_ptr<NodeTransport> {
        const auto sockets = make_socket_pair();
        devices.add(sockets.theirs);
        return std::make_unique<BenchAgent>(sockets.ours);
      });
    }
    Cluster cluster(Problem(), options);
    while (cluster.gpus().size() < nodes * static_cast<std::size_t>(gpus)) ::usleep(1000);
    drive(
        cluster, nodes * static_cast<std::size_t>(gpus), results, [&] { return cluster.own_seconds(); }, "cluster");
  }
  Workers workers;
  Problem problem;
  Kernel kernel;
  kernel.name = "k";
  problem.kernels = {kernel};
  for (const char* name : {"x", "type"}) problem.parameters.emplace_back().name = name;
  LiveOptions options;
  options.use_cache = false;
  options.jobs = 32;
  for (std::size_t i = 0; i < nodes; ++i) options.devices.push_back(fmt::format("bench:{}", i));
  LiveEvaluator evaluator(problem, options, workers.starter());
  const pid_t thread = last_thread();
  drive(
      evaluator, nodes, results, [&] { return thread_seconds(thread); }, "live evaluator of one host");
  return 0;
}

}  // namespace ergotune::bench
