#include "problem/draft/problem_draft.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <regex>
#include <set>

#include "base/files.hpp"
#include "base/kernel_source/identifiers.hpp"
#include "base/kernel_source/outline.hpp"
#include "base/kernel_source/signature.hpp"
#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "problem/draft/kernel_use.hpp"
#include "problem/draft/opencl_launch.hpp"
#include "problem/draft/source_launch.hpp"
#include "problem/draft/undefined_names.hpp"
#include "problem/files/includes.hpp"

namespace ergotune {
namespace {

constexpr const char* kTemplateParameter = "values of a template parameter: where they change the result, leave one";

using kernel_source::Function;
using kernel_source::Macro;
using kernel_source::Outline;

enum class Kind { device, host };

struct SourceLanguage {
  const char* key;  ///< key of [kernel.options]
  Kind kind;
  std::vector<std::string> marks;  ///< tokens before the name of a kernel
  const char* macro = "";          ///< macro that its run-time compiler defines
};

const SourceLanguage* known_language(const std::filesystem::path& file) {
  static const std::map<std::string, SourceLanguage> kLanguages{
      {".cu", {"cuda", Kind::device, {"__global__"}, "__CUDACC_RTC__"}},
      {".hip", {"hip", Kind::device, {"__global__"}, "__HIPCC_RTC__"}},
      {".cl", {"opencl", Kind::device, {"__kernel", "kernel"}, "__OPENCL_VERSION__"}},
      {".c", {"c", Kind::host, {}}},
      {".cpp", {"cpp", Kind::host, {}}},
      {".cc", {"cpp", Kind::host, {}}},
      {".cxx", {"cpp", Kind::host, {}}}};
  const auto found = kLanguages.find(file.extension().string());
  return found == kLanguages.end() ? nullptr : &found->second;
}

SourceLanguage language_of(const std::filesystem::path& file) {
  const SourceLanguage* const language = known_language(file);
  if (!language)
    throw UserError(
        fmt::format("{}: no first problem file can be written for this kind of source; it can be for .cu, .hip, "
                    ".cl, .c and .cpp (the page \"The problem file\" of the documentation describes the rest)",
                    file.string()));
  return *language;
}

std::string text_of(const std::filesystem::path& file) {
  if (auto text = read_file(file)) return *std::move(text);
  throw UserError(fmt::format("{}: cannot be read", file.string()));
}

bool is_kernel(const Function& function, const SourceLanguage& language) {
  const auto words = kernel_source::identifiers_in(function.head);
  if (language.kind == Kind::host) return !words.contains("static") && function.name != "main";
  return std::any_of(language.marks.begin(), language.marks.end(),
                     [&](const auto& mark) { return words.contains(mark); });
}

bool returns_void(const Function& function) { return kernel_source::identifiers_in(function.head).contains("void"); }

const Function& kernel_of(const Outline& outline, const SourceLanguage& language, const std::string& wanted,
                          const std::filesystem::path& file) {
  std::vector<const Function*> kernels;
  std::vector<std::string> names;
  // of functions for the CPU those that return nothing write to their arguments, as a kernel does
  const auto is_likely = [&](const Function& function) {
    return is_kernel(function, language) && returns_void(function);
  };
  const bool void_only = std::any_of(outline.functions.begin(), outline.functions.end(), is_likely);
  for (const Function& function : outline.functions) {
    if (!(void_only ? is_likely(function) : is_kernel(function, language)) && function.name != wanted) continue;
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
                                language.kind == Kind::host ? "function that other files can call"
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

/// Replaces runs of white space by one blank, because std::regex recurses for each character of a run.
std::string one_blank(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank || !result.ends_with(' ')) result += blank ? ' ' : c;
  }
  return result;
}

/// A type of the problem file, and the number of values per element: "float4" is four float32.
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
      {"__half", "float16"},        {"half", "float16"},         {"int8_t", "int8"},
      {"int16_t", "int16"},         {"int32_t", "int32"},        {"int64_t", "int64"},
      {"uint8_t", "uint8"},         {"uint16_t", "uint16"},      {"uint32_t", "uint32"},
      {"uint64_t", "uint64"},       {"ptrdiff_t", "int64"}};
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

/// Returns values worth trying for a macro or template parameter whose value in the source is `present`, its default.
std::string values_of(const std::string& name, long present) {
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
  return fmt::format("{{ values = [{}], default = {} }}", fmt::join(values, ", "), present);
}

class Draft {
 public:
  Draft(const std::string& text, const std::filesystem::path& file, const std::string& wanted,
        std::filesystem::path folder, const HostProgram& host,
        const std::vector<std::filesystem::path>& include_folders)
      : file_(file),
        folder_(std::move(folder)),
        include_folders_(include_folders),
        host_(host.file),
        language_(language_of(file)),
        source_(headers(text) + text + "\n" +
                (host.file.extension() == ".py" ? draft::python_as_c(host.text) : host.text)),
        text_(kernel_source::source_with_macro(text, language_.macro)),
        outline_(kernel_source::outline_of(text_)),
        kernel_(kernel_of(outline_, language_, wanted, file)),
        launch_(std::string_view(language_.key) == "opencl" ? draft::opencl_launch(source_, kernel_.name)
                                                            : draft::source_launch(source_, kernel_.name)),
        use_(kernel_.body),
        used_(kernel_source::identifiers_of_kernel(text_, kernel_.name)) {}

  ProblemDraft write() {
    types();
    const std::string function = template_parameters();
    macros();
    const auto parameters = kernel_source::parameters_of(kernel_.parameters, true);
    for (const auto& parameter : parameters)
      if (parameter.name.empty())
        throw UserError(fmt::format("{}: a parameter of {} has no name", file_.string(), kernel_.name));
    for (const auto& parameter : parameters)
      if (!parameter.pointer) scalar(parameter.name, parameter.type);
    find_undefined();
    if (sizes_.empty()) add_size("N");
    host_code();
    if (!host_.empty() && launch_.at == std::string::npos)
      ask(fmt::format("{}: no launch of {} was found", host_.string(), kernel_.name));
    for (const std::string& message : kernel_source::unfilled_variables(text_, file_.string())) ask(message);
    const std::string launch = language_.kind == Kind::device ? geometry() : "";
    undefined_parameters();
    if (!returns_void(kernel_))
      ask(fmt::format("{} returns its result, which is not verified; let it write to an argument to have it verified",
                      kernel_.name));
    if (language_.kind == Kind::host) add_parameter("OPTIMISE", "\"-O2\", \"-O3\"", true);
    if (parameters_.empty())  // all values are fixed in the source
      add_parameter(macro_name("BLOCK_SIZE_X", ""),
                    "[" + block_threads_ + "]" + check("nothing can be tuned yet; this parameter changes nothing"));
    std::string arguments;
    for (const auto& parameter : parameters) arguments += argument(parameter);
    set_sizes();
    ProblemDraft draft;
    draft.kernel = kernel_.name;
    draft.text = head() + table("constants", constants_) + table("parameters", parameters_) +
                 fmt::format("[kernel]\nfunction = \"{}\"\nsource = \"{}\"\n{}arguments = [\n{}]\n\n", function,
                             from_problem(file_), include_folders(), arguments) +
                 launch + options() + verification();
    draft.questions = std::move(questions_);
    return draft;
  }

