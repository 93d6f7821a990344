#include "problem/draft/problem_draft.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "base/files.hpp"
#include "base/kernel_source/identifiers.hpp"
#include "base/kernel_source/outline.hpp"
#include "base/kernel_source/signature.hpp"
#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "problem/draft/kernel_use.hpp"

namespace ergotune {
namespace {

using kernel_source::Function;
using kernel_source::Macro;
using kernel_source::Outline;

enum class Kind { device, host };

struct SourceLanguage {
  const char* key;  ///< of [kernel.options]
  Kind kind;
  std::vector<std::string> marks;  ///< what stands before a kernel's name
};

SourceLanguage language_of(const std::filesystem::path& file) {
  static const std::map<std::string, SourceLanguage> kLanguages{
      {".cu", {"cuda", Kind::device, {"__global__"}}},
      {".hip", {"hip", Kind::device, {"__global__"}}},
      {".cl", {"opencl", Kind::device, {"__kernel", "kernel"}}},
      {".c", {"c", Kind::host, {}}},
      {".cpp", {"cpp", Kind::host, {}}},
      {".cc", {"cpp", Kind::host, {}}},
      {".cxx", {"cpp", Kind::host, {}}}};
  const auto found = kLanguages.find(file.extension().string());
  if (found == kLanguages.end())
    throw UserError(
        fmt::format("{}: no first problem file can be written for this kind of source; it can be for .cu, .hip, "
                    ".cl, .c and .cpp (docs/problem-file.md shows the rest)",
                    file.string()));
  return found->second;
}

std::string text_of(const std::filesystem::path& file) {
  if (auto text = read_file(file)) return *std::move(text);
  throw UserError(fmt::format("{}: cannot be read", file.string()));
}

bool is_kernel(const Function& function, const SourceLanguage& language) {
  const auto words = kernel_source::identifiers_in(function.head);
  if (language.kind == Kind::host)
    return words.contains("void") && !words.contains("static") && function.name != "main";
  return std::any_of(language.marks.begin(), language.marks.end(),
                     [&](const auto& mark) { return words.contains(mark); });
}

const Function& kernel_of(const Outline& outline, const SourceLanguage& language, const std::string& wanted,
                          const std::filesystem::path& file) {
  std::vector<const Function*> kernels;
  std::vector<std::string> names;
  for (const Function& function : outline.functions) {
    if (!is_kernel(function, language) && function.name != wanted) continue;
    kernels.push_back(&function);
    names.push_back(function.name);
  }
  const auto found = std::find(names.begin(), names.end(), wanted);
  if (!wanted.empty() && found == names.end())
    throw UserError(fmt::format("{} has no kernel \"{}\"{}", file.string(), wanted,
                                names.empty() ? "" : suggestion(wanted, names)));
  if (!wanted.empty()) return *kernels[static_cast<std::size_t>(found - names.begin())];
  if (kernels.empty())
    throw UserError(fmt::format("{} has no {}", file.string(),
                                language.kind == Kind::host ? "function that returns void; name one with --kernel"
                                                            : fmt::format("function with {}", language.marks.front())));
  if (kernels.size() > 1)
    throw UserError(
        fmt::format("{} has several kernels: name one with --kernel: {}", file.string(), fmt::join(names, ", ")));
  return *kernels.front();
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

bool contains(const std::string& text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
}

std::optional<long> whole_number(const std::string& text) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 0);
  return text.empty() || (*end != '\0' && std::tolower(*end) != 'u') ? std::nullopt : std::optional(value);
}

/// A type of a problem file, and how many of them an element has: "float4" is four of float32.
struct Element {
  std::string type;
  int width = 1;
};

std::optional<Element> element_of(const std::string& type) {
  std::string plain;
  for (const std::string& word : split(type, ' ')) {
    static const std::set<std::string> kQualifiers{"__global", "global",    "__constant", "constant", "__local",
                                                   "local",    "__private", "const",      ""};
    if (!kQualifiers.contains(word)) plain += (plain.empty() ? "" : " ") + word;
  }
  if (plain.starts_with("std::")) plain.erase(0, 5);
  static const std::map<std::string, std::string> kNames{
      {"unsigned", "uint32"},       {"unsigned int", "uint32"},  {"signed int", "int32"},
      {"unsigned char", "uint8"},   {"signed char", "int8"},     {"bool", "uint8"},
      {"unsigned short", "uint16"}, {"unsigned long", "uint64"}, {"unsigned long long", "uint64"},
      {"long long", "int64"},       {"long", "int64"},           {"size_t", "uint64"},
      {"__half", "float16"},        {"half", "float16"}};
  if (const auto known = kNames.find(plain); known != kNames.end()) return Element{known->second, 1};
  if (const auto known = element_type(plain)) return Element{to_string(*known), 1};
  for (const int width : {16, 8, 4, 3, 2}) {
    const std::string digits = std::to_string(width);
    if (!plain.ends_with(digits)) continue;
    if (const auto known = element_type(plain.substr(0, plain.size() - digits.size())))
      return Element{to_string(*known), width};
  }
  return std::nullopt;
}

/// Values worth trying for a macro or a template parameter that is `present` in the source.
std::vector<long> values_of(const std::string& name, long present) {
  const std::string text = upper(name);
  std::set<long> values{present};
  if (present == 0 || (present == 1 && contains(text, {"USE", "ENABLE", "WITH"}))) {
    values = {0, 1};
  } else if (contains(text, {"UNROLL", "PER_THREAD", "WORK", "VECTOR", "VEC", "COARSEN"})) {
    values.insert({1, 2, 4, 8});
  } else {
    for (const long factor : {2, 4})
      if (present % factor == 0) values.insert(present / factor);
    values.insert({present * 2, present * 4});
  }
  return {values.begin(), values.end()};
}

class Draft {
 public:
  Draft(std::string text, const std::filesystem::path& file, const std::string& wanted, std::filesystem::path folder)
      : file_(file),
        folder_(std::move(folder)),
        language_(language_of(file)),
        text_(std::move(text)),
        outline_(kernel_source::outline_of(text_)),
        kernel_(kernel_of(outline_, language_, wanted, file)),
        use_(kernel_.body),
        used_(kernel_source::identifiers_of_kernel(text_, kernel_.name)) {}

