// Many slots: what dispatching costs, and what a search loses when it hands out many at a time.
//
//   bench_nodes cost [--nodes 200] [--GPUs 1] [--results 20000]
//     a cluster of nodes that answer at once: processor time of the cluster's thread per result, and its memory; the
//     live evaluator over as many devices
//   bench_nodes parallel RECORDING,... [--slots 1,2,4,8,16,64] [--repeats 20] [--evaluations 150] [--strategy auto]
//   [--threads 1]
//     replayed: time to the answer that one slot finds, with what each configuration cost when it was recorded
#include <cstdio>
#include <cstring>
#include <exception>

#include "nodes.hpp"

int main(int count, char** arguments) {
  try {
    if (count > 1 && !std::strcmp(arguments[1], "cost")) return ergotune::bench::cost(count - 2, arguments + 2);
    if (count > 2 && !std::strcmp(arguments[1], "parallel")) return ergotune::bench::parallel(count - 2, arguments + 2);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "bench_nodes cost | parallel RECORDING,... (see bench/nodes/nodes.cpp)\n");
  return 2;
}