 private:
  using Lines = std::vector<std::pair<std::string, std::string>>;

  /// Records a guess and returns the comment that marks it: "  # CHECK: ...". `subject`: the subject of the line.
  std::string check(const std::string& what, const std::string& subject = "") {
    questions_.push_back(subject.empty() ? what : subject + ": " + what);
    return "  # CHECK: " + what;
  }

  /// Records a guess that belongs to no line; it is written at the head of the file.
  void ask(const std::string& what) { remarks_ += check(what).substr(2) + "\n"; }

  /// Returns a path as the problem file writes it.
  std::string from_problem(const std::filesystem::path& path) const {
    const std::filesystem::path relative = path.lexically_relative(folder_.empty() ? "." : folder_);
    return (relative.empty() ? path : relative).generic_string();  // an absolute path has no relative one
  }

  std::vector<std::string> folders_of_headers() const {
    std::vector<std::string> folders{file_.has_parent_path() ? file_.parent_path().string() : "."};
    for (const auto& folder : include_folders_) folders.push_back(folder.string());
    return folders;
  }

  /// Returns the headers that a source includes, one after the other.
  std::string headers(const std::string& text) const {
    std::string all;
    for (const IncludedFile& header : included_files(text, folders_of_headers())) all += header.text + "\n";
    return all;
  }

  std::string include_folders() const {
    std::vector<std::string> folders;
    for (const auto& folder : include_folders_) folders.push_back(from_problem(folder));
    return folders.empty() ? "" : fmt::format("include_folders = [\"{}\"]\n", fmt::join(folders, "\", \""));
  }

  /// Returns a name for a constant or a parameter. It becomes a macro, so it must not occur in the kernel's source.
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

  /// typedef float real;   using real = float;   #define REAL float
  void types() {
    static const std::regex kTypedef("typedef\\s+([A-Za-z_0-9 ]{1,60})\\s+([A-Za-z_0-9]{1,60})\\s*;");
    static const std::regex kUsing("using\\s+([A-Za-z_0-9]{1,60})\\s*=\\s*([A-Za-z_0-9 ]{1,60}?)\\s*;");
    const std::string text = one_blank(outline_.outside);
    for (std::sregex_iterator it(text.begin(), text.end(), kTypedef), end; it != end; ++it)
      types_[(*it)[2].str()] = (*it)[1].str();
    for (std::sregex_iterator it(text.begin(), text.end(), kUsing), end; it != end; ++it)
      types_[(*it)[1].str()] = (*it)[2].str();
    for (const Macro& macro : outline_.macros)
      if (!macro.takes_arguments && element_of(macro.value)) types_[macro.name] = macro.value;
  }

  /// Returns the function's name; its template parameters become parameters of the problem.
  std::string template_parameters() {
    const std::size_t open = kernel_.head.find('<');
    if (!kernel_.head.starts_with("template") || open == std::string::npos) return kernel_.name;
    const std::size_t close = kernel_.head.find('>', open);
    std::vector<std::string> values;
    for (const auto& parameter :
         kernel_source::parameters_of(std::string_view(kernel_.head).substr(open + 1, close - open - 1), true)) {
      const std::string given =
          values.size() < launch_.template_arguments.size() ? launch_.template_arguments[values.size()] : std::string();
      if (parameter.type == "typename" || parameter.type == "class") {
        const bool known = element_of(given).has_value();
        values.push_back(types_[parameter.name] = known ? given : "float");
        if (!known)
          ask(fmt::format("the template parameter {} is float: change it in function and arguments for another type",
                          parameter.name));
      } else {
        const std::string list = parameter.type == "bool"
                                     ? fmt::format("{{ values = [false, true], default = {} }}", given == "true")
                                     : values_of(parameter.name, draft::source_value(source_, given).value_or(16));
        values.push_back(add_template_parameter(parameter.name, list + check(kTemplateParameter, parameter.name)));
        if (whole_number(given).value_or(1) != 1 && std::ranges::count(launch_.template_arguments, given) == 1)
          launched_values_[given] = template_parameters_[parameter.name];
      }
    }
    return fmt::format("{}<{}>", kernel_.name, fmt::join(values, ", "));
  }

  /// Adds a parameter with a different name, because parameters are macros; returns its expression for the template
  /// argument.
  std::string add_template_parameter(const std::string& name, const std::string& values) {
    const std::string parameter = macro_name(name, "_VALUE");
    add_parameter(parameter, values);
    tunable_.insert(name);
    template_parameters_[name] = parameter;
    return fmt::format("{{{{{}}}}}", parameter);
  }

  /// Notes host code, since NVRTC and hipRTC compile device code only.
  void host_code() {
    if (!std::string_view(language_.macro).ends_with("_RTC__")) return;
    for (const Function& function : outline_.functions) {
      const auto words = kernel_source::identifiers_in(function.head);
      if (words.contains("__global__") || words.contains("__device__")) continue;
      ask(fmt::format(
          "{}:{}: {}() is host code, which run-time compilation refuses: enclose it (and the headers that it "
          "needs) in \"#ifndef {}\" and \"#endif\", or move the kernel to a separate file",
          file_.string(), function.line, function.name, language_.macro));
      return;
    }
    static const std::regex kHostHeader(
        "#\\s*include\\s*<(cstdio|cstdlib|iostream|vector|string|stdio\\.h|stdlib\\.h|"
        "chrono|random|fstream|memory|iomanip|algorithm|sys/time\\.h|time\\.h)>");
    std::smatch header;
    const std::string text = one_blank(kernel_source::blank_comments(text_));
    if (std::regex_search(text, header, kHostHeader))
      ask(
          fmt::format("{}: <{}> is a header of the host, which run-time compilation does not find: enclose it in "
                      "\"#ifndef {}\" and \"#endif\"",
                      file_.string(), header[1].str(), language_.macro));
  }

  void add_parameter(const std::string& name, const std::string& values, bool list = false) {
    parameters_.emplace_back(name, list ? "[" + values + "]" : values);
    tunable_.insert(name);
  }