  ProblemDraft write() {
    const std::string function = template_parameters();
    macros();
    const auto parameters = kernel_source::parameters_of(kernel_.parameters, true);
    for (const auto& parameter : parameters)
      if (parameter.name.empty())
        throw UserError(fmt::format("{}: a parameter of {} has no name", file_.string(), kernel_.name));
    for (const auto& parameter : parameters)
      if (!parameter.pointer) scalar(parameter.name, parameter.type);
    if (sizes_.empty()) add_size("N");
    if (language_.kind == Kind::host) add_parameter("OPTIMISE", "\"-O2\", \"-O3\"", true);
    host_code();
    const std::string launch = language_.kind == Kind::device ? geometry() : "";
    std::string arguments;
    for (const auto& parameter : parameters) arguments += argument(parameter);
    set_sizes();
    ProblemDraft draft;
    draft.kernel = kernel_.name;
    draft.questions = std::move(questions_);
    draft.text =
        head() + table("constants", constants_) + table("parameters", parameters_) +
        fmt::format("[kernel]\nfunction = \"{}\"\nsource = \"{}\"\narguments = [\n{}]\n\n", function,
                    file_.lexically_relative(folder_.empty() ? "." : folder_).generic_string(), arguments) +
        launch +
        (language_.kind == Kind::host
             ? fmt::format("[kernel.options]\n{} = [\"{{{{OPTIMISE}}}}\", \"-march=native\"]\n\n", language_.key)
             : "") +
        "# Every configuration's outputs are compared with those of the first one. Better: name a reference in\n"
        "# [verification.kernel] or [verification.host_function] (docs/problem-file.md).\n";
    return draft;
  }

