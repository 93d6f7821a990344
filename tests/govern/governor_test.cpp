// The governor's choice of clocks, on the physics of fake GPUs in virtual time.
#include "govern/governor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "fakes/nvml/fake_nvml.hpp"

namespace ergotune {
namespace {

/// A stretch of work of one kind, in units of about a millisecond: each needs mega_cycles / clock + seconds.
struct Stretch {
  double mega_cycles = 0, seconds = 0, activity = 0;
  double lasts = 0;  ///< s at the highest clock
};
struct Program {
  const char* name;
  std::vector<Stretch> cycle;
  int cycles = 1;
};

const std::vector<Program>& programs() {
  static const std::vector<Program> all{
      {"compute, then memory", {{1, 0.00005, 1.0, 40}, {0.15, 0.0008, 0.55, 40}}, 12},
      {"long memory, short compute", {{0.2, 0.001, 0.5, 60}, {1.2, 0.00003, 0.95, 20}}, 12},
      {"three phases", {{1, 0, 1.0, 30}, {0.5, 0.0004, 0.7, 30}, {0.05, 0.0009, 0.4, 30}}, 12},
      {"preparation, then a long loop", {{0.3, 0.0003, 0.3, 60}, {0.8, 0.0002, 0.85, 900}}, 1},
      {"compute with pauses of light work", {{1, 0.00002, 1.0, 45}, {0.03, 0.002, 0.08, 15}}, 16},
  };
  return all;
}

/// A GPU without a power limit that would hide the clock, in virtual time.
struct Board {
  fake_nvml::FakeNvml nvml;
  explicit Board(const std::string& generation) : nvml("virtual=1 step=0.004 generation=" + generation) {
    auto& gpu = nvml.gpu();
    gpu.power_limit_mw = gpu.default_power_limit_mw = 2'000'000;
    gpu.counter.sleeps = 0;
    nvml.restart_gpus();
  }
  std::vector<double> clocks() {
    auto& gpu = nvml.gpu();
    std::vector<double> out(gpu.graphics_clocks, gpu.graphics_clocks + gpu.graphics_clock_count);
    std::ranges::reverse(out);
    return out;
  }
  void lock(double mhz) {
    auto& gpu = nvml.gpu();
    gpu.locked = 1;
    gpu.locked_min = gpu.locked_max = static_cast<std::uint32_t>(mhz);
    gpu.locked_at = nvml.now();
  }
  double top() { return nvml.gpu().graphics_clocks[0]; }
};

struct Run {
  double seconds = 0, joules = 0;
};

/// Feeds the program's launches to the GPU as it works them off.
class Feeder {
 public:
  Feeder(Board& board, const Program& program) : board_(board) {
    for (int i = 0; i < program.cycles; ++i)
      for (const Stretch& stretch : program.cycle) {
        fake_nvml::WorkItem item{};
        item.mega_cycles = stretch.mega_cycles;
        item.seconds = stretch.seconds;
        item.activity = item.activity_low = stretch.activity;
        item.high_fraction = 1;
        const double each = fake_nvml::launch_seconds(item, board.top());
        item.count = static_cast<std::uint64_t>(std::llround(stretch.lasts / each));
        enqueue(board.nvml.state(), board.nvml.gpu(), item);
      }
  }
  bool ended() const { return board_.nvml.gpu().queue_head == board_.nvml.gpu().queue_tail; }