  void macros() {
    for (const Macro& macro : outline_.macros) {
      const auto value = whole_number(macro.value);
      if (macro.takes_arguments || !value || !used_.contains(macro.name)) continue;
      if (macro.guarded && is_size_name(macro.name) && use_.is_extent(macro.name) && !is_block(macro.name) &&
          !is_factor(macro.name)) {
        sizes_.emplace_back(macro.name, macro.name);
        given_[macro.name] = *value;
      } else if (macro.guarded && contains(upper(macro.name), {"RADIUS", "ORDER", "STENCIL", "HALO", "ITER", "BINS"})) {
        constants_.emplace_back(macro.name,
                                std::to_string(*value) + check("its value seems to change the result", macro.name));
      } else if (macro.guarded) {
        add_parameter(macro.name,
                      values_of(macro.name, *value) +
                          check("the values worth trying; where they change the result, leave one", macro.name));
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
    const auto known = types_.find(type);
    const auto element = element_of(known == types_.end() ? type : known->second);
    const bool whole = element && (element->type.starts_with("int") || element->type.starts_with("uint"));
    if (!whole) return;
    const bool absent = !kernel_source::identifiers_in(kernel_.body).contains(name);
    if (use_.is_extent(name) || absent) {
      add_size(name);
      if (absent) unbound_.push_back(sizes_.back().second);
    } else {
      const std::string constant = macro_name(name, "_VALUE");
      const std::string launched = launched_number(name);
      constants_.emplace_back(constant, whole_number(launched)
                                            ? launched + "  # as in the source"
                                            : "1" + check("the value that the application passes", constant));
      scalars_[name] = constant;
    }
  }

  /// Returns the number that the launch in the source passes for a parameter; empty if it is not found.
  std::string launched_number(const std::string& parameter) const {
    const auto parameters = kernel_source::parameters_of(kernel_.parameters, true);
    const auto number = static_cast<std::size_t>(
        std::ranges::find(parameters, parameter, &kernel_source::Parameter::name) - parameters.begin());
    if (number >= launch_.arguments.size()) return {};
    const std::string& argument = launch_.arguments[number];
    if (const auto whole = draft::source_value(source_, argument, launch_.at)) return std::to_string(*whole);
    const auto literal = [](std::string text) {
      if (text.ends_with('f')) text.pop_back();
      char* end = nullptr;
      const double value = std::strtod(text.c_str(), &end);
      return !text.empty() && *end == '\0' && std::isfinite(value) ? fmt::format("{}", value) : std::string();
    };
    std::string found = literal(argument);
    const std::string text = kernel_source::blank_comments(source_);
    for (const std::size_t behind : draft::ends_of(text, argument, launch_.at)) {  // the last value before the launch
      const std::size_t next = draft::next_character(text, behind);
      if (next >= text.size() || text[next] != '=') continue;
      const std::string value = text.substr(next + 1, text.find(';', next) - next - 1);
      if (const std::string given = literal(draft::parts_of(value, ",").front()); !given.empty()) found = given;
    }
    return found;
  }

  // --- Names that the source expects from the compiler's command line

  void find_undefined() {
    const std::vector<std::string> folders = folders_of_headers();
    const std::vector<draft::UndefinedName> names = draft::undefined_names(text_, folders, outline_, used_);
    std::vector<std::string> missing = missing_includes(text_, folders);
    std::erase_if(missing, [](const std::string& header) {  // of a compiler or a toolkit, which define no parameters
      return header.starts_with("cuda") || header.starts_with("device_") || header.starts_with("hip/") ||
             header.starts_with("std") || header == "math.h" || header == "omp.h";
    });
    if (!missing.empty() && !names.empty()) {
      // a parameter would define the header's macro a second time
      std::vector<std::string> open;
      for (const draft::UndefinedName& name : names) open.push_back(name.name);
      return ask(fmt::format("{}: \"{}\" was not found, and may define {}: run init again with --include FOLDER",
                             file_.string(), fmt::join(missing, "\", \""), fmt::join(open, ", ")));
    }
    for (const draft::UndefinedName& name : names) {
      if (name.as_type) {
        types_[name.name] = "float";
      } else if (!name.as_unroll && !name.as_schedule && !name.in_condition && !name.in_ifdef &&
                 is_size_name(name.name) && use_.is_extent(name.name) && !is_factor(name.name)) {
        sizes_.emplace_back(name.name, name.name);
        continue;
      }
      undefined_.push_back(name);
      if (!name.in_ifdef && !name.as_type) tunable_.insert(name.name);
    }
  }

  /// True for N, WIDTH, NUM_ROWS; false for TILE_SIZE.
  static bool is_size_name(const std::string& text) {
    static const std::set<std::string> kNames{"N",    "M",    "K",    "NX",    "NY",     "NZ",     "W",     "H",
                                              "ROWS", "COLS", "SIZE", "WIDTH", "HEIGHT", "LENGTH", "DEPTH", "COUNT"};
    return kNames.contains(text) || ((text.starts_with("NUM_") || text.starts_with("N_") || text.starts_with("SIZE_") ||
                                      contains(text, {"WIDTH", "HEIGHT", "LENGTH"})) &&
                                     !contains(text, {"TILE", "BLOCK", "PER_", "THREAD"}));
  }

  /// True if the kernel computes positions from blocks of this size.
  bool is_block(const std::string& name) const {
    const std::vector<std::string> shared = use_.shared_memory_dimensions();
    return std::find(shared.begin(), shared.end(), name) != shared.end() || use_.position(0).block == name ||
           use_.position(1).block == name;
  }

  /// True for "get_global_id(1) * ROWS": the work of a thread.
  bool is_factor(const std::string& name) const {
    return use_.position(0).factor == name || use_.position(1).factor == name || use_.position(2).factor == name;
  }

  static bool is_work(const std::string& text) {
    return contains(text, {"PER_", "WORK", "COARSEN", "ITEMS", "STEPS", "FACTOR"});
  }

  void undefined_parameters() {
    const bool host = language_.kind == Kind::host;
    for (const draft::UndefinedName& name : undefined_) {
      const std::string text = upper(name.name);
      const bool added = std::any_of(parameters_.begin(), parameters_.end(),
                                     [&](const auto& parameter) { return parameter.first == name.name; });
      if (added) continue;
      const auto propose = [&](const char* values, const char* what) {
        parameters_.emplace_back(
            name.name, values + check(std::string("a macro that the source leaves open; ") + what, name.name));
      };
      if (name.in_ifdef) {
        const std::string option = name.name + "_OPTION";
        parameters_.emplace_back(option, fmt::format("[\"-DNO_{0}\", \"-D{0}\"]", name.name) +
                                             check("the source only asks whether the macro is defined", option));
        flags_.push_back(option);
      } else if (name.as_type) {
        propose("[\"float\"]", "a type");
      } else if (name.as_schedule) {
        propose("[\"static\", \"dynamic\", \"guided\"]", "how a loop is divided");
      } else if (name.in_condition) {
        propose("[0, 1]", "a condition");
      } else if (name.as_unroll || contains(text, {"UNROLL"})) {
        propose("[1, 2, 4, 8]", "an unroll factor");
      } else if (contains(text, {"PAD"})) {
        propose("[0, 1]", "elements of padding");
      } else if (contains(text, {"VEC"})) {
        propose("[1, 2, 4]", "the width of a vector");
      } else if (factors_.contains(name.name) || is_work(text)) {
        propose("[1, 2, 4, 8]", "work for each thread");
      } else if (host && contains(text, {"THREAD"})) {
        propose("[1, 2, 4, 8]", "threads");
      } else if (contains(text, {"CHUNK"})) {
        propose("{ values = [1, 4, 16, 64], default = 16 }", "a chunk");
      } else if (text.size() == 2 && text[0] == 'B' && contains(text, {"M", "N", "K"})) {  // matrix tiles
        propose("[16, 32, 64, 128]", "the size of a tile");
      } else if (contains(text, {"BLOCK", "TILE", "SIZE", "DIM", "THREADS", "GROUP"})) {
        if (host)
          propose("{ values = [8, 16, 32, 64, 128], default = 32 }", "the size of a block");
        else
          propose("{ values = [4, 8, 16, 32], default = 16 }", "the size of a block or a tile");
      } else {
        propose("[1, 2, 4]", "the values worth trying");
      }
    }
  }

  /// Returns the constant for a size of the source; the name itself if it is a macro.
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

  /// Returns the first size in a text such as "nx - 1" or "std::min(n, i + TILE)"; empty if there is none.
  std::string size_in(const std::string& text) const {
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      while (end < text.size() && kernel_source::in_identifier(text[end])) ++end;
      const std::string word = text.substr(at, end - at);
      for (const auto& [source, constant] : sizes_)
        if (source == word) return constant;
      at = std::max(end, at + 1);
    }
    return {};
  }

  std::string bound(const std::string& variable, int depth = 0) const {
    for (const std::string& text : use_.bounds_of(variable)) {
      if (const std::string found = size_in(text); !found.empty()) return found;
      if (const std::string plain(trimmed(text)); fixed_.contains(plain)) return value_in_expressions(plain);
      // t < tiles, where tiles = n / TILE
      if (const std::string value = use_.value_of(std::string(trimmed(text))); !value.empty() && value != text)
        if (const std::string found = size_in(value); !found.empty()) return found;
    }
    if (depth > 2) return {};
    for (const std::string& other : use_.set_from(variable))
      if (const std::string found = bound(other, depth + 1); !found.empty()) return found;
    return {};
  }

  /// Returns the number of elements that an index reaches as an expression; empty if the body does not show it.
  std::string extent_of(const std::string& index, int depth = 0) const {
    if (depth > 6 || index.size() > 300) return {};
    static const std::regex kCast("\\((?:unsigned|int|long|size_t|uint|ulong|u?int[0-9]+_t| )+\\)");
    const std::string plain = without_parentheses(std::regex_replace(index, kCast, ""));
    if (plain.empty()) return {};
    if (const auto number = whole_number(plain)) return std::to_string(*number + 1);
    if (const auto d = draft::KernelUse::block_dimension(plain))
      return static_cast<std::size_t>(*d) < reach_.size() ? reach_[static_cast<std::size_t>(*d)] : std::string();
    const std::vector<std::string> terms = draft::parts_of(plain, "+-");
    const bool name = std::all_of(plain.begin(), plain.end(), kernel_source::in_identifier);
    if (name || (terms.size() > 1 && plain.find('*') == std::string::npos)) {
      for (const std::string& text : use_.bounds_of(plain))
        if (const std::string found = size_in(text); !found.empty()) return found;
    }
    if (const auto d = draft::KernelUse::thread_dimension(plain);
        d && static_cast<std::size_t>(*d) < reach_.size() && !strides_by_size(plain))
      return reach_[static_cast<std::size_t>(*d)];
    if (name) {
      if (const std::string found = bound(plain, 2); !found.empty()) return found;
      if (const auto blocks = blocks_.find(plain); blocks != blocks_.end()) return blocks->second;
      if (const std::string stride = size_named(use_.stride_before(plain)); !stride.empty()) return stride;
      const std::string value = use_.value_of(plain);
      if (value != plain)
        if (const std::string found = extent_of(value, depth + 1); !found.empty()) return found;
      return bound(plain);
    }
    for (const std::string& term : terms) {
      const std::vector<std::string> factors = draft::parts_of(term, "*");
      if (factors.size() < 2) continue;
      std::string product, open;
      for (const std::string& factor : factors) {
        const std::string size = size_named(factor);
        const auto number = whole_number(factor);
        if (size.empty() && !number && tunable_.contains(factor)) continue;  // a tile size
        if (size.empty() && !number) {
          if (!open.empty()) return {};
          open = factor;
        } else {
          product += " * " + (number ? std::to_string(*number) : size);
        }
      }
      const std::string rows = open.empty() ? std::string("1") : extent_of(open, depth + 1);
      if (rows.empty()) return {};
      return rows == "1" && product.size() > 3 ? product.substr(3) : rows + product;
    }
    if (terms.size() > 1)
      for (const std::string& term : terms)
        if (!whole_number(term))
          if (const std::string found = extent_of(term, depth + 1); !found.empty()) return found;
    return {};
  }

  /// True for "blockIdx.x * n + threadIdx.x": each block works on a row.
  bool strides_by_size(const std::string& expression) const {
    for (const std::string& term : draft::parts_of(expression, "+-"))
      for (const std::string& factor : draft::parts_of(term, "*"))
        for (const auto& [source, constant] : sizes_)
          if (factor == source) return true;
    return false;
  }

  static std::string without_parentheses(const std::string& text) {
    std::string plain(trimmed(text));
    while (plain.starts_with('(') && plain.ends_with(')')) {
      int open = 0;
      for (std::size_t at = 0; at + 1 < plain.size(); ++at) {
        open += plain[at] == '(' ? 1 : plain[at] == ')' ? -1 : 0;
        if (open == 0) return plain;
      }
      plain = trimmed(plain.substr(1, plain.size() - 2));
    }
    return plain;
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
      ask(fmt::format("{}: the type \"{}\" is not known and float32 was assumed; \"fields\" describes a structure",
                      parameter.name, type));
    }
    const bool local = contains(parameter.type, {"__local", "local "});
    const auto line = [&](const std::string& rest, const std::string& mark) {
      return fmt::format("  {{ name = \"{}\", type = \"{}\", {} }},{}\n", parameter.name, kind, rest, mark);
    };
    if (!parameter.pointer) {
      const std::string constant = size_named(parameter.name);
      const auto scalar = scalars_.find(parameter.name);
      if (!constant.empty()) return line(fmt::format("value = \"{}\"", constant), "");
      if (scalar != scalars_.end()) return line(fmt::format("value = \"{}\"", scalar->second), "");
      if (const std::string launched = launched_number(parameter.name); !launched.empty())
        return line("value = " + launched, "  # as in the source");
      return line("value = 1.0", check("the value that the application passes", parameter.name));
    }
    const draft::BufferUse use = use_.use_of(parameter.name);
    if (local) {
      const auto is_work_item = [&](const std::string& index) {
        std::string plain = without_parentheses(index);
        if (const std::string value = use_.value_of(plain); !value.empty()) plain = without_parentheses(value);
        return plain == "0" || plain == "get_local_id(0)";
      };
      const bool shown = dimensions_ == 1 && !use.indices.empty() && std::ranges::all_of(use.indices, is_work_item);
      return line(element && element->width > 1
                      ? fmt::format("local_count = \"{} * ({})\"", element->width, block_threads_)
                      : fmt::format("local_count = \"{}\"", block_threads_),
                  shown ? "" : check("local memory for one element for each work item of a block", parameter.name));
    }
    std::string count;
    bool by_block = !use.indices.empty();
    for (const std::string& index : use.indices) {
      const std::string extent = extent_of(index);
      if (std::count(extent.begin(), extent.end(), '*') > std::count(count.begin(), count.end(), '*') || count.empty())
        count = extent;
      const auto block = draft::KernelUse::block_dimension(without_parentheses(index));
      by_block = by_block && block && !of_block_.contains(*block);
    }
    std::string guesses;
    if (count.empty() || (use.indices.empty() && use.passed_on)) {
      count = product_of_sizes(std::min<std::size_t>(sizes_.size() > 1 ? 2 : 1, sizes_.size())) +
              (sizes_.size() == 1 && (dimensions_ > 1 || two_dimensional()) ? " * " + size(0) : "");
      guesses = "the source does not show the number of elements";
    }
    if (element && element->width > 1) count = fmt::format("{} * ({})", element->width, count);
    const bool read_only = parameter.constant || (use.read && !use.written) || contains(parameter.type, {"constant"});
    const char* access = read_only ? "" : use.read ? ", access = \"read_write\"" : ", access = \"write\"";
    if (!read_only && use.read)
      guesses += (guesses.empty() ? "" : "; ") + std::string("read and written: add fill if it must begin with zeros");
    if (!read_only && by_block) {
      sums_.push_back(parameter.name);
      guesses += guesses.empty() ? "one element for each block" : "; one element for each block";
    }
    return line(fmt::format("count = \"{}\"{}", count, access), guesses.empty() ? "" : check(guesses, parameter.name));
  }