 private:
  using Lines = std::vector<std::pair<std::string, std::string>>;

  void ask(std::string question) { questions_.push_back(std::move(question)); }

  /// A name for a constant or a parameter, which become macros: one that the kernel's source does not use.
  std::string macro_name(const std::string& name, const char* suffix) const {
    std::string result = upper(name);
    if (result.size() < 2 || used_.contains(result)) result += suffix;
    while (used_.contains(result)) result += '_';
    return result;
  }

  std::string add_size(const std::string& name) {
    const std::string constant = macro_name(name, "_SIZE");
    sizes_.emplace_back(name, constant);
    return constant;
  }

  /// The function's name, with its template parameters as parameters of the problem.
  std::string template_parameters() {
    const std::size_t open = kernel_.head.find('<');
    if (!kernel_.head.starts_with("template") || open == std::string::npos) return kernel_.name;
    const std::size_t close = kernel_.head.find('>', open);
    std::vector<std::string> values;
    for (const auto& parameter :
         kernel_source::parameters_of(std::string_view(kernel_.head).substr(open + 1, close - open - 1), true)) {
      if (parameter.type == "typename" || parameter.type == "class") {
        types_[parameter.name] = "float";
        values.push_back("float");
        ask(fmt::format("the template parameter {} is float: change it in function and arguments for another type",
                        parameter.name));
      } else if (parameter.type == "bool") {
        values.push_back(add_template_parameter(parameter.name, "[false, true]"));
      } else {
        values.push_back(add_template_parameter(parameter.name,
                                                fmt::format("[{}]", fmt::join(values_of(parameter.name, 16), ", "))));
      }
    }
    return fmt::format("{}<{}>", kernel_.name, fmt::join(values, ", "));
  }

  /// A parameter of another name, because parameters are macros; returns its place in the name expression.
  std::string add_template_parameter(const std::string& name, const std::string& values) {
    const std::string parameter = macro_name(name, "_VALUE");
    add_parameter(parameter, values);
    tunable_.insert(name);
    template_parameters_[name] = parameter;
    return fmt::format("{{{{{}}}}}", parameter);
  }

  /// NVRTC and hipRTC compile device code alone.
  void host_code() {
    const std::string language = language_.key;
    if (language != "cuda" && language != "hip") return;
    for (const Function& function : outline_.functions) {
      const auto words = kernel_source::identifiers_in(function.head);
      if (words.contains("__global__") || words.contains("__device__")) continue;
      ask(fmt::format(
          "{}:{}: {}() is host code, which run-time compilation refuses: enclose it (and the headers that it "
          "needs) in \"#ifndef __{}__\" and \"#endif\", or move the kernel to a file of its own",
          file_.string(), function.line, function.name, language == "cuda" ? "CUDACC_RTC" : "HIPCC_RTC"));
      return;
    }
  }

  void add_parameter(const std::string& name, const std::string& values, bool list = false) {
    parameters_.emplace_back(name, list ? "[" + values + "]" : values);
    tunable_.insert(name);
  }

  void macros() {
    for (const Macro& macro : outline_.macros) {
      const auto value = whole_number(macro.value);
      if (macro.takes_arguments || !value || !used_.contains(macro.name)) continue;
      if (macro.guarded) {
        add_parameter(macro.name, fmt::format("{{ values = [{}], default = {} }}",
                                              fmt::join(values_of(macro.name, *value), ", "), *value));
      } else {
        fixed_[macro.name] = *value;
        ask(
            fmt::format("{}:{}: {} is fixed at {}. To tune it, write \"#ifndef {}\" before and \"#endif\" after this "
                        "line, and run init again",
                        file_.string(), macro.line, macro.name, *value, macro.name));
      }
    }
  }

