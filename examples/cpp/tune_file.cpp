// Tunes a problem file and prints the best configuration: ./tune_file vector_add.toml
#include <cstdio>
#include <ergotune/ergotune.hpp>

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: %s PROBLEM.toml [DEVICE [BUDGET]]\n", arguments[0]);
    return 2;
  }
  try {
    ergotune::TuneOptions options;
    options.settings["budget"] = count > 3 ? arguments[3] : "20";
    if (count > 2) options.settings["device"] = arguments[2];
    const ergotune::TuneResult result = ergotune::tune(ergotune::load_problem(arguments[1]), options);
    if (result.best.empty()) return 1;
    const auto& best = result.best.front();
    for (const auto& [name, value] : best.configuration) std::printf("%s = %s\n", name.c_str(), value.to_string().c_str());
    if (best.objective)
      std::printf("objective %g (%s), %llu configurations\n", *best.objective, to_string(result.provenance).c_str(),
                  static_cast<unsigned long long>(result.evaluated));
  } catch (const ergotune::UserError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