  /// Returns the name of a block size: in capitals, or in Kernel Tuner's spelling if the source uses that.
  std::string block_name(int dimension) const {
    const std::string small = fmt::format("block_size_{}", "xyz"[dimension]);
    for (const char axis : {'x', 'y', 'z'})
      if (used_.contains(fmt::format("block_size_{}", axis))) return small;
    return used_.contains(upper(small)) && !tunable_.contains(upper(small)) ? small : upper(small);
  }

  /// Whether the source holds the position in a variable that is the number of the thread and nothing else.
  bool is_thread_number(const draft::Position& position, int dimension) const {
    if (position.variable.empty()) return false;
    std::smatch found;
    if (!std::regex_search(kernel_.body, found, std::regex("\\b" + position.variable + "\\s*=\\s*([^;,]+)")))
      return false;
    static const std::regex kAround(
        R"(static_cast<[^>]*>|\(\s*(?:un)?signed\s*\)|\(\s*(?:unsigned\s+)?(?:u?int(?:32_t|64_t)?|long|size_t)\s*\)|[\s()])");
    const std::string text = std::regex_replace(found[1].str(), kAround, "");
    const char axis = "xyz"[dimension];
    if (text == fmt::format("get_global_id{}", dimension)) return true;
    const std::string group = fmt::format("get_group_id{}", dimension),
                      local = fmt::format("get_local_id{}", dimension);
    const std::string block = fmt::format("blockIdx.{}", axis), thread = fmt::format("threadIdx.{}", axis);
    for (const std::string& size :
         {fmt::format("blockDim.{}", axis), fmt::format("get_local_size{}", dimension), position.block})
      for (const auto& [outer, inner] : {std::pair(block, thread), std::pair(group, local)})
        for (const std::string& product : {outer + "*" + size, size + "*" + outer})
          if (text == product + "+" + inner || text == inner + "+" + product) return true;
    return false;
  }

