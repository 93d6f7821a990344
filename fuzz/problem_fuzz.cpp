// Problem files of any content: TOML, T1, plain JSON. A mistake is a UserError and nothing else.
#include <cstdint>
#include <string>

#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const ergotune::Problem problem = ergotune::parse_problem(text, "/nowhere/fuzz.toml");
    // What was understood must survive the way to a worker.
    const std::string document = ergotune::serialise(problem);
    if (ergotune::serialise(ergotune::deserialise(document)) != document) __builtin_trap();
    ergotune::to_t1_json(problem);
  } catch (const ergotune::UserError&) {
  }
  return 0;
}
