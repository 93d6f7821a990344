// The same program with the launcher: the kernel is described by heat.toml, and each call says how large the work is.
//   heat_tuned WIDTH HEIGHT STEPS
#include <cstring>
#include <ergotune/launcher.hpp>
#include <string>
#include <utility>

#include "opencl.hpp"

int main(int argc, char** argv) {
  Grids grids(argc > 1 ? std::atoi(argv[1]) : 1024, argc > 2 ? std::atoi(argv[2]) : 1024);
  const int steps = argc > 3 ? std::atoi(argv[3]) : 100;

  const ergotune::launcher::Kernel heat(HEAT_FOLDER "/heat.toml");

  const float rate = 0.2f;
  double start = seconds();
  for (int step = 0; step < steps; ++step) {
    heat(grids.queue, grids.width, grids.height, rate, grids.now, grids.next);
    std::swap(grids.now, grids.next);
    if (step % 100 == 0) clFinish(grids.queue);  // as a program does that looks at its results now and then
    if (step == 0) {
      std::printf("first call %.1f ms\n", (seconds() - start) * 1e3);
      start = seconds();
    }
  }
  clFinish(grids.queue);
  std::printf("%.3f ms a step\n", (seconds() - start) * 1e3 / (steps - 1));
  std::printf("sum %.6f\n", grids.sum());
  std::printf("%s\n", heat.why(grids.queue, grids.width, grids.height, rate, grids.now, grids.next).c_str());
}
