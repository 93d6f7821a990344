// Reads the plain JSON form of a search space, without the problem layer (which stands above this one).
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune::test {

struct Definition {
  std::vector<Parameter> parameters;
  std::vector<Restriction> restrictions;
};

inline Value value_of(const nlohmann::ordered_json& json) {
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_integer()) return Value(json.get<std::int64_t>());
  if (json.is_number()) return Value(json.get<double>());
  return Value(json.get<std::string>());
}

inline Definition read_definition(const std::filesystem::path& file) {
  std::ifstream stream(file);
  const auto json = nlohmann::ordered_json::parse(stream);
  Definition definition;
  std::string threads;
  for (const auto& [name, values] : json.at("tune_params").items()) {
    Parameter parameter;
    parameter.name = name;
    for (const auto& value : values) parameter.values.push_back(value_of(value));
    definition.parameters.push_back(std::move(parameter));
    if (name == "block_size_x" || name == "block_size_y" || name == "block_size_z")
      threads += (threads.empty() ? "" : " * ") + name;
  }
  for (const auto& text : json.at("restrictions")) {
    Restriction restriction;
    restriction.expression = Expression::parse(text.get<std::string>());
    definition.restrictions.push_back(std::move(restriction));
  }
  if (!threads.empty() && json.contains("max_threads")) {
    Restriction restriction;
    restriction.expression = Expression::parse(threads + " <= " + std::to_string(json["max_threads"].get<int>()));
    restriction.restriction_class = RestrictionClass::device_limit;
    definition.restrictions.push_back(std::move(restriction));
  }
  return definition;
}

}  // namespace ergotune::test
