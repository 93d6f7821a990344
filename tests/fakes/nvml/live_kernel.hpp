// A kernel that loads a fake GPU: a C function on the host whose time follows the GPU's clock, and whose activity
// is the GPU's as long as it runs. With it the fake GPU is a live one: what the command sets, measures and restores
// goes through the driver's interface, and the physics of board_model.hpp answer.
#pragma once

#include <cstddef>
#include <string>

#include "board_state.hpp"

namespace fake_nvml {

/// What one launch of a configuration is, as expressions of the problem's parameters.
struct LiveLoad {
  std::string mega_cycles = "15";  ///< that follow the core clock
  std::string seconds = "0";       ///< that do not
  std::string activity = "1";      ///< 0 idle, 1 full
};

/// Source of `void work(float* b)`, b of 16 elements, for GPU 0 of the state that the environment names. It sleeps
/// while it "runs", so that it needs no core of its own. A launch begins where the one before it ended, as on a queue
/// that is kept full, although the host comes up to 30 ms late, and the GPU goes on for 100 ms without it: a machine
/// that is busy with other things changes neither a launch's energy nor how many there are in a second.
inline std::string live_kernel(const LiveLoad& load) {
  const auto at = [](std::size_t offset) { return std::to_string(offsetof(State, gpus) + offset); };
  return "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n#include <fcntl.h>\n#include <stdlib.h>\n#include "
         "<sys/mman.h>\n#include <time.h>\n"
         "#include <unistd.h>\n"
         "static char* board;\n"
         "static double now(void) {\n  struct timespec t;\n  clock_gettime(CLOCK_MONOTONIC, &t);\n"
         "  return t.tv_sec + 1e-9 * t.tv_nsec;\n}\n"
         "void work(float* b) {\n"
         "  if (!board) {\n    int file = open(getenv(\"ERGOTUNE_FAKE_NVML_STATE\"), O_RDWR);\n"
         "    board = (char*)mmap(0, " +
         std::to_string(sizeof(State)) +
         ", PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);\n    close(file);\n  }\n"
         "  volatile double* clock = (volatile double*)(board + " +
         at(offsetof(Gpu, clock_mhz)) +
         ");\n"
         "  volatile double* activity = (volatile double*)(board + " +
         at(offsetof(Gpu, background_activity)) +
         ");\n"
         "  volatile double* until = (volatile double*)(board + " +
         at(offsetof(Gpu, background_until)) +
         ");\n"
         "  static double end;\n"
         "  double cycles = " +
         load.mega_cycles + ", rest = " + load.seconds +
         ", last = now();\n"
         "  *until = last + 0.1;\n"
         "  if (last - end < 0.03) last = end;\n"
         "  *activity = " +
         load.activity +
         ";\n"
         "  while (cycles > 0 || rest > 0) {\n"
         "    double step = cycles > 0 ? cycles / *clock : rest;\n"
         "    if (step > 0.001) step = 0.001;\n"
         "    struct timespec pause = {0, (long)(1e9 * step)};\n"
         "    clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, 0);\n"
         "    double t = now(), passed = t - last;\n"
         "    *until = t + 0.1;\n"
         "    last = t;\n"
         "    double needed = cycles > 0 ? cycles / *clock : 0;\n"
         "    if (needed > passed) cycles -= passed * *clock; else { cycles = 0; rest -= passed - needed; }\n"
         "  }\n"
         "  end = last + rest;\n"
         "  for (int i = 0; i < 16; ++i) b[i] = i;\n"
         "}\n";
}

/// A problem around it: parameters and execution parameters as TOML.
inline std::string live_problem(const LiveLoad& load, const std::string& parameters, const std::string& execution) {
  return "name = \"live\"\nobjective = \"energy\"\n[parameters]\n" + parameters + "\n[execution]\n" + execution +
         "\n[kernel]\nfunction = \"work\"\narguments = [{ name = \"b\", type = \"float32\", count = 16, access = "
         "\"write\" }]\n"
         "[kernel.source.c]\ntext = '''\n" +
         live_kernel(load) + "'''\n";
}

}  // namespace fake_nvml