  void scalar(const std::string& name, const std::string& type) {
    const auto element = element_of(type);
    const bool whole = element && (element->type.starts_with("int") || element->type.starts_with("uint"));
    if (!whole) return;
    if (use_.is_extent(name)) {
      add_size(name);
    } else {
      const std::string constant = macro_name(name, "_VALUE");
      constants_.emplace_back(constant, "1  # CHECK: the value that the application passes");
      scalars_[name] = constant;
    }
  }

  /// The constant for a name of the source that is a size; the name itself where it is a macro.
  std::string size_named(const std::string& name) const {
    for (const auto& [source, constant] : sizes_)
      if (source == name) return constant;
    return fixed_.contains(name) ? value_in_expressions(name) : std::string();
  }

  std::string value_in_expressions(const std::string& name) const {
    if (const auto fixed = fixed_.find(name); fixed != fixed_.end()) return std::to_string(fixed->second);
    const auto parameter = template_parameters_.find(name);
    return parameter == template_parameters_.end() ? name : parameter->second;
  }

  std::string size(std::size_t dimension) const { return sizes_[std::min(dimension, sizes_.size() - 1)].second; }

  std::string product_of_sizes(std::size_t count) const {
    std::string product = size(0);
    for (std::size_t i = 1; i < count; ++i) product += " * " + size(i);
    return product;
  }

  /// Elements that an index reaches, as an expression; empty where the body does not show it.
  std::string extent_of(const std::string& index, int depth = 0) const {
    if (depth > 3) return {};
    const std::string plain(trimmed(index));
    if (std::all_of(plain.begin(), plain.end(), kernel_source::in_identifier)) {
      if (const auto number = whole_number(plain)) return std::to_string(*number + 1);
      if (const std::string bound = size_named(use_.bound_of(plain)); !bound.empty()) return bound;
      if (const auto blocks = blocks_.find(plain); blocks != blocks_.end()) return blocks->second;
      const std::string value = use_.value_of(plain);
      return value.empty() || value == plain ? std::string() : extent_of(value, depth + 1);
    }
    // row * width + column, whatever is added to it
    int open = 0;
    for (std::size_t at = 0; at < plain.size(); ++at) {
      if (plain[at] == '(') ++open;
      if (plain[at] == ')') --open;
      if (plain[at] != '*' || open != 0) continue;
      std::size_t end = plain.find_first_not_of(' ', at + 1);
      const std::size_t begin = end;
      while (end < plain.size() && kernel_source::in_identifier(plain[end])) ++end;
      if (begin == std::string::npos || plain.find('+', end) == std::string::npos) return {};
      const std::string stride = size_named(plain.substr(begin, end - begin));
      const std::string rows = extent_of(without_parentheses(plain.substr(0, at)), depth + 1);
      return stride.empty() || rows.empty() ? std::string() : rows + " * " + stride;
    }
    return {};
  }

  static std::string without_parentheses(const std::string& text) {
    const std::string plain(trimmed(text));
    return plain.starts_with('(') && plain.ends_with(')') ? plain.substr(1, plain.size() - 2) : plain;
  }

