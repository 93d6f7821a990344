#include "watch/stored_trace.hpp"

#include "base/files.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "measure/observers/trace_observer.hpp"

namespace ergotune::serve {
namespace {

/// The name under which the observer stores it: workers do not know the names of execution parameters.
std::string called(const std::vector<Parameter>& parameters, const Configuration& configuration, bool all_names) {
  std::string message;
  for (std::size_t i = 0; i < configuration.size(); ++i) {
    if (i > 0) message += ',';
    if (all_names || parameters[i].kind == ParameterKind::code) message += parameters[i].name + "=";
    message += configuration[i].to_string();
  }
  return message;
}

}  // namespace

std::optional<PowerTrace> stored_trace(const Problem& problem, const std::vector<Parameter>& parameters,
                                       const Configuration& configuration, const std::filesystem::path& store) {
  for (const ObserverSpec& observer : problem.observers) {
    if (observer.name != "trace") continue;
    const auto option = observer.options.find("folder");
    std::filesystem::path folder = "traces";
    if (option != observer.options.end() && !option->second.empty()) folder = option->second.front().to_string();
    for (const bool all_names : {false, true}) {
      const auto file = trace_file(folder_of(store) / folder, called(parameters, configuration, all_names));
      const auto text = read_file(file);
      if (!text) continue;
      try {
        return trace_from_csv(*text, {file.string(), 0, 0});
      } catch (const UserError&) {
        return std::nullopt;
      }
    }
  }
  return std::nullopt;
}

}  // namespace ergotune::serve
