// The JSON forms of a problem: the native one with the keys of a TOML file, the plain one {"tune_params",
// "restrictions", "max_threads"}, and T1 (load_t1.cpp).
#include <fmt/format.h>

#include <algorithm>

#include "problem/checks.hpp"
#include "problem/document/fields.hpp"
#include "problem/document/problem_document.hpp"
#include "problem/files/load_t1.hpp"

namespace ergotune {

using document::Entry;
using document::Node;
using document::Table;

namespace {

std::vector<Parameter> read_value_lists(const Table& table) {
  std::vector<Parameter> parameters;
  for (const auto& [name, values, place] : table.entries()) {
    if (!values.list() || values.list()->empty())
      throw UserError(fmt::format("parameter \"{}\" needs a list of values", name), place);
    Parameter parameter;
    parameter.name = name;
    parameter.place = place;
    parameter.values = document::values_of(values, fmt::format("\"{}\"", name));
    parameters.push_back(std::move(parameter));
  }
  if (parameters.empty()) throw UserError("\"tune_params\" is empty: there is nothing to tune", table.place());
  return parameters;
}

/// Adds the restriction that the plain form implies: the product of the block sizes is limited to "max_threads".
void add_thread_limit(const Table& root, Problem& problem) {
  const Node* node = root.find("max_threads");
  if (!node) return;
  const std::int64_t limit = document::integer_of(*node, "\"max_threads\"");
  std::string product;
  for (const Parameter& parameter : problem.parameters) {
    if (parameter.name != "block_size_x" && parameter.name != "block_size_y" && parameter.name != "block_size_z")
      continue;
    product += (product.empty() ? "" : "*") + parameter.name;
  }
  if (product.empty()) return;
  Restriction restriction;
  restriction.expression = Expression::parse(fmt::format("{} <= {}", product, limit));
  restriction.name = "threads per block";
  restriction.restriction_class = RestrictionClass::device_limit;
  problem.restrictions.push_back(std::move(restriction));
}

Problem read_plain(const Table& root, const std::filesystem::path& file) {
  const std::vector<std::string> keys{"tune_params", "restrictions", "max_threads", "name", "source", "description"};
  for (const Entry& entry : root.entries()) {
    // Files of this form may carry additional keys; a key is rejected only if it resembles a valid one.
    if (std::find(keys.begin(), keys.end(), entry.key) != keys.end() || nearest_name(entry.key, keys).empty()) continue;
    throw UserError(fmt::format("unknown key \"{}\"{}", entry.key, suggestion(entry.key, keys)), entry.place);
  }
  Problem problem;
  problem.file = file;
  const Node* name = root.find("name");
  problem.name = name && name->is_text() ? name->text() : file.stem().string();
  problem.parameters = read_value_lists(*root.optional_table("tune_params"));
  if (const Node* list = root.find("restrictions")) problem.restrictions = document::read_restrictions(root, *list);
  add_thread_limit(root, problem);
  return problem;
}

}  // namespace

ProblemFile load_json_problem(const std::string& text, const std::filesystem::path& file) {
  const Node node = document::parse_json(text, file.string());
  const document::Context context;
  const Table root(node, document::kWholeFile, {file.string(), 0, 0}, context);
  const std::vector<std::string> native{"parameters", "kernel", "kernels", "program", "execution"};
  ProblemFile problem;
  if (root.has("ConfigurationSpace")) {
    problem = read_t1(root, file);
  } else if (root.has("cache")) {
    throw UserError("this is a cache of results, not a problem; load it with \"ergotune import\"", root.place());
  } else if (root.has("tune_params")) {
    problem = read_plain(root, file);
  } else if (std::any_of(native.begin(), native.end(), [&](const auto& key) { return root.has(key); })) {
    problem = document::read_problem(node, file, false);
  } else {
    const std::vector<std::string> keys{"ConfigurationSpace", "tune_params", "parameters"};
    std::string hint;
    for (const Entry& entry : root.entries())
      if (!nearest_name(entry.key, keys).empty()) hint = suggestion(entry.key, keys);
    throw UserError(
        "this JSON is not a problem: it has neither \"parameters\" nor \"ConfigurationSpace\" (T1) nor "
        "\"tune_params\"" +
            hint,
        root.place());
  }
  check_names(problem);
  return problem;
}

}  // namespace ergotune
