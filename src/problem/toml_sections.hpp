// The sections of a native problem file, each read by a function of its own.
#pragma once

#include "ergotune/problem/problem.hpp"
#include "problem/toml_reader.hpp"

namespace ergotune::toml_reading {

// space_sections.cpp
Constants read_constants(const Table& table);
std::map<std::string, Constants> read_constants_by_device(const Table& table);
std::vector<Parameter> read_parameters(const Table& table);
std::vector<ExecutionParameterSpec> read_execution(const Table& table);
std::vector<Restriction> read_restrictions(const Table& parent, const toml::node& node);

// kernel_section.cpp
/// A kernel; `folder` is where its relative paths begin. A reference kernel of a verification takes the
/// arguments, and whatever it leaves out, from `main`. A `modelled` one (the file has
/// [simulation]) needs neither source nor launch.
Kernel read_kernel(const Table& table, const std::filesystem::path& folder, const Kernel* main = nullptr,
                   bool modelled = false);
Verification read_verification(const Table& table, const std::filesystem::path& folder, const Kernel& main);
/// A text file whole; throws a UserError at `place` when it cannot be read.
std::string read_text_file(const std::filesystem::path& file, const std::string& what,
                           const SourcePlace& place);

// argument_section.cpp
std::vector<Argument> read_arguments(const Table& parent, const toml::node& node,
                                     const std::filesystem::path& folder);

// goal_sections.cpp
std::vector<Metric> read_metrics(const Table& table);
ObjectiveSpec read_objective(const Table& parent, const toml::node& node);
/// observe = [names] and [observers] with a table of options each; both may be there.
std::vector<ObserverSpec> read_observers(const Table& root);
Settings read_tune(const Table& table);
std::vector<PlanSpec> read_plans(const Table& table);

// simulation_table.cpp
std::map<std::string, Expression> read_simulation(const Table& table);

/// Names of the execution parameters, in the order of ParameterKind.
const std::vector<std::string>& execution_names();

}  // namespace ergotune::toml_reading
