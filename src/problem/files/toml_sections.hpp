// The sections of a native problem file, each read by a function of its own.
#pragma once

#include "ergotune/problem.hpp"
#include "problem/files/toml_reader.hpp"

namespace ergotune::toml_reading {

// space_sections.cpp
/// Throws for a name that cannot be a macro.
void check_identifier(const std::string& name, const char* what, const SourcePlace& place);
Constants read_constants(const Table& table);
std::map<std::string, Constants> read_constants_by_device(const Table& table);
std::vector<Parameter> read_parameters(const Table& table);
std::vector<ExecutionParameterSpec> read_execution(const Table& table);
std::vector<Restriction> read_restrictions(const Table& parent, const toml::node& node);

// kernel_section.cpp
/// Where a kernel stands.
struct KernelContext {
  std::filesystem::path folder;     ///< where its relative paths begin
  const Kernel* main = nullptr;     ///< a reference takes the arguments, and whatever it leaves out, from this one
  bool modelled = false;            ///< the file has [simulation]: neither source nor launch is needed
  std::vector<Argument> buffers{};  ///< those of [buffers]
  bool named = false;               ///< [kernels.NAME]: may have parameters of its own
};
Kernel read_kernel(const Table& table, const KernelContext& context);
Verification read_verification(const Table& table, const std::vector<Kernel>& kernels, const KernelContext& context);
/// A text file whole; throws a UserError at `place` when it cannot be read.
std::string read_text_file(const std::filesystem::path& file, const std::string& what, const SourcePlace& place);

// argument_section.cpp
std::vector<Argument> read_arguments(const Table& parent, const toml::node& node, const std::filesystem::path& folder,
                                     const std::vector<Argument>& buffers);
/// [buffers].
std::vector<Argument> read_buffers(const Table& table, const std::filesystem::path& folder);
/// Once the kernels are known: a buffer that some kernel writes begins with zeros where nothing else is said. Throws
/// for one that no kernel uses.
void settle_buffers(const Table& root, std::vector<Kernel>& kernels);

// workload_section.cpp
/// [kernels.NAME] and [workload]: kernels, the steps of a round, and the parameters that belong to one of them.
void read_workload(const Table& root, const KernelContext& context, Problem& problem);

// program_section.cpp
/// [program]. `folder`: where relative paths begin.
std::shared_ptr<const Program> read_program(const Table& table, const std::filesystem::path& folder);

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
