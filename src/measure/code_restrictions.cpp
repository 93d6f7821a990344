#include "measure/code_restrictions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdint>

#include "device/device.hpp"
#include "ergotune/problem.hpp"
#include "problem/code_names.hpp"

namespace ergotune {

std::optional<std::string> broken_code_restriction(const Problem& problem, const std::vector<Parameter>& parameters,
                                                   const Configuration& configuration, const Constants& constants,
                                                   const std::map<std::string, Quantity>& quantities) {
  for (const Restriction& restriction : problem.restrictions) {
    const std::vector<std::string> of_code = code_names_in(problem, restriction);
    if (of_code.empty()) continue;
    std::map<std::string, Value, std::less<>> values(constants.begin(), constants.end());
    for (std::size_t i = 0; i < parameters.size() && i < configuration.size(); ++i)
      values.insert_or_assign(parameters[i].name, configuration[i]);
    std::vector<std::string> found;
    bool reported = true;
    for (const std::string& name : of_code) {
      const auto quantity = quantities.find(name);
      reported = reported && quantity != quantities.end();
      if (!reported) break;
      const double value = quantity->second.value;
      const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
      Value& known = values[name];
      known = whole ? Value(static_cast<std::int64_t>(value)) : Value(value);
      found.push_back(fmt::format("{} is {:.6g}", name, quantity->second.value));
    }
    if (!reported) continue;
    const Scope scope = [&](std::string_view name) -> const Value* {
      const auto value = values.find(name);
      return value == values.end() ? nullptr : &value->second;
    };
    if (!restriction.expression.evaluate(scope).truthy())
      return fmt::format("restriction \"{}\": {}", restriction.label(), fmt::join(found, ", "));
  }
  return std::nullopt;
}

Status compile_status(const std::exception& error) {
  const auto* failure = dynamic_cast<const DeviceError*>(&error);
  if (failure && failure->fault() == DeviceFault::unsupported) return Status::unsupported;
  if (failure && failure->fault() == DeviceFault::timeout) return Status::timeout;
  return Status::compile_error;
}

}  // namespace ergotune