  /// True for the 2 of "block.y * 2": the work of each thread.
  bool multiplies_block(const std::string& text, std::size_t begin, std::size_t end) const {
    const std::string before(trimmed(std::string_view(text).substr(0, begin)));
    const std::string after(trimmed(std::string_view(text).substr(end)));
    const std::string_view factor = trimmed(std::string_view(before).substr(0, before.size() - before.ends_with('*')));
    const std::size_t axis = factor.size() > 2 && factor[factor.size() - 2] == '.' ? 2 : 0;
    return (before.ends_with('*') && factor.substr(0, factor.size() - axis).ends_with(launch_.block_variable)) ||
           (after.starts_with('*') && trimmed(std::string_view(after).substr(1)).starts_with(launch_.block_variable));
  }

  /// Replaces sizeof(float) by 4; unknown types remain.
  std::string with_sizes_of_types(const std::string& expression) const {
    static const std::regex kSizeof("sizeof\\s*\\(([A-Za-z_0-9 ]{1,60})\\)");
    std::string result;
    std::smatch match;
    std::string rest = one_blank(expression);
    while (std::regex_search(rest, match, kSizeof)) {
      std::string type(trimmed(match[1].str()));
      if (const auto known = types_.find(type); known != types_.end()) type = known->second;
      const auto element = element_of(type);
      result += match.prefix().str();
      result += element
                    ? std::to_string(size_of(*element_type(element->type)) * static_cast<std::size_t>(element->width))
                    : match[0].str();
      rest = match.suffix().str();
    }
    return result + rest;
  }

  /// Returns an expression of the launch in terms of the problem: arguments of the launch become their constants, the
  /// launch's block becomes `blocks`, numbers that are template arguments their parameters, others their values;
  /// nullopt if it has something else. `mark`: which numbers were taken for a parameter.
  std::optional<std::string> in_terms_of_problem(const std::string& expression,
                                                 const std::vector<std::string>& blocks = {},
                                                 std::string* mark = nullptr) const {
    static const std::regex kCast("\\((?:unsigned|int|long|size_t|uint|u?int[0-9]+_t| )+\\)");
    const std::string text = std::regex_replace(with_sizes_of_types(expression), kCast, "");
    const auto parameters = kernel_source::parameters_of(kernel_.parameters, true);
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      while (end < text.size() && kernel_source::in_identifier(text[end])) ++end;
      if (end == at) {
        if (std::string_view("+-*/() ").find(text[at]) == std::string_view::npos) return std::nullopt;
        result += text[at] == '/' ? "//" : std::string(1, text[at]);
        ++at;
        continue;
      }
      const std::string word = text.substr(at, end - at);
      std::string found;
      if (!blocks.empty() && word == launch_.block_variable) {
        const std::size_t axis = text.compare(end, 1, ".") == 0 ? std::string_view("xyz").find(text[end + 1]) : 0;
        if (axis >= blocks.size()) return std::nullopt;
        if (text[end] == '.') end += 2;
        found = blocks[axis];
      }
      if (const auto launched = launched_values_.find(word);
          mark && launched != launched_values_.end() && multiplies_block(text, at, end)) {
        found = launched->second;
        *mark = fmt::format("the launch's {} was taken for {}", word, found);
      }
      for (std::size_t i = 0; i < std::min(parameters.size(), launch_.arguments.size()); ++i)
        if (launch_.arguments[i] == word && !parameters[i].pointer) {
          found = size_named(parameters[i].name);
          if (const auto scalar = scalars_.find(parameters[i].name); scalar != scalars_.end()) found = scalar->second;
        }
      if (found.empty() && tunable_.contains(word)) found = value_in_expressions(word);
      if (found.empty())
        if (const auto value = draft::source_value(source_, word, launch_.at)) found = std::to_string(*value);
      if (found.empty()) return std::nullopt;
      result += found;
      at = end;
    }
    return result;
  }