 private:
  Board& board_;
};

Run run_at(const std::string& generation, const Program& program, double mhz) {
  Board board(generation);
  const Feeder feeder(board, program);
  board.lock(mhz);
  const double begin = board.nvml.now(), joules = board.nvml.true_energy();
  while (!feeder.ended()) board.nvml.pass(0.1);
  return {board.nvml.now() - begin, board.nvml.true_energy() - joules};
}

/// The best fixed clock of each stretch within the bound, from the physics itself: time and energy of its work at the
/// temperature that the GPU reaches there.
Run best_by_phase(const std::string& generation, const Program& program, double bound) {
  Board board(generation);
  const auto& gpu = board.nvml.gpu();
  Run all;
  for (const Stretch& stretch : program.cycle) {
    fake_nvml::WorkItem item{};
    item.mega_cycles = stretch.mega_cycles;
    item.seconds = stretch.seconds;
    const double fastest = launch_seconds(item, board.top());
    Run best{0, 1e300};
    for (const double clock : board.clocks()) {
      const double each = launch_seconds(item, clock);
      double temperature = gpu.ambient;
      for (int i = 0; i < 50; ++i)
        temperature =
            gpu.ambient + gpu.thermal_resistance * fake_nvml::power_at(gpu, stretch.activity, clock, temperature);
      const double joules = each * fake_nvml::power_at(gpu, stretch.activity, clock, temperature);
      if (each <= (1 + bound) * fastest && joules < best.joules) best = {each, joules};
    }
    const double count = program.cycles * std::round(stretch.lasts / fastest);
    all.seconds += count * best.seconds;
    all.joules += count * best.joules;
  }
  return all;
}

struct Governed : Run {
  double exploring_seconds = 0, exploring_cost = 0, told_slowdown = 0;
  std::size_t phases = 0;
  double clock = 0;  ///< that was found for the first phase
};

Governed govern(const std::string& generation, const Program& program, double bound) {
  Board board(generation);
  const Feeder feeder(board, program);
  GovernorOptions options;
  options.max_slowdown = bound;
  Governor governor(board.clocks(), options);
  auto& gpu = board.nvml.gpu();
  board.lock(governor.clock());
  const double begin = board.nvml.now(), joules = board.nvml.true_energy();
  double clock = governor.clock();
  while (!feeder.ended()) {
    // what a sensor and a count of iterations tell: whole steps of the counter, whole units
    const double from = board.nvml.now(), energy = gpu.counter_energy, work = std::floor(gpu.work_done);
    board.nvml.pass(governor.sample_seconds());
    GovernorSample sample;
    sample.seconds = board.nvml.now() - from;
    sample.joules = gpu.counter_energy - energy;
    sample.work = std::floor(gpu.work_done) - work;
    sample.work_error = 1;
    sample.clock_mhz = gpu.clock_mhz;
    governor.observe(sample);
    if (governor.clock() == clock) continue;
    clock = governor.clock();
    board.lock(clock);
    const double before = board.nvml.true_energy();
    board.nvml.pass(options.settling);
    governor.pass(options.settling, board.nvml.true_energy() - before);
  }
  Governed run;
  run.seconds = board.nvml.now() - begin;
  run.joules = board.nvml.true_energy() - joules;
  run.exploring_seconds = governor.exploring_seconds();
  run.exploring_cost = governor.exploring_cost();
  run.told_slowdown = governor.slowdown();
  run.phases = governor.phases().size();
  run.clock = governor.phases().front().clock_mhz;
  if (std::getenv("ERGOTUNE_GOVERN_VERBOSE"))
    for (const GovernedPhase& phase : governor.phases())
      std::fprintf(stderr, "    phase: %.0f MHz, %d, %.0f s, %.0f W, %.1f/s, slowdown %.3f, saved %.3f, tried %zu\n",
                   phase.clock_mhz, phase.explored, phase.seconds, phase.watts, phase.rate, phase.slowdown, phase.saved,
                   phase.clocks_tried);
  return run;
}

Governed compare(const std::string& generation, const Program& program, double bound, double allowed) {
  Board board(generation);
  const Run top = run_at(generation, program, board.top());
  const Run best = best_by_phase(generation, program, bound);
  const Governed run = govern(generation, program, bound);
  std::fprintf(stderr,
               "%-8s %-34s bound %2.0f %%: energy %+.2f %% of the best fixed clocks, %.1f %% below the highest; "
               "slowdown %.2f %% (told %.2f); explored %.1f of %.0f s, %.2f %% of the energy; %zu phases\n",
               generation.c_str(), program.name, 100 * bound, 100 * (run.joules / best.joules - 1),
               100 * (1 - run.joules / top.joules), 100 * (run.seconds / top.seconds - 1), 100 * run.told_slowdown,
               run.exploring_seconds, run.seconds, 100 * run.exploring_cost / run.joules, run.phases);
  EXPECT_LE(run.joules, (1 + allowed) * best.joules) << generation << ", " << program.name;
  EXPECT_LE(run.seconds, (1 + bound) * top.seconds) << generation << ", " << program.name;
  EXPECT_GT(run.exploring_seconds, 0);
  return run;
}

TEST(Governor, KeepsTheBoundAndComesNearTheBestClockOfEachPhase) {
  for (const char* generation : {"hopper", "ga100", "volta"})
    for (const Program& program : programs()) compare(generation, program, 0.05, 0.02);
}

TEST(Governor, UsesAWiderBound) {
  for (const char* generation : {"hopper", "ga100", "volta"}) compare(generation, programs()[0], 0.3, 0.02);
}

TEST(Governor, EndsAtTheBestClockOfAProgramWithoutPhases) {
  for (const char* generation : {"hopper", "ga100", "volta"})
    for (const double bound : {0.05, 0.5})
      for (const Program& program :
           {Program{"compute", {{1, 0.00005, 0.9, 1200}}, 1}, Program{"memory", {{0.2, 0.0008, 0.5, 1200}}, 1}}) {
        const Governed run = compare(generation, program, bound, 0.012);
        const double best = best_by_phase(generation, program, bound).joules;
        const double found = run_at(generation, program, run.clock).joules;
        std::fprintf(stderr, "  the clock that was found, %.0f MHz: %+.2f %%\n", run.clock, 100 * (found / best - 1));
        EXPECT_LE(found, 1.01 * best) << generation << ", " << program.name;
      }
}

TEST(Governor, StaysAtTheHighestClockWithoutWork) {
  Governor governor({500, 1000}, {});
  for (int i = 0; i < 100; ++i) governor.observe({0.2, 10, 0, 0, std::nullopt});
  EXPECT_EQ(governor.clock(), 1000);
  Governor only({700}, {});
  for (int i = 0; i < 100; ++i) only.observe({0.2, 10, 20, 0, std::nullopt});
  EXPECT_EQ(only.clock(), 700);
}

}  // namespace
}  // namespace ergotune
