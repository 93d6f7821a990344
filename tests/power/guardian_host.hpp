// Lets a test program be its own guardian: ControlSession starts /proc/self/exe with a verb, and this
// program's real main is GoogleTest's. A global object answers before main when the verb is there.
#pragma once

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "power/guardian/guardian.hpp"

namespace guardian_host {

inline std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::string> arguments;
  std::string word;
  for (const char c : text) {
    if (c != '\0') {
      word += c;
      continue;
    }
    arguments.push_back(word);
    word.clear();
  }
  return arguments;
}

/// Make one global of it per test program. `other` are further verbs of the program, by name.
struct Host {
  using Verb = std::function<int(const std::vector<std::string>&)>;
  explicit Host(const std::vector<std::pair<std::string, Verb>>& other = {}) {
    ergotune::enable_guardian_verb("test-guardian");
    auto arguments = own_arguments();
    if (arguments.size() < 2) return;
    const bool started_as_guardian = arguments[0] == "ergotune-guardian";
    const std::string verb = arguments[1];
    arguments.erase(arguments.begin(), arguments.begin() + 2);
    if (verb == "test-guardian") std::_Exit(ergotune::run_guardian(arguments));
    for (const auto& [name, run] : other)
      if (verb == name) std::_Exit(run(arguments));
    // Tests name a verb that there is not to have a guardian that fails. It must end here: going on would run
    // all the tests again, and those would start the next.
    if (started_as_guardian) std::_Exit(1);
  }
};

}  // namespace guardian_host
