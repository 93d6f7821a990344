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

/// Kernel source in one language; a problem may carry several, and a device takes the one it compiles.
struct KernelSource {
  Language language = Language::opencl;
  /// Where it was read from, absolute; empty for text given in memory.
  std::filesystem::path file;
  std::string text;
  /// Folders for #include, made absolute; the source's own folder is always among them.
  std::vector<std::filesystem::path> include_folders;
};

enum class ElementType { int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, float32, float64 };
std::string to_string(ElementType type);
/// "float32", "float", "double", "int", "uint" ...; nullopt when unknown.
std::optional<ElementType> element_type(std::string_view name);
std::size_t size_of(ElementType type);

/// External memory in this process (a tensor on a GPU) that kernels are given as it is: what measures it runs in this
/// process, and nothing shows writes past its end. When a run is over it holds what it held before.
struct ForeignMemory {
  /// The device that it is on: "cuda:0".
  std::string device;
  /// As Device::wrap_buffer takes it. Who gave it keeps it.
  void* address = nullptr;
  std::size_t bytes = 0;
  /// Copies what it holds now, from `offset` on.
  std::function<void(std::span<std::uint8_t> into, std::size_t offset)> read;
};

/// How a buffer is filled before a launch. Random values are never left to chance: they come from `seed`.
struct Fill {
  enum class Kind { random, range, constant, file, data } kind = Kind::random;
  std::uint64_t seed = 1;
  double low = -1, high = 1;                              ///< random: uniform in [low, high) (integers: [low, high])
  double start = 0, step = 1;                             ///< range: start + i * step
  double value = 0;                                       ///< constant
  std::filesystem::path file;                             ///< file: raw little-endian elements
  std::shared_ptr<const std::vector<std::uint8_t>> data;  ///< data: raw elements given in memory (Python)
  std::shared_ptr<const ForeignMemory> foreign;           ///< data: instead, memory that is used where it is
};

/// One member of a structure that is passed by value.
struct Field {
  std::string name;
  ElementType type = ElementType::float32;
  Expression value;  ///< sees constants and parameters
};

/// Bytes of a structure of these members, laid out as C does; 0 for none.
std::size_t size_of(const std::vector<Field>& fields);

/// What a fill of kind data holds.
std::vector<std::uint8_t> contents_of(const Fill& fill);

/// How a kernel uses a buffer. Outputs are verified; inputs and in-outs are restored before verification.
enum class Access { read, write, read_write };

struct Argument {
  enum class Kind { scalar, buffer, local_memory } kind = Kind::buffer;
  std::string name;
  ElementType type = ElementType::float32;
  /// scalar: its value. Sees constants and parameters.
  Expression value;
  /// A scalar that is a structure: its members in their order, laid out as C does, and its type's name in the source
  /// ("struct grid"), which C needs for the call.
  std::vector<Field> fields;
  std::string type_name;
  /// buffer and local_memory: number of elements. Sees constants and parameters (buffers: constants only).
  Expression count;
  Fill fill;
  Access access = Access::read;
  /// Where given: it is passed to the configurations for which this holds (one place in several types or layouts). Sees
  /// constants and parameters.
  std::optional<Expression> when;
  /// What its elements are to who gave it, where kernels have no such type: "complex64" (pairs of float32), "bool" ...
  std::string seen_as;
  SourcePlace place;

  bool passed(const Scope& scope) const { return !when || when->evaluate_bool(scope); }
};

/// Launch geometry, up to three dimensions each. Either grid (blocks) or global (threads) is given; the other follows.
struct Launch {
  std::vector<Expression> grid;    ///< blocks, as CUDA counts
  std::vector<Expression> global;  ///< work items, as OpenCL counts; rounded up to a multiple of block
  std::vector<Expression> block;   ///< threads per block / local size
  Expression shared_memory_bytes;  ///< dynamic shared memory
};

struct Verification;

/// One kernel of a problem.
struct Kernel {
  /// [kernels.NAME]: its parameters are called "NAME.BLOCK", and its own expressions and source see BLOCK. Empty for
  /// the kernel of a problem that has one.
  std::string name;
  /// Function name; for CUDA C++ a name expression such as "gemm<{{TILE}}, float>".
  Template function;
  std::vector<KernelSource> sources;
  std::vector<Argument> arguments;
  Launch launch;
  /// Compiler options by language name ("cuda", "c" ...), "" for all; each a template.
  std::map<std::string, std::vector<Template>> options;
  /// Of a kernel of several: what its first launch in a round is held against, beside what the round leaves
  /// (Problem::verification). Kind kernel or host_function; null: nothing of its own.
  std::shared_ptr<Verification> verification;
  /// The source for a language, or nullptr.
  const KernelSource* source_for(Language language) const;
};

/// A round with more is taken for one that never ends.
inline constexpr std::size_t kMaxLaunchesPerIteration = 1'000'000;