  /// Returns one dimension of the launch's grid, in terms of `blocks` where it divides by the launch's block; nullopt
  /// unless it covers the same with any of their values.
  std::optional<std::string> launched_grid(std::size_t dimension, const std::vector<std::string>& blocks,
                                           std::vector<std::string>& restrictions) const {
    const std::vector<std::string> quotient = draft::parts_of(without_parentheses(launch_.grid[dimension]), "/");
    const bool of_block = of_block_.contains(static_cast<int>(dimension));
    if (quotient.size() == 1 && quotient.front() == "1" &&
        !contains(kernel_.body, {fmt::format("blockIdx.{}", "xyz"[dimension]).c_str(),
                                 fmt::format("get_group_id({})", dimension).c_str(),
                                 fmt::format("get_global_id({})", dimension).c_str()}))
      return "1";  // of this dimension the body uses positions within a block only
    if (quotient.size() == 1 && !of_block && contains(kernel_.body, {"blockDim", "get_local_size", "get_global_id"}))
      return std::nullopt;
    if (quotient.size() == 1) return in_terms_of_problem(quotient.front());
    if (of_block || quotient.size() > 2 || draft::parts_of(quotient[0], "+-").size() > 1 ||
        draft::parts_of(quotient[1], "+-*").size() > 1)
      return std::nullopt;
    const auto value_of = [&](const std::string& text) {
      for (std::size_t d = 0; d < launch_.block.size(); ++d)
        if (text == fmt::format("{}.{}", launch_.block_variable, "xyz"[d]))
          return draft::source_value(source_, launch_.block[d], launch_.at);
      return draft::source_value(source_, text, launch_.at);
    };
    const auto divisor = value_of(quotient[1]);
    std::optional<std::size_t> of;  // the dimension of the block that it divides by
    int equal = 0;
    for (std::size_t d = 0; d < launch_.block.size(); ++d) {
      const bool named = quotient[1] == fmt::format("{}.{}", launch_.block_variable, "xyz"[d]) ||
                         (!whole_number(quotient[1]) && quotient[1] == launch_.block[d]);
      if (!named && (!divisor || draft::source_value(source_, launch_.block[d], launch_.at) != divisor)) continue;
      if (named || d == dimension || !of) of = d;
      equal += named ? 100 : 1;
      if (named) break;
    }
    if (!of || (equal > 1 && equal < 100 && *of != dimension)) return std::nullopt;
    if (!whole_number(blocks[*of]) && !kernel_source::identifiers_in(kernel_.body).contains(blocks[*of]) &&
        !contains(kernel_.body,
                  {fmt::format("blockDim.{}", "xyz"[*of]).c_str(), fmt::format("get_local_size({})", *of).c_str(),
                   fmt::format("get_global_id({})", *of).c_str()}))
      return std::nullopt;  // the body holds the number
    const std::string size = without_parentheses(quotient[0]), &block = blocks[*of];
    std::smatch found;
    static const std::regex kUp(R"((.*)\+\s*([\w.]+)\s*-\s*1)"), kUpNumber(R"((.*)\+\s*(\d+))");
    const bool up =
        std::regex_match(size, found, kUp) && (found[2] == quotient[1] || (divisor && value_of(found[2]) == divisor));
    if (up || (std::regex_match(size, found, kUpNumber) && divisor && whole_number(found[2]) == *divisor - 1)) {
      const auto whole = in_terms_of_problem(std::string(trimmed(found[1].str())));
      return whole ? std::optional(fmt::format("({0} + {1} - 1) // {1}", *whole, block)) : std::nullopt;
    }
    auto whole = in_terms_of_problem(size);
    if (!whole) return std::nullopt;
    if (!std::all_of(whole->begin(), whole->end(), kernel_source::in_identifier)) whole = "(" + *whole + ")";
    restrictions.push_back(fmt::format("{} % {} == 0", *whole, block));  // the launch divides without a rest
    return fmt::format("{} // {}", *whole, block);
  }

  /// Whether an expression of the launch names its block, so that it holds for other blocks.
  bool names_block(const std::string& expression) const {
    return !whole_number(launch_.block_variable) &&
           !draft::ends_of(expression, launch_.block_variable, expression.size()).empty();
  }

  std::string shared_memory(const std::vector<std::string>& blocks) {
    std::string mark;
    if (names_block(launch_.shared_memory_bytes))
      if (const auto bytes = in_terms_of_problem(launch_.shared_memory_bytes, blocks, &mark))
        return fmt::format("shared_memory_bytes = \"{}\"{}\n", *bytes,
                           mark.empty() ? "  # as the launch in " + launch_file() : check(mark, "shared_memory_bytes"));
    return fmt::format("shared_memory_bytes = \"4 * {}\"{}\n", block_threads_,
                       check("four bytes for each thread of a block", "shared_memory_bytes"));
  }

  /// Whether the launch in the source divides by the block without rounding up.
  bool launches_whole_blocks(std::size_t dimension) const {
    if (dimension >= launch_.grid.size()) return false;
    const auto quotient = draft::parts_of(without_parentheses(launch_.grid[dimension]), "/");
    return quotient.size() == 2 && quotient.front().find('+') == std::string::npos;
  }

  /// Takes the value of a size that no argument passes from the launch in the source.
  void take_size(std::size_t dimension, const std::string& reach, bool of_block) {
    if (dimension >= launch_.grid.size()) return;
    const auto size = std::ranges::find(sizes_, reach, &std::pair<std::string, std::string>::second);
    const auto parameters = kernel_source::parameters_of(kernel_.parameters, true);
    if (size == sizes_.end() || given_.contains(size->first) ||
        std::ranges::find(parameters, size->first, &kernel_source::Parameter::name) != parameters.end())
      return;
    std::string covered = without_parentheses(launch_.grid[dimension]);
    if (!of_block) covered = draft::parts_of(without_parentheses(draft::parts_of(covered, "/").front()), "+").front();
    if (const auto value = draft::source_value(source_, covered, launch_.at).value_or(0); value > 0)
      given_[size->first] = value;
  }

  std::string launch_file() const { return host_.empty() ? "this file" : host_.filename().string(); }

  /// Returns "16", "8", "1" of __attribute__((reqd_work_group_size(16, 8, 1))); none if the kernel has no such
  /// attribute.
  std::vector<std::string> required_block() {
    const std::size_t at = kernel_.head.find("reqd_work_group_size");
    const std::size_t open = at == std::string::npos ? at : kernel_.head.find('(', at);
    if (open == std::string::npos) return {};
    std::vector<std::string> block = draft::list_at(kernel_.head, open, ')');
    std::vector<std::string> names;
    for (std::size_t d = 0; d < block.size() && d < 3; ++d)
      names.push_back(block[d] == "1" ? "1" : block_name(static_cast<int>(d)));
    if (std::ranges::all_of(block, [](const std::string& size) { return whole_number(size).has_value(); }))
      ask(
          fmt::format("{}:{}: reqd_work_group_size fixes the block at {}. To tune it, write "
                      "reqd_work_group_size({}) there, and run init again",
                      file_.string(), kernel_.line, fmt::join(block, " x "), fmt::join(names, ", ")));
    return block;
  }

