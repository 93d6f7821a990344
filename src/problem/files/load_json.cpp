// The two JSON forms of a problem: the plain one, {"tune_params", "restrictions", "max_threads"}, and T1
// (load_t1.cpp).
#include <fmt/format.h>

#include <algorithm>

#include "problem/checks.hpp"
#include "problem/files/json_reader.hpp"
#include "problem/files/load_t1.hpp"
#include "problem/files/load_toml.hpp"

namespace ergotune {

using json_reading::Json;
using json_reading::kind_of;
using json_reading::Source;

namespace {

Value read_value(const Json& json, const std::string& what, const SourcePlace& place) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  throw UserError(fmt::format("a value of {} must be a number, a string, true or false, not {}", what, kind_of(json)),
                  place);
}

std::vector<Parameter> read_parameters(const Json& json, const Source& source) {
  if (!json.is_object()) {
    throw UserError(fmt::format("\"tune_params\" must be a table of lists, not {}", kind_of(json)),
                    source.place_of("tune_params"));
  }
  std::vector<Parameter> parameters;
  for (const auto& [name, values] : json.items()) {
    Parameter parameter;
    parameter.name = name;
    parameter.place = source.place_of(name);
    if (!values.is_array() || values.empty()) {
      throw UserError(fmt::format("parameter \"{}\" needs a list of values", name), parameter.place);
    }
    for (const Json& value : values) {
      parameter.values.push_back(read_value(value, fmt::format("\"{}\"", name), parameter.place));
    }
    parameters.push_back(std::move(parameter));
  }
  if (parameters.empty()) throw UserError("\"tune_params\" is empty: there is nothing to tune", source.whole());
  return parameters;
}

/// In this form the product of the block sizes is limited without anybody writing it down.
void add_thread_limit(const Json& json, const Source& source, Problem& problem) {
  if (!json.contains("max_threads")) return;
  const Json& limit = json.at("max_threads");
  if (!limit.is_number_integer()) {
    throw UserError(fmt::format("\"max_threads\" must be an integer, not {}", kind_of(limit)),
                    source.place_of("max_threads"));
  }
  std::string product;
  for (const Parameter& parameter : problem.parameters) {
    if (parameter.name != "block_size_x" && parameter.name != "block_size_y" && parameter.name != "block_size_z")
      continue;
    product += (product.empty() ? "" : "*") + parameter.name;
  }
  if (product.empty()) return;
  Restriction restriction;
  restriction.expression = Expression::parse(fmt::format("{} <= {}", product, limit.get<std::int64_t>()));
  restriction.name = "threads per block";
  restriction.restriction_class = RestrictionClass::device_limit;
  problem.restrictions.push_back(std::move(restriction));
}

Problem read_plain(const Json& json, const Source& source, const std::filesystem::path& file) {
  const std::vector<std::string> keys{"tune_params", "restrictions", "max_threads", "name", "source", "description"};
  for (const auto& [key, value] : json.items()) {
    // Files of this form carry notes of their own; only what looks like a slip is one.
    if (std::find(keys.begin(), keys.end(), key) != keys.end() || nearest_name(key, keys).empty()) continue;
    throw UserError(fmt::format("unknown key \"{}\"{}", key, suggestion(key, keys)), source.place_of(key));
  }
  Problem problem;
  problem.file = file;
  problem.name =
      json.contains("name") && json["name"].is_string() ? json["name"].get<std::string>() : file.stem().string();
  problem.parameters = read_parameters(json.at("tune_params"), source);
  if (json.contains("restrictions")) {
    const Json& restrictions = json.at("restrictions");
    if (!restrictions.is_array()) {
      throw UserError(fmt::format("\"restrictions\" must be a list of expressions, not {}", kind_of(restrictions)),
                      source.place_of("restrictions"));
    }
    for (const Json& item : restrictions) {
      if (!item.is_string()) {
        throw UserError(fmt::format("a restriction must be an expression in quotes, not {}", kind_of(item)),
                        source.place_of("restrictions"));
      }
      const auto text = item.get<std::string>();
      Restriction restriction;
      restriction.expression = Expression::parse(text, source.place_of(text));
      problem.restrictions.push_back(std::move(restriction));
    }
  }
  add_thread_limit(json, source, problem);
  return problem;
}

}  // namespace

Problem load_json_problem(const std::string& text, const std::filesystem::path& file) {
  const Source source(text, file.string());
  const Json json = source.parse();
  Problem problem;
  if (json.contains("ConfigurationSpace")) {
    problem = read_t1(json, source, file);
  } else if (json.contains("tune_params") && !json.contains("cache")) {
    problem = read_plain(json, source, file);
  } else if (json.contains("cache")) {
    throw UserError("this is a cache of results, not a problem; load it with \"ergotune import\"", source.whole());
  } else {
    const std::vector<std::string> keys{"ConfigurationSpace", "tune_params"};
    std::string hint;
    for (const auto& [key, value] : json.items()) {
      if (const auto near = nearest_name(key, keys); !near.empty()) hint = suggestion(key, keys);
    }
    throw UserError("this JSON is no problem: it has neither \"ConfigurationSpace\" (T1) nor \"tune_params\"" + hint,
                    source.whole());
  }
  check_names(problem);
  return problem;
}

}  // namespace ergotune