  std::string argument(const kernel_source::Parameter& parameter) {
    std::string type = parameter.type;
    if (const auto known = types_.find(type); known != types_.end()) type = known->second;
    const auto element = element_of(type);
    const std::string kind = element ? element->type : "float32";
    if (!element) {
      if (contains(type, {"image", "sampler", "texture", "cudaTextureObject_t", "surface"}))
        throw UserError(
            fmt::format("{}: the parameter \"{}\" is a {}; images and textures cannot be arguments of a problem",
                        file_.string(), parameter.name, type));
      ask(fmt::format("{}: the type \"{}\" is not known; see \"fields\" in docs/problem-file.md for structures",
                      parameter.name, type));
    }
    const bool local = contains(parameter.type, {"__local", "local "});
    if (!parameter.pointer) {
      const std::string constant = size_named(parameter.name);
      const auto scalar = scalars_.find(parameter.name);
      const std::string value = !constant.empty()          ? fmt::format("\"{}\"", constant)
                                : scalar != scalars_.end() ? fmt::format("\"{}\"", scalar->second)
                                                           : "1.0";
      if (value == "1.0")
        ask(fmt::format("{}: 1.0 is passed; write the value that the application passes", parameter.name));
      return fmt::format("  {{ name = \"{}\", type = \"{}\", value = {} }},\n", parameter.name, kind, value);
    }
    if (local) {
      ask(fmt::format("{}: local memory for one element per work item of a block", parameter.name));
      return fmt::format("  {{ name = \"{}\", type = \"{}\", local_count = \"{}\" }},\n", parameter.name, kind,
                         block_threads_);
    }
    const draft::BufferUse use = use_.use_of(parameter.name);
    std::string count;
    for (const std::string& index : use.indices)
      if (const std::string extent = extent_of(index); extent.size() > count.size()) count = extent;
    const bool guessed = count.empty();
    if (guessed)
      count = product_of_sizes(std::min<std::size_t>(sizes_.size() > 1 ? 2 : 1, sizes_.size())) +
              (sizes_.size() == 1 && dimensions_ > 1 ? " * " + size(0) : "");
    if (element && element->width > 1) count = fmt::format("{} * ({})", element->width, count);
    const bool read_only = parameter.constant || (use.read && !use.written) || contains(parameter.type, {"constant"});
    const char* access = read_only ? "" : use.read ? ", access = \"read_write\"" : ", access = \"write\"";
    if (guessed) ask(fmt::format("{}: its number of elements was guessed: {}", parameter.name, count));
    return fmt::format("  {{ name = \"{}\", type = \"{}\", count = \"{}\"{} }},{}\n", parameter.name, kind, count,
                       access, guessed ? "  # CHECK: number of elements" : "");
  }

  std::string geometry() {
    dimensions_ = use_.dimensions();
    const std::vector<std::string> shared = use_.shared_memory_dimensions();
    std::vector<std::string> blocks, items, grid;
    std::vector<std::string> free;
    bool by_block = false;
    for (int d = 0; d < dimensions_; ++d) {
      const draft::Position position = use_.position(d);
      const auto dimension = static_cast<std::size_t>(d);
      std::string block = position.block;
      if (block.empty() && dimension < shared.size() &&
          (tunable_.contains(shared[shared.size() - 1 - dimension]) ||
           fixed_.contains(shared[shared.size() - 1 - dimension])))
        block = shared[shared.size() - 1 - dimension];
      if (block.empty() || !(tunable_.contains(block) || fixed_.contains(block))) {
        block = fmt::format("block_size_{}", "xyz"[d]);
        free.push_back(block);
      }
      blocks.push_back(value_in_expressions(block));
      // one block for each row, and nothing shows how many rows there are
      if (position.of_block && size_named(use_.bound_of(position.variable)).empty())
        blocks_[position.variable] = add_size(position.variable + "s");
      std::string reach = position.variable.empty() ? std::string() : extent_of(position.variable);
      if (reach.empty() || reach.find('*') != std::string::npos) reach = size(dimension);
      if (!position.factor.empty() && position.factor != "1")
        reach = fmt::format("({0} + {1} - 1) // {1}", reach, value_in_expressions(position.factor));
      by_block = by_block || position.of_block;
      items.push_back(reach);
      grid.push_back(position.of_block ? reach : fmt::format("({0} + {1} - 1) // {1}", reach, blocks.back()));
    }
    for (const std::string& name : free)  // defaults: what people write first, blocks of 256 threads
      add_parameter(name, dimensions_ == 1      ? "{ values = [32, 64, 128, 256, 512, 1024], default = 256 }"
                          : name.ends_with("x") ? "{ values = [8, 16, 32, 64, 128], default = 16 }"
                          : dimensions_ == 2    ? "{ values = [1, 2, 4, 8, 16], default = 16 }"
                                                : "{ values = [1, 2, 4, 8, 16], default = 4 }");
    block_threads_ = fmt::format("{}", fmt::join(blocks, " * "));
    std::string shared_bytes;
    if (kernel_.body.find("extern __shared__") != std::string::npos) {
      shared_bytes = fmt::format("shared_memory_bytes = \"4 * {}\"  # CHECK: dynamic shared memory\n", block_threads_);
      ask("shared_memory_bytes: four bytes for each thread of a block were assumed");
    }
    if (std::any_of(blocks.begin(), blocks.end(), [](const auto& block) { return !whole_number(block); }))
      restriction_ = block_threads_ + " <= device.max_threads_per_block";
    const auto quoted = [](const std::vector<std::string>& list) {
      return fmt::format("[\"{}\"]", fmt::join(list, "\", \""));
    };
    return fmt::format("[kernel.launch]\n{}\nblock = {}\n{}\n",
                       by_block ? fmt::format("grid = {}  # blocks", quoted(grid))
                                : fmt::format("global = {}  # threads, rounded up to whole blocks", quoted(items)),
                       quoted(blocks), shared_bytes);
  }