  std::string geometry() {
    const std::vector<std::string> required = required_block();
    dimensions_ = use_.dimensions();
    for (std::size_t d = 0; d < std::min<std::size_t>(required.size(), 3); ++d)
      if (required[d] != "1") dimensions_ = std::max(dimensions_, static_cast<int>(d) + 1);
    const std::vector<std::string> shared = use_.shared_memory_dimensions();
    const auto known = [&](const std::string& name) {
      return tunable_.contains(name) || fixed_.contains(name) || whole_number(name);
    };
    std::vector<std::string> blocks, items, grid, free;
    bool by_block = false, guessed = false, certain = true;
    std::string loops;
    reach_.assign(static_cast<std::size_t>(dimensions_), "");
    for (int d = 0; d < dimensions_; ++d) {
      draft::Position position = use_.position(d);
      certain = certain && is_thread_number(position, d);
      const auto dimension = static_cast<std::size_t>(d);
      if (!position.block.empty() && !known(position.block)) {
        // blockIdx.x * columns: each block works on a row
        for (const auto& [source, constant] : sizes_)
          if (source == position.block) position.of_block = true;
        position.block = position.loops ? position.threads : std::string();
        position.loops = false;
      }
      const std::string loop_tile = position.loops ? value_in_expressions(position.block) : std::string();
      std::string block = position.loops ? position.threads : position.block;
      if (block.empty() && !position.loops && dimension < shared.size() && known(shared[shared.size() - 1 - dimension]))
        block = shared[shared.size() - 1 - dimension];
      const bool is_required = dimension < required.size() && known(required[dimension]);
      if (block.empty() && is_required) block = required[dimension];
      if (block.empty()) {
        block = block_name(d);
        if (!tunable_.contains(block)) free.push_back(block);
      }
      const std::string tile = value_in_expressions(block), covered = loop_tile.empty() ? tile : loop_tile;
      if (!loop_tile.empty()) {
        blocks.push_back(tile);
        loops += (loops.empty() ? "" : ", ") + loop_tile;
      } else if (known(position.threads) && position.threads != block) {
        blocks.push_back(value_in_expressions(position.threads));
        tiles_[position.threads] = block;
      } else {
        blocks.push_back(tile);
      }
      if (is_required) blocks.back() = value_in_expressions(required[dimension]);
      // one block per row, with an unknown number of rows
      if (position.of_block) {
        of_block_.insert(d);
        reach_[dimension] = position.variable.empty() ? std::string() : bound(position.variable);
        if (reach_[dimension].empty() && !unbound_.empty()) {
          reach_[dimension] = unbound_.front();
          unbound_.erase(unbound_.begin());
        }
        if (reach_[dimension].empty() && dimension + 1 == static_cast<std::size_t>(dimensions_) && use_.thread_loop(d))
          reach_[dimension] = add_size(position.variable.empty() ? "rows" : position.variable + "s");
        if (!position.variable.empty() && !reach_[dimension].empty()) blocks_[position.variable] = reach_[dimension];
      }
      std::string reach = reach_[dimension];
      if (reach.empty() && !position.variable.empty()) reach = bound(position.variable);
      if (reach.empty() && !position.variable.empty()) reach = size_named(use_.stride_before(position.variable));
      if (reach.empty() || reach.find('*') != std::string::npos) {
        guessed = guessed || sizes_.size() > 1;
        reach = unbound_.empty() ? size(dimension) : unbound_.front();
      }
      reach_[dimension] = reach;
      if (!position.variable.empty() && position.of_block) blocks_[position.variable] = reach;
      if (position.factor.empty()) take_size(dimension, reach, position.of_block);
      if (!position.factor.empty() && position.factor != "1" &&
          (known(position.factor) || whole_number(position.factor))) {
        factors_.insert(position.factor);
        reach = fmt::format("({0} + {1} - 1) // {1}", reach, value_in_expressions(position.factor));
      }
      if (!position.variable.empty() && bound(position.variable).empty() && launches_whole_blocks(dimension))
        restrictions_.push_back(fmt::format(  // nothing keeps threads from going beyond
            "{} % {} == 0", reach_[dimension],
            reach == reach_[dimension] ? covered
                                       : fmt::format("({} * {})", covered, value_in_expressions(position.factor))));
      by_block = by_block || position.of_block || covered != blocks.back();
      items.push_back(reach);
      grid.push_back(position.of_block ? reach : fmt::format("({0} + {1} - 1) // {1}", reach, covered));
    }
    block_parameters(blocks, free);
    block_threads_ = fmt::format("{}", fmt::join(blocks, " * "));
    if (const auto threads = draft::source_value("", block_threads_)) block_threads_ = std::to_string(*threads);
    std::string shared_bytes;
    if (kernel_.body.find("extern __shared__") != std::string::npos) shared_bytes = shared_memory(blocks);
    if (std::any_of(blocks.begin(), blocks.end(), [](const auto& block) { return !whole_number(block); }))
      restrictions_.push_back(block_threads_ + " <= device.max_threads_per_block");
    for (const auto& [threads, tile] : tiles_)
      restrictions_.push_back(value_in_expressions(tile) + " % " + value_in_expressions(threads) + " == 0");
    const auto quoted = [](const std::vector<std::string>& list) {
      return fmt::format("[\"{}\"]", fmt::join(list, "\", \""));
    };
    // what the body does not show, the launch of this file may
    bool launched = (by_block || guessed || !certain) && loops.empty() && factors_.empty() && tiles_.empty() &&
                    !launch_.grid.empty() && !launch_.block.empty() && launch_.block.size() == blocks.size() &&
                    launch_.grid.size() <= blocks.size();
    std::string taken;
    if (launched) {
      std::vector<std::string> given, restrictions;
      for (std::size_t d = 0; d < launch_.grid.size() && launched; ++d) {
        auto one = launched_grid(d, blocks, restrictions);
        if (!one && names_block(launch_.grid[d])) one = in_terms_of_problem(launch_.grid[d], blocks, &taken);
        const auto size = std::ranges::find(sizes_, reach_[d], &std::pair<std::string, std::string>::second);
        if (one && size != sizes_.end() && given_.contains(size->first) && whole_number(*one) == given_.at(size->first))
          one = reach_[d];
        if (one) given.push_back(*one);
        launched = one.has_value();
      }
      if (launched) {
        grid = std::move(given);
        by_block = true;
        restrictions_.insert(restrictions_.end(), restrictions.begin(), restrictions.end());
      }
    }
    const std::string mark =
        (by_block || guessed || !certain) && !launched
            ? check(fmt::format("what the launch covers; compare it and block with {}",
                                launch_.at == std::string::npos ? "the application's launch"
                                                                : "the launch in " + launch_file()),
                    by_block ? "grid" : "global")
            : "";
    return fmt::format("[kernel.launch]\n{}{}\nblock = {}{}\n{}\n",
                       by_block ? fmt::format("grid = {}", quoted(grid)) : fmt::format("global = {}", quoted(items)),
                       !taken.empty() ? check(taken, "grid")
                       : launched     ? fmt::format("  # blocks, as the launch in {}", launch_file())
                       : mark.empty() ? "  # threads, rounded up to whole blocks"
                                      : mark,
                       quoted(blocks),
                       loops.empty() ? "" : check("threads that loop over the work of a block, " + loops, "block"),
                       shared_bytes);
  }

  /// Adds the block sizes; the default is a block of 256 threads.
  void block_parameters(const std::vector<std::string>& blocks, const std::vector<std::string>& free) {
    const bool square = blocks.size() > 1 && std::set<std::string>(blocks.begin(), blocks.end()).size() < blocks.size();
    for (std::size_t d = 0; d < blocks.size(); ++d) {
      const std::string& name = blocks[d];
      const bool open =
          std::any_of(undefined_.begin(), undefined_.end(), [&](const auto& u) { return u.name == name; });
      if ((!open && std::find(free.begin(), free.end(), name) == free.end()) || in_parameters(name)) continue;
      std::string values = blocks.size() == 1   ? "{ values = [32, 64, 128, 256, 512, 1024], default = 256 }"
                           : square             ? "{ values = [4, 8, 16, 32], default = 16 }"
                           : d == 0             ? "{ values = [8, 16, 32, 64, 128], default = 16 }"
                           : blocks.size() == 2 ? "{ values = [1, 2, 4, 8, 16], default = 16 }"
                                                : "{ values = [1, 2, 4, 8, 16], default = 4 }";
      if (tiles_.contains(name)) values = "{ values = [1, 2, 4, 8, 16], default = 8 }";
      if (tiles_.size() == 1 && tiles_.begin()->second == name) values = "{ values = [16, 32, 64], default = 32 }";
      if (const auto launched =
              d < launch_.block.size() ? draft::source_value(source_, launch_.block[d]) : std::nullopt;
          launched && !tiles_.contains(name)) {
        std::set<long> list{*launched};
        for (long size = d == 0 ? 8 : 1; size <= (blocks.size() == 1 ? 1024 : d == 0 ? 128 : 16); size *= 2)
          list.insert(size);
        values = fmt::format("{{ values = [{}], default = {} }}", fmt::join(list, ", "), *launched);
      }
      if (open) values += check("a macro that the source leaves open; threads of a block", name);
      add_parameter(name, values);
    }
  }

