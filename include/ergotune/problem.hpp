// What is tuned: kernels, launch geometry, workload, verification, parameters, restrictions.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ergotune/argument.hpp"
#include "ergotune/objective.hpp"
#include "ergotune/space.hpp"

namespace ergotune {

/// Values by name of the fields of a problem file that have no member, such as `description`: the rows that attribute()
/// makes in the tables of src/problem/document. `show`, the result document and Python pass them on without further
/// code.
using Attributes = std::map<std::string, Value, std::less<>>;

/// Launch geometry with up to three dimensions. Either `grid` (blocks) or `global` (threads) is given; the other is
/// derived from it.
struct Launch {
  std::vector<Expression> grid;    ///< blocks, as CUDA counts
  std::vector<Expression> global;  ///< work items, as OpenCL counts; rounded up to a multiple of block
  std::vector<Expression> block;   ///< threads per block / local size
  Expression shared_memory_bytes;  ///< dynamic shared memory
  Attributes attributes;
};

struct Verification;

/// One kernel of a problem.
struct Kernel {
  /// NAME of the table [kernels.NAME]: outside of the kernel its parameters are named "NAME.BLOCK", while its own
  /// expressions and source use BLOCK. Empty for the only kernel of a problem.
  std::string name;
  /// Function name; for CUDA C++ also a name expression such as "gemm<{{TILE}}, float>".
  Template function;
  std::vector<KernelSource> sources;
  std::vector<Argument> arguments;
  Launch launch;
  /// Compiler options by language name ("cuda", "c" ...); the key "" holds options for all languages. Each option is a
  /// template.
  std::map<std::string, std::vector<Template>> options;
  /// In a workload of several kernels: how the outputs of this kernel's first launch in an iteration are verified, in
  /// addition to the outputs of the iteration (Problem::verification). Kind kernel or host_function; null: no
  /// verification of this kernel alone.
  std::shared_ptr<Verification> verification;
  Attributes attributes;
  /// Returns the source in a language, or nullptr if there is none.
  const KernelSource* source_for(Language language) const;
};

/// An iteration with more launches is rejected as endless.
inline constexpr std::size_t kMaxLaunchesPerIteration = 1'000'000;

/// A step of a workload. Its expressions may use constants, parameters and the variables of enclosing loops.
struct Step {
  enum class Kind {
    launch,      ///< launches a kernel `launches` times back to back; 0: not at all
    loop,        ///< runs `steps` for each value of `variable`: from, from + by, ... while below `to`
    swap,        ///< exchanges the buffers behind the names `first` and `second` until the end of the iteration
    concurrent,  ///< runs each of `steps` on a queue of its own; the next step waits for all of them
    group        ///< runs `steps` in order; a branch of a concurrent step
  } kind = Kind::launch;
  /// Name of a branch, used by `order`; a launch is referred to by the name of its kernel.
  std::string name;
  std::size_t kernel = 0;  ///< launch: index in Problem::kernels
  Expression launches = Expression::constant(1);
  std::string variable;
  Expression from = Expression::constant(0), to = Expression::constant(0), by = Expression::constant(1);
  std::string first, second;  ///< swap: argument names
  std::vector<Step> steps;
  /// concurrent: comma-separated names of the branches that are queued first; the others follow in the written order.
  Template order;
  /// Priority of a branch's queue: "low", "normal" or "high"; empty: normal.
  Template priority;
  /// Number of SMs reserved for a branch; 0: none, the branch may run on any SM.
  Expression multiprocessors = Expression::constant(0);
  SourcePlace place;
};

/// How an output is compared: element by element, or by a value that does not depend on the order or the number of the
/// elements.
enum class Compare { elements, sum, minimum, maximum, sorted };
std::string to_string(Compare compare);

/// How outputs are verified.
struct Verification {
  enum class Kind { none, first_correct, kernel, host_function, files } kind = Kind::first_correct;
  /// kernel: a reference kernel with the same arguments and its own source, function and launch;
  /// host_function: a C, C++ or Fortran function with the same arguments, built into a shared object.
  std::shared_ptr<Kernel> reference;
  /// True: the reference runs for each configuration, with that configuration's parameters; false: once, with the
  /// defaults.
  bool per_configuration = false;
  /// files: file with the expected contents (raw little-endian elements) by argument name.
  std::map<std::string, std::filesystem::path> files;
  /// Names of the outputs to compare; empty: all.
  std::vector<std::string> outputs;
  /// Comparison by argument name for outputs that are not compared element by element.
  std::map<std::string, Compare> compare;
  /// Absent: relative_tolerance times the size of the expected numbers (usual_size() in kernel/compare.hpp).
  std::optional<double> absolute_tolerance;
  double relative_tolerance = 1e-4;
};

/// A stage of a plan in the problem file (tune/plans/plan.hpp).
struct PlanStageSpec {
  std::string name;
  std::vector<std::string> free;       ///< parameter names, or "code", "clocks", "all"
  std::map<std::string, Value> fixed;  ///< values; strings "max", "min", "default" for execution parameters
  std::string objective;               ///< empty: the problem's objective
  std::string strategy;
  std::string budget;
  SourcePlace place;
};
struct PlanSpec {
  std::string name;
  std::vector<PlanStageSpec> stages;
};

/// An execution parameter as written in the problem, before the values that the hardware supports are known.
struct ExecutionParameterSpec {
  ParameterKind kind = ParameterKind::core_clock_mhz;
  enum class Choice { all, equidistant, list, range, model } choice = Choice::all;
  int count = 0;                       ///< equidistant
  std::vector<Value> values;           ///< list
  double low = 0, high = 0, step = 0;  ///< range; step 0: every supported value within it
  SourcePlace place;
};

/// An observer requested by name (measure/observers/observer_registry.hpp). Each option is a list of values.
struct ObserverSpec {
  std::string name;
  std::map<std::string, std::vector<Value>> options;
  SourcePlace place;
};

struct Program;

struct Problem {
  std::string name;
  Attributes attributes;
  /// The file it was read from; empty for a problem made in memory.
  std::filesystem::path file;
  /// The kernels to tune, at least one. Several kernels form one workload, which is measured as a whole.
  std::vector<Kernel> kernels{1};
  /// The steps of one iteration of the workload; empty: each kernel once, in order.
  std::vector<Step> steps;
  /// The program to tune instead of kernels (problem/program.hpp): one run of it is the iteration, and `kernels` holds
  /// one empty kernel. Null when kernels are tuned.
  std::shared_ptr<const Program> program;
  Constants constants;
  /// Additional constants for devices whose name contains the key.
  std::map<std::string, Constants> constants_by_device;
  std::vector<Parameter> parameters;
  std::vector<ExecutionParameterSpec> execution_parameters;
  std::vector<Restriction> restrictions;
  std::vector<Metric> metrics;
  ObjectiveSpec objective;
  Verification verification;
  std::vector<PlanSpec> plans;
  /// Observers that measure more than time and energy: [observers] of a problem file.
  std::vector<ObserverSpec> observers;
  /// Kernel properties for a simulated device (evaluate/recorded/simulated.hpp); empty: the simulation's defaults.
  std::map<std::string, Expression> simulation;
  /// A hash of the contents of a Python function's arguments, no part of the identity; empty: unknown.
  std::string input_contents;

  /// The first kernel: the only one unless the problem is a workload.
  Kernel& kernel() { return kernels.front(); }
  const Kernel& kernel() const { return kernels.front(); }
  /// Device of the first argument in external memory; empty if no argument uses external memory.
  std::string device_of_external_memory() const;
  /// True if the kernels have names and thus parameters and quantities of their own.
  bool has_named_kernels() const { return !kernels.front().name.empty(); }
  /// The attributes of the problem, its kernels and their launches by their keys in the file: "description",
  /// "kernel.description", "kernels.NAME.launch.description".
  Attributes all_attributes() const;
  /// All constants for a device: the problem's, those given for the device's name, and the device's properties.
  Constants constants_for(const std::string& device_name, const Constants& device_properties) const;
  /// Builds the search space with these constants. Throws UserError as SearchSpace::build does.
  SearchSpace build_space(const Constants& constants, SpaceOptions options = {}) const;
};

/// Writes the problem as T1 JSON. Leaves out what T1 cannot express.
std::string to_t1_json(const Problem& problem);

}  // namespace ergotune