  /// Usual values: large enough that a GPU is busy, small enough that a first try takes seconds.
  void set_sizes() {
    const long value = language_.kind == Kind::host ? (sizes_.size() == 1 && !two_dimensional() ? 1048576 : 512)
                       : dimensions_ == 3           ? 128
                       : dimensions_ == 2 || sizes_.size() > 1 || two_dimensional() ? 1024
                                                                                    : 4194304;
    for (const auto& [name, constant] : sizes_)
      constants_.emplace_back(constant, fmt::format("{}  # CHECK: the size that the application uses", value));
  }

  bool two_dimensional() const {
    return kernel_.body.find(" * " + (sizes_.empty() ? std::string("?") : sizes_.front().first)) != std::string::npos;
  }

  std::string head() const {
    std::string text = fmt::format(
        "#:schema problem.schema.json\n"
        "# A first problem file for {}, written by \"ergotune init\". Lines with CHECK hold a guess.\n"
        "# Editors complete it after: ergotune schema > problem.schema.json\n"
        "name = \"{}\"\n"
        "objective = \"time\"  # \"energy\" where the device has a sensor: see \"ergotune devices\"\n",
        kernel_.name, kernel_.name);
    if (!restriction_.empty()) text += fmt::format("restrictions = [\"{}\"]\n", restriction_);
    return text + "\n";
  }

  static std::string table(const char* name, const Lines& lines) {
    if (lines.empty()) return {};
    std::string text = fmt::format("[{}]\n", name);
    for (const auto& [key, value] : lines) text += fmt::format("{} = {}\n", key, value);
    return text + "\n";
  }

  const std::filesystem::path file_, folder_;
  const SourceLanguage language_;
  const std::string text_;
  const Outline outline_;
  const Function& kernel_;
  const draft::KernelUse use_;
  const kernel_source::Identifiers used_;

  std::vector<std::pair<std::string, std::string>> sizes_;  ///< name in the source, constant of the problem
  std::map<std::string, std::string> scalars_;              ///< other whole-number scalars: their constants
  std::map<std::string, std::string> types_;                ///< template parameters that are types
  std::map<std::string, std::string> template_parameters_;  ///< their parameters of the problem
  std::map<std::string, long> fixed_;                       ///< macros that the source sets for good
  std::map<std::string, std::string> blocks_;               ///< variables that number the blocks: how many there are
  std::set<std::string> tunable_;
  Lines constants_, parameters_;
  std::string restriction_, block_threads_ = "1";
  int dimensions_ = 1;
  std::vector<std::string> questions_;
};

}  // namespace

ProblemDraft draft_problem(const std::filesystem::path& source, const std::string& function,
                           const std::filesystem::path& folder) {
  return draft_problem_from_text(text_of(source), source, function, folder);
}

ProblemDraft draft_problem_from_text(const std::string& text, const std::filesystem::path& source,
                                     const std::string& function, const std::filesystem::path& folder) {
  return Draft(text, source, function, folder).write();
}

}  // namespace ergotune