  bool in_parameters(const std::string& name) const {
    return std::any_of(parameters_.begin(), parameters_.end(),
                       [&](const auto& parameter) { return parameter.first == name; });
  }

  /// Returns [kernel.options]: options of the host compiler, and macros that are only tested in conditions.
  std::string options() const {
    std::vector<std::string> options;
    if (language_.kind == Kind::host) {
      options = {"{{OPTIMISE}}", "-march=native"};
      if (kernel_source::blank_comments(text_).find("pragma omp") != std::string::npos)
        options.emplace_back("-fopenmp");
    }
    for (const std::string& flag : flags_) options.push_back("{{" + flag + "}}");
    if (options.empty()) return {};
    return fmt::format("[kernel.options]\n{} = [\"{}\"]\n\n", language_.key, fmt::join(options, "\", \""));
  }

  std::string verification() {
    std::string text =
        "# Every configuration's outputs are compared with those of the first one. Better: name a reference in\n"
        "# [verification.kernel] or [verification.host_function] (the page \"Measuring\", verification).\n";
    if (sums_.empty()) return text;
    text += "[verification]\ncompare = {";
    for (std::size_t i = 0; i < sums_.size(); ++i) text += fmt::format("{} {} = \"sum\"", i == 0 ? "" : ",", sums_[i]);
    return text + " }" + check("each block has a result of its own: their sums are compared", "compare") + "\n";
  }

  /// Sets usual sizes: large enough to occupy a GPU, small enough that a first run takes seconds.
  void set_sizes() {
    const bool plane = dimensions_ == 2 || sizes_.size() > 1 || two_dimensional();
    const bool opencl = std::string(language_.key) == "opencl";  // may be a CPU
    const bool long_loops = std::any_of(sizes_.begin(), sizes_.end(), [&](const auto& size) {
      const auto counters = use_.loop_counters();
      return std::any_of(counters.begin(), counters.end(),
                         [&](const std::string& counter) { return bound(counter, 2) == size.second; });
    });
    const long value = language_.kind == Kind::host ? (plane ? 512 : 1048576)
                       : dimensions_ == 3           ? 128
                       : plane                      ? (opencl && long_loops ? 256 : 1024)
                       : long_loops                 ? 16384
                                                    : 4194304;
    const auto parameters = kernel_source::parameters_of(kernel_.parameters, true);
    for (std::size_t i = 0; i < std::min(parameters.size(), launch_.arguments.size()); ++i)
      if (const auto launched = draft::source_value(source_, launch_.arguments[i], launch_.at);
          launched.value_or(0) > 0)
        given_[parameters[i].name] = *launched;
    for (const auto& [name, constant] : sizes_)
      constants_.emplace_back(constant,
                              given_.contains(name)
                                  ? fmt::format("{}  # as in the source", given_.at(name))
                                  : std::to_string(value) + check("the size that the application uses", constant));
  }

  bool two_dimensional() const {
    return kernel_.body.find(" * " + (sizes_.empty() ? std::string("?") : sizes_.front().first)) != std::string::npos;
  }

  std::string head() const {
    std::string text = fmt::format(
        "#:schema problem.schema.json\n"
        "# A first problem file for {}, written by \"ergotune init\"; each CHECK marks a guess.\n"
        "# Editors complete it after: ergotune schema > problem.schema.json\n"
        "name = \"{}\"\n"
        "objective = \"time\"  # \"energy\" where the device has a sensor: see \"ergotune devices\"\n",
        kernel_.name, kernel_.name);
    if (!restrictions_.empty()) text += fmt::format("restrictions = [\"{}\"]\n", fmt::join(restrictions_, "\", \""));
    return text + remarks_ + "\n";
  }

  static std::string table(const char* name, const Lines& lines) {
    if (lines.empty()) return {};
    std::string text = fmt::format("[{}]\n", name);
    for (const auto& [key, value] : lines) text += fmt::format("{} = {}\n", key, value);
    return text + "\n";
  }

  const std::filesystem::path file_, folder_;
  const std::vector<std::filesystem::path> include_folders_;
  const std::filesystem::path host_;
  const SourceLanguage language_;
  const std::string source_;  ///< all of it, with code for the host and the host program
  const std::string text_;    ///< what the run-time compiler reads
  const Outline outline_;
  const Function& kernel_;
  const draft::SourceLaunch launch_;
  const draft::KernelUse use_;
  const kernel_source::Identifiers used_;

  std::vector<std::pair<std::string, std::string>> sizes_;  ///< name in the source, constant of the problem
  std::map<std::string, std::string> scalars_;              ///< other integer scalars and their constants
  std::map<std::string, std::string> types_;                ///< template parameters that are types
  std::map<std::string, std::string> template_parameters_;  ///< template parameters and their parameters of the problem
  std::map<std::string, std::string> launched_values_;      ///< numbers that the launch passes for template parameters
  std::map<std::string, long> fixed_;                       ///< macros whose value is fixed in the source
  std::map<std::string, std::string> blocks_;  ///< variables that contain a block's index, and the number of blocks
  std::map<std::string, long> given_;          ///< sizes whose values are in the source
  std::set<std::string> tunable_;
  Lines constants_, parameters_;
  std::vector<draft::UndefinedName> undefined_;
  std::vector<std::string> unbound_;          ///< sizes that do not occur in the body
  std::vector<std::string> reach_;            ///< number of elements, or blocks, in each dimension of the launch
  std::set<int> of_block_;                    ///< dimensions in which an element belongs to a block, not to a thread
  std::set<std::string> factors_;             ///< parameters for the work per thread
  std::map<std::string, std::string> tiles_;  ///< threads of a block in a dimension with a larger tile
  std::vector<std::string> flags_;            ///< parameters that become compiler options
  std::vector<std::string> sums_;             ///< outputs with a partial result of each block
  std::vector<std::string> restrictions_;
  std::string block_threads_ = "1", remarks_;
  int dimensions_ = 1;
  std::vector<std::string> questions_;
};

}  // namespace

bool can_draft_from(const std::filesystem::path& source) { return known_language(source) != nullptr; }

ProblemDraft draft_problem(const std::filesystem::path& source, const std::string& function,
                           const std::filesystem::path& folder, const std::filesystem::path& host,
                           const std::vector<std::filesystem::path>& include_folders) {
  return draft_problem_from_text(text_of(source), source, function, folder,
                                 {host, host.empty() ? std::string() : text_of(host)}, include_folders);
}

ProblemDraft draft_problem_from_text(const std::string& text, const std::filesystem::path& source,
                                     const std::string& function, const std::filesystem::path& folder,
                                     const HostProgram& host,
                                     const std::vector<std::filesystem::path>& include_folders) {
  return Draft(text, source, function, folder, host, include_folders).write();
}

}  // namespace ergotune
