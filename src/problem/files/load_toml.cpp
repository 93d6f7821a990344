#include "problem/files/load_toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/files.hpp"
#include "problem/checks.hpp"
#include "problem/files/toml_sections.hpp"
#include "problem/program.hpp"

namespace ergotune {

using namespace toml_reading;

namespace {

/// What is tuned and what it is tuned in: [parameters], and [kernel] or [kernels].
void read_kernels(const Table& root, const KernelContext& context, Problem& problem) {
  root.at_most_one_of({"kernel", "kernels", "program"});
  if (root.has("program")) {
    for (const char* key : {"buffers", "workload", "verification"})
      if (root.has(key))
        throw UserError(
            fmt::format("[{}] is for kernels; a [program] is checked by its \"check\" and has no buffers", key),
            root.key_place(key));
  }
  if (!root.has("kernels") && !(root.has("program") && root.has("execution")))
    root.require("parameters", "a table [parameters] with what is tuned");
  if (const auto table = root.optional_table("parameters")) problem.parameters = read_parameters(*table);
  if (root.has("kernels") || root.has("workload")) return read_workload(root, context, problem);
  if (const auto table = root.optional_table("program")) {
    problem.program = read_program(*table, context.folder);
    problem.verification.kind = Verification::Kind::none;
    problem.kernel().function = literal_template(problem.name);
    return;
  }
  // A space to explore needs no kernel yet, but then the file says so: a forgotten [kernel] is a mistake.
  if (root.has("kernel") || (!context.modelled && !root.optional_boolean("space_only").value_or(false))) {
    root.require("kernel", "a table [kernel] with function, source and arguments");
    problem.kernel() = read_kernel(*root.optional_table("kernel"), context);
    settle_buffers(root, problem.kernels);
  } else {
    problem.kernel().function = Template::parse(problem.name);
  }
}

Problem read_problem(const Table& root, const std::filesystem::path& file) {
  root.allow({"name",         "description", "objective", "constants", "constants_for", "parameters", "execution",
              "restrictions", "kernel",      "kernels",   "program",   "buffers",       "workload",   "metrics",
              "verification", "observe",     "observers", "plans",     "tune",          "simulation", "space_only"});
  const auto folder = folder_of(file);
  Problem problem;
  problem.file = file;
  problem.name = root.optional_text("name").value_or(file.stem().string());
  problem.description = root.optional_text("description").value_or("");
  if (const auto table = root.optional_table("constants")) problem.constants = read_constants(*table);
  if (const auto table = root.optional_table("constants_for")) {
    problem.constants_by_device = read_constants_by_device(*table);
  }
  // A model stands for the kernel on simulated devices.
  KernelContext context;
  context.folder = folder;
  context.modelled = root.has("simulation");
  if (const auto table = root.optional_table("buffers")) context.buffers = read_buffers(*table, folder);
  read_kernels(root, context, problem);
  if (const auto table = root.optional_table("execution")) problem.execution_parameters = read_execution(*table);
  if (problem.parameters.empty() && problem.execution_parameters.empty()) {
    throw UserError("[parameters] is empty: there is nothing to tune", root.key_place("parameters"));
  }
  if (const toml::node* node = root.find("restrictions")) problem.restrictions = read_restrictions(root, *node);
  if (const auto table = root.optional_table("metrics")) problem.metrics = read_metrics(*table);
  if (const auto table = root.optional_table("verification")) {
    problem.verification = read_verification(*table, problem.kernels, context);
  }
  problem.observers = read_observers(root);
  if (const auto table = root.optional_table("tune")) problem.settings = read_tune(*table);
  if (const toml::node* node = root.find("objective")) {
    problem.objective = read_objective(root, *node);
    if (!problem.settings.objective.empty()) {
      throw UserError("the objective is given twice, at the top and in [tune]; keep one of them",
                      root.optional_table("tune")->key_place("objective"));
    }
  } else if (!problem.settings.objective.empty()) {
    const Table tune = *root.optional_table("tune");
    problem.objective.text = problem.settings.objective;
    problem.objective.place = tune.inside(*tune.find("objective"));
    problem.settings.objective.clear();  // it is the problem's objective now
  }
  if (const auto table = root.optional_table("plans")) problem.plans = read_plans(*table);
  if (const auto table = root.optional_table("simulation")) problem.simulation = read_simulation(*table);
  return problem;
}

}  // namespace

Problem load_toml_problem(const std::string& text, const std::filesystem::path& file) {
  toml::table document;
  try {
    check_toml_keys(text, file.string());
    document = toml::parse(text, file.string());
  } catch (const toml::parse_error& error) {
    const auto& begin = error.source().begin;
    const auto words = error.description();
    const bool ascii = std::all_of(words.begin(), words.end(), [](unsigned char c) { return c < 0x80; });
    throw UserError(fmt::format("this is not TOML: {}{}", words,
                                ascii ? "" : "; names and text that are not ASCII stand in quotes"),
                    {file.string(), static_cast<int>(begin.line), static_cast<int>(begin.column)});
  }
  const Table root(document, kWholeFile, file.string(), {file.string(), 0, 0});
  Problem problem = read_problem(root, file);
  check_names(problem);
  return problem;
}

}  // namespace ergotune
