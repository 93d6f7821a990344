// The parts of a problem's JSON document (serialise.cpp), as overloads that lists of them can be written
// with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"

namespace ergotune::document {

using Json = nlohmann::ordered_json;

// document_values.cpp
Json number(double x);  ///< JSON has no infinities and no NaN; they travel in words
double number(const Json& json);
Json write(const Value& value);
Json write(const SourcePlace& place);
Json write(const Expression& expression);
Json write(const Constants& constants);
Json write(const Template& text);
Json write(const std::filesystem::path& path);
Value read_value(const Json& json);
SourcePlace read_place(const Json& json);
Expression read_expression(const Json& json);
Constants read_constants(const Json& json);
Template read_template(const Json& json);
std::filesystem::path read_path(const Json& json);

// document_kernel.cpp
Json write(const KernelSource& source);
Json write(const Argument& argument);
Json write(const Kernel& kernel);
Json write(const Verification& verification);
Kernel read_kernel(const Json& json);
Verification read_verification(const Json& json);

// document_workload.cpp
Json write(const Step& step);
Step read_step(const Json& json);

// document_program.cpp
Json write(const Program& program);
Program read_program(const Json& json);
/// What determines results: contents of files instead of their names. `folder`: the problem file's.
Json describe(const Program& program, const std::filesystem::path& folder);

// serialise.cpp
Json write(const Parameter& parameter);
Json write(const ExecutionParameterSpec& spec);
Json write(const Restriction& restriction);
Json write(const Metric& metric);
Json write(const PlanStageSpec& stage);
Json write(const PlanSpec& plan);
Json write(const ObserverSpec& spec);

/// One of an enumeration that ends with `last`: what comes from a file may be any number.
template <class E>
E read_enumerator(const Json& json, E last) {
  const auto number = json.get<std::int64_t>();
  if (number < 0 || number > static_cast<std::int64_t>(last))
    throw Error("no such kind in a stored problem: " + json.dump());
  return static_cast<E>(number);
}

template <class T>
Json write_list(const std::vector<T>& items) {
  Json json = Json::array();
  for (const T& item : items) json.push_back(write(item));
  return json;
}
template <class T, class F>
std::vector<T> read_list(const Json& json, F read) {
  std::vector<T> items;
  for (const Json& item : json) items.push_back(read(item));
  return items;
}

}  // namespace ergotune::document
