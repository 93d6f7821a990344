// What is tuned: kernels, arguments, launch geometry, parameters, restrictions, metrics, objective.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

enum class Language { cuda, opencl, hip, c, cpp, fortran };
std::string to_string(Language language);

/// Kernel source in one language. A kernel may have sources in several languages; each device compiles the one it
/// supports.
struct KernelSource {
  Language language = Language::opencl;
  /// Absolute path of the source file; empty for source text given in memory.
  std::filesystem::path file;
  std::string text;
  /// Absolute paths of the folders searched by #include; they always contain the source's own folder.
  std::vector<std::filesystem::path> include_folders;
};

enum class ElementType { int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, float32, float64 };
std::string to_string(ElementType type);
/// Parses a type name such as "float32", "float", "double", "int" or "uint"; returns nullopt for an unknown name.
std::optional<ElementType> element_type(std::string_view name);
std::size_t size_of(ElementType type);

/// External memory of this process (such as a tensor on a GPU) that kernels use in place. Such kernels are measured in
/// this process, and writes past the end of the memory are not detected. Its original contents are restored after a
/// run.
struct ExternalMemory {
  /// Device on which the memory resides, such as "cuda:0".
  std::string device;
  /// Address in the form that Device::wrap_buffer takes. The caller keeps ownership.
  void* address = nullptr;
  std::size_t bytes = 0;
  /// Copies the current contents into `into`, starting at byte `offset`.
  std::function<void(std::span<std::uint8_t> into, std::size_t offset)> read;
};

/// How a buffer is filled before a launch. Random values are reproducible: they are generated from `seed`.
struct Fill {
  enum class Kind { random, range, constant, file, data } kind = Kind::random;
  std::uint64_t seed = 1;
  double low = -1, high = 1;                              ///< random: uniform in [low, high) (integers: [low, high])
  double start = 0, step = 1;                             ///< range: start + i * step
  double value = 0;                                       ///< constant
  std::filesystem::path file;                             ///< file: raw little-endian elements
  std::shared_ptr<const std::vector<std::uint8_t>> data;  ///< data: raw elements given in memory (Python)
  std::shared_ptr<const ExternalMemory> foreign;          ///< data: external memory used in place, instead of `data`
};

/// One member of a structure that is passed by value.
struct Field {
  std::string name;
  ElementType type = ElementType::float32;
  Expression value;  ///< may use constants and parameters
};

/// Size in bytes of a structure with these members in C layout; 0 for no members.
std::size_t size_of(const std::vector<Field>& fields);

/// The bytes of a fill of kind `data`: a copy of `data`, or of the current contents of the external memory.
std::vector<std::uint8_t> contents_of(const Fill& fill);

/// How a kernel uses a buffer. Buffers with access write or read_write are verified; buffers with access read or
/// read_write are restored before verification.
enum class Access { read, write, read_write };

struct Argument {
  enum class Kind { scalar, buffer, local_memory } kind = Kind::buffer;
  std::string name;
  ElementType type = ElementType::float32;
  /// scalar: its value; may use constants and parameters.
  Expression value;
  /// scalar that is a structure: its members in order, in C layout, and the name of its type in the source ("struct
  /// grid"), which is needed to call a C kernel.
  std::vector<Field> fields;
  std::string type_name;
  /// buffer and local_memory: number of elements; may use constants and parameters (buffers: constants only).
  Expression count;
  Fill fill;
  Access access = Access::read;
  /// Condition under which the argument is passed; absent: always. Lets one position have several types or layouts. May
  /// use constants and parameters.
  std::optional<Expression> when;
  /// Type, order and shape in which Python code sees the elements if they differ from `type`, such as "complex64"
  /// (pairs of float32) or "bool"; empty: as `type`.
  std::string seen_as;
  SourcePlace place;

  bool passed(const Scope& scope) const { return !when || when->evaluate_bool(scope); }
};

/// Launch geometry with up to three dimensions. Either `grid` (blocks) or `global` (threads) is given; the other is
/// derived from it.
struct Launch {
  std::vector<Expression> grid;    ///< blocks, as CUDA counts
  std::vector<Expression> global;  ///< work items, as OpenCL counts; rounded up to a multiple of block
  std::vector<Expression> block;   ///< threads per block / local size
  Expression shared_memory_bytes;  ///< dynamic shared memory
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
  double absolute_tolerance = 1e-6;
  double relative_tolerance = 1e-4;
};

/// A named expression over quantities, parameters and constants: gflops = 2*n**3/time/1e9.
struct Metric {
  std::string name;
  Expression expression;
  std::string unit;
};

enum class Direction { minimise, maximise };

/// The objective as the user wrote it, for example "time", "energy", "max gflops_per_watt", "energy subject to time <=
/// 1.1 * best(time)", "0.3*time + 0.7*energy", "pareto(time, energy)" or "lexicographic(time, energy)".
/// search/objective.hpp interprets it.
struct ObjectiveSpec {
  std::string text = "time";
  std::optional<Direction> direction;
  SourcePlace place;
  /// Compares the meaning only, not `place`.
  friend bool operator==(const ObjectiveSpec& a, const ObjectiveSpec& b) {
    return a.text == b.text && a.direction == b.direction;
  }
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
  std::string description;
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

  /// The first kernel: the only one unless the problem is a workload.
  Kernel& kernel() { return kernels.front(); }
  const Kernel& kernel() const { return kernels.front(); }
  /// Device of the first argument in external memory; empty if no argument uses external memory.
  std::string device_of_external_memory() const;
  /// True if the kernels have names and thus parameters and quantities of their own.
  bool has_named_kernels() const { return !kernels.front().name.empty(); }
  /// All constants for a device: the problem's, those given for the device's name, and the device's properties.
  Constants constants_for(const std::string& device_name, const Constants& device_properties) const;
  /// Builds the search space with these constants. Throws UserError as SearchSpace::build does.
  SearchSpace build_space(const Constants& constants, SpaceOptions options = {}) const;
};

/// Writes the problem as T1 JSON. Leaves out what T1 cannot express.
std::string to_t1_json(const Problem& problem);

}  // namespace ergotune
