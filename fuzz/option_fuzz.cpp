// What is written on the command line and has a grammar of its own: objectives, observers, ranges of parameters.
#include <cstdint>
#include <string>

#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "measure/observers/observer_registry.hpp"
#include "search/objective_text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    ergotune::ObjectiveSpec spec;
    spec.text = text;
    ergotune::search::parse_objective_text(spec);
  } catch (const ergotune::UserError&) {
  }
  try {
    ergotune::check_observers({ergotune::parse_observer(text)});
  } catch (const ergotune::UserError&) {
  }
  return 0;
}
