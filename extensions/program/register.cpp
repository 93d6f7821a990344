// Registers whole programs as a kind of target.
#include "program/target_program.hpp"
#include "tune/target/target_parts.hpp"

namespace ergotune {

void register_program() {
  register_target({[](const Problem& problem, const SetupOptions& options) {
                     return problem.program && !options.run.device.starts_with("replay:");
                   },
                   open_program});
}

}  // namespace ergotune