/// A step of a workload. Its expressions see constants, parameters and the variables of the loops around it.
struct Step {
  enum class Kind {
    launch,      ///< a kernel, `launches` times back to back (0: not at all)
    loop,        ///< `steps` for each value of `variable`: from, from + by, ... below to
    swap,        ///< from here to the end of the round, what two names of buffers stand for is exchanged
    concurrent,  ///< each of `steps` on a queue of its own; what comes next waits for all of them
    group        ///< `steps` in their order: a branch of a concurrent step
  } kind = Kind::launch;
  /// Of a branch, for `order`; a launch goes by its kernel's.
  std::string name;
  std::size_t kernel = 0;  ///< launch: position in Problem::kernels
  Expression launches = Expression::constant(1);
  std::string variable;
  Expression from = Expression::constant(0), to = Expression::constant(0), by = Expression::constant(1);
  std::string first, second;  ///< swap
  std::vector<Step> steps;
  /// concurrent: names of branches with commas between them, those that are queued first; the others follow as written.
  Template order;
  /// Of a branch's queue: "low", "normal" or "high"; empty: normal.
  Template priority;
  /// Of a branch: SMs reserved for it; 0: it runs wherever there is room.
  Expression multiprocessors = Expression::constant(0);
  SourcePlace place;
};

/// What is compared of an output: each element, or what does not depend on how many there are or where they stand.
enum class Compare { elements, sum, minimum, maximum, sorted };
std::string to_string(Compare compare);

/// How results are checked.
struct Verification {
  enum class Kind { none, first_correct, kernel, host_function, files } kind = Kind::first_correct;
  /// kernel: a reference kernel with the same arguments (its own source, function and launch);
  /// host_function: a C/C++/Fortran function with the same arguments, built into a shared object.
  std::shared_ptr<Kernel> reference;
  /// The reference runs anew for each configuration, with its parameters; else once, with the defaults.
  bool per_configuration = false;
  /// files: expected contents by argument name (raw little-endian).
  std::map<std::string, std::filesystem::path> files;
  /// Only these outputs are compared; empty: all.
  std::vector<std::string> outputs;
  /// Outputs that are not compared element by element, by argument name.
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

/// What the user wants. text is what they wrote: "time", "energy", "max gflops_per_watt",
/// "energy subject to time <= 1.1 * best(time)", "0.3*time + 0.7*energy", "pareto(time, energy)",
/// "lexicographic(time, energy)". search/objective.hpp gives it meaning.
struct ObjectiveSpec {
  std::string text = "time";
  std::optional<Direction> direction;
  SourcePlace place;
  /// Wherever it was written.
  friend bool operator==(const ObjectiveSpec& a, const ObjectiveSpec& b) {
    return a.text == b.text && a.direction == b.direction;
  }
};

/// A stage of a plan written in the problem file (tune/plans/plan.hpp).
struct PlanStageSpec {
  std::string name;
  std::vector<std::string> free;       ///< parameter names, or "code", "clocks", "all"
  std::map<std::string, Value> fixed;  ///< values; strings "max", "min", "default" for execution parameters
  std::string objective;               ///< the problem's own when empty
  std::string strategy;
  std::string budget;
  SourcePlace place;
};
struct PlanSpec {
  std::string name;
  std::vector<PlanStageSpec> stages;
};

/// An execution parameter as written, before the hardware's values are known.
struct ExecutionParameterSpec {
  ParameterKind kind = ParameterKind::core_clock_mhz;
  enum class Choice { all, equidistant, list, range, model } choice = Choice::all;
  int count = 0;                       ///< equidistant
  std::vector<Value> values;           ///< list
  double low = 0, high = 0, step = 0;  ///< range; step 0: every supported value inside
  SourcePlace place;
};

/// An observer that the user asks for by name (measure/observers/observer_registry.hpp), with its options as lists of
/// values.
struct ObserverSpec {
  std::string name;
  std::map<std::string, std::vector<Value>> options;
  SourcePlace place;
};

struct Program;

struct Problem {
  std::string name;
  std::string description;
  /// The file it was read from; empty for problems made in memory.
  std::filesystem::path file;
  /// What is tuned: at least one. Several make one workload, whose round is measured as a whole.
  std::vector<Kernel> kernels{1};
  /// A round of the workload; empty: every kernel once, in their order.
  std::vector<Step> steps;
  /// A whole program instead of kernels (problem/program.hpp): its run is the round, and the one kernel is an empty
  /// one. Null where kernels are tuned.
  std::shared_ptr<const Program> program;
  Constants constants;
  /// Constants for devices whose name contains the key.
  std::map<std::string, Constants> constants_by_device;
  std::vector<Parameter> parameters;
  std::vector<ExecutionParameterSpec> execution_parameters;
  std::vector<Restriction> restrictions;
  std::vector<Metric> metrics;
  ObjectiveSpec objective;
  Verification verification;
  std::vector<PlanSpec> plans;
  /// Asked for beside time and energy: [observers] in a problem file.
  std::vector<ObserverSpec> observers;
  /// Properties of the kernel for a simulated device (evaluate/recorded/simulated.hpp); empty: its defaults.
  std::map<std::string, Expression> simulation;

  /// The kernel of a problem that has one: the first.
  Kernel& kernel() { return kernels.front(); }
  const Kernel& kernel() const { return kernels.front(); }
  /// The device of the first argument that is external memory in this process; empty where none is.
  std::string device_of_foreign_memory() const;
  /// Whether its kernels have names, and with them parameters and quantities of their own.
  bool has_named_kernels() const { return !kernels.front().name.empty(); }
  /// Constants that hold on a device: the problem's, those by device name, and the device's properties.
  Constants constants_for(const std::string& device_name, const Constants& device_properties) const;
  /// The search space on a device with these properties.
  SearchSpace build_space(const Constants& constants, SpaceOptions options = {}) const;
};

/// The problem as T1 JSON (what T1 cannot express is left out).
std::string to_t1_json(const Problem& problem);

}  // namespace ergotune
