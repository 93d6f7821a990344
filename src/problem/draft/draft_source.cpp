#include "problem/draft/draft_source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "problem/draft/opencl_launch.hpp"
#include "problem/draft/source_text.hpp"
#include "problem/draft/structures.hpp"
#include "problem/element_type.hpp"
#include "problem/files/includes.hpp"

namespace ergotune::draft {
namespace {

using kernel_source::Function;

constexpr std::string_view kWholeProgram =
    "a program as a whole, with its arguments, environment and build, is tuned by [program] of a problem file (the "
    "page \"Programs\" of the documentation)";

bool has_no_result(const Function& function) { return kernel_source::identifiers_in(function.head).contains("void"); }

bool is_kernel(const Function& function, const SourceLanguage& language) {
  const auto words = kernel_source::identifiers_in(function.head);
  if (language.for_host) return !words.contains("static") && !function.in_unnamed_namespace && function.name != "main";
  return std::ranges::any_of(language.marks, [&](const auto& mark) { return words.contains(mark); });
}

/// Whether only kernels can call the function.
bool is_device_function(const Function& function, const SourceLanguage& language) {
  return !language.for_host && !is_kernel(function, language) &&
         kernel_source::identifiers_in(function.head).contains("__device__");
}

const Function& kernel_of(const kernel_source::Outline& outline, const SourceLanguage& language,
                          const std::string& wanted, const std::filesystem::path& file,
                          const std::vector<IncludedFile>& headers, const std::string& program) {
  std::vector<const Function*> kernels;
  std::vector<std::string> names;
  // of functions for the CPU those that return nothing write to their arguments, as a kernel does
  const auto is_likely = [&](const Function& function) {
    return is_kernel(function, language) && has_no_result(function);
  };
  const bool void_only = std::ranges::any_of(outline.functions, is_likely);
  const Function* refused = nullptr;
  for (const Function& function : outline.functions) {
    if (is_device_function(function, language)) {
      if (function.name == wanted) refused = &function;
      continue;
    }
    if (!(void_only ? is_likely(function) : is_kernel(function, language)) && function.name != wanted) continue;
    kernels.push_back(&function);
    names.push_back(function.name);
  }
  const auto found = std::ranges::find(names, wanted);
  for (const IncludedFile& header : headers)
    if (const auto functions =
            kernel_source::outline_of(kernel_source::source_with_macro(header.text, language.macro)).functions;
        found == names.end() && (kernels.empty() || !wanted.empty()) &&
        std::ranges::any_of(functions, [&](const Function& function) {
          return is_likely(function) && (wanted.empty() || function.name == wanted);
        }))
      throw UserError(fmt::format(
          "{}: the kernel is in {}, which this file includes: {}", file.string(), header.path.string(),
          known_language(header.path)
              ? "name that file instead"
              : fmt::format("name that file instead, under a name that ends with {}", file.extension().string())));
  if (refused && found == names.end())
    throw UserError(fmt::format(
        "{}:{}: \"{}\" is a __device__ function, which only kernels can call: name a kernel, or write one (__global__) "
        "that calls it",
        file.string(), refused->line, wanted));
  if (!wanted.empty() && found == names.end())
    throw UserError(fmt::format("{} has no kernel \"{}\"{}", file.string(), wanted,
                                names.empty() ? "" : suggestion(wanted, names)));
  if (!wanted.empty()) return *kernels[static_cast<std::size_t>(found - names.begin())];
  if (kernels.empty())
    throw UserError(fmt::format("{} has no {}", file.string(),
                                language.for_host ? fmt::format("function that other files can call; {}", kWholeProgram)
                                                  : fmt::format("function with {}", language.marks.front())));
  if (kernels.size() > 1) {
    const auto words = kernel_source::identifiers_in(program);
    if (std::ranges::count_if(names, [&](const std::string& name) { return words.contains(name); }) == 1)
      return **std::ranges::find_if(kernels, [&](const Function* one) { return words.contains(one->name); });
  }
  if (kernels.size() > 1)
    throw UserError(fmt::format("{} has several kernels ({}): name one, as in \"ergotune init {} --kernel {}\"",
                                file.string(), fmt::join(names, ", "), file.string(), names.front()));
  return *kernels.front();
}

/// Puts the header that has the kernel in place of its #include "..." line where the source itself has no such kernel.
InsertedHeader insert_header_of_kernel(std::string& text, const SourceLanguage& language, const std::string& wanted,
                                       const std::vector<IncludedFile>& headers) {
  const auto has_kernel = [&](const std::string& source) {
    return std::ranges::any_of(kernel_source::outline_of(source).functions, [&](const Function& function) {
      return is_kernel(function, language) && !function.body.empty() && (wanted.empty() || function.name == wanted);
    });
  };
  if (language.for_host || has_kernel(text)) return {};
  static const std::regex kInclude("(^|\n)([ \t]{0,99}#[ \t]{0,99}include[ \t]{0,99}\"([^\"\n]{1,300})\"[^\n]{0,300})");
  for (const IncludedFile& header : headers) {
    const std::string own = kernel_source::source_with_macro(header.text, language.macro);
    if (!has_kernel(own)) continue;
    for (std::sregex_iterator it(text.begin(), text.end(), kInclude), end; it != end; ++it) {
      if ((*it)[3] != header.name) continue;
      const auto begin = static_cast<std::size_t>(it->position(2)), size = static_cast<std::size_t>(it->length(2));
      const auto lines_of = [](std::string_view part) { return static_cast<int>(std::ranges::count(part, '\n')) + 1; };
      const InsertedHeader inserted{header.path, lines_of(std::string_view(text).substr(0, begin)), lines_of(own)};
      text.replace(begin, size, own);
      return inserted;
    }
  }
  return {};
}

/// Returns a number of a source, such as "2.5f", as a problem file writes it; empty for other texts.
std::string literal(std::string text) {
  if (text.ends_with('f')) text.pop_back();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && std::isfinite(value) ? fmt::format("{}", value) : std::string();
}

/// Returns a sum or product of numbers, and of names that are set to such before `end`, with a number for each name, in
/// a text without comments; empty for other expressions, and for quotients of whole numbers, which C++ rounds.
std::string with_numbers(const std::string& text, const std::string& expression, std::size_t end, int depth = 0) {
  constexpr int kDeepest = 3;
  std::string result;
  bool divides = false, whole_before = false;
  const auto add = [&](const std::string& operand) {
    const bool is_whole = whole_number(operand).has_value();
    const bool rounds = divides && whole_before && is_whole;
    result += "(" + operand + ")";
    whole_before = is_whole;
    return !operand.empty() && !rounds;
  };
  for (std::size_t at = 0; at < expression.size() && depth <= kDeepest;) {
    const char c = expression[at];
    const std::size_t name = kernel_source::end_of_identifier(expression, at);
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '.') {
      char* behind = nullptr;
      const double number = std::strtod(&expression[at], &behind);
      const auto end_of_number = static_cast<std::size_t>(behind - expression.data());
      const std::string digits = expression.substr(at, end_of_number - at);
      if (digits.empty() || !add(whole_number(digits) ? digits : fmt::format("{:#}", number))) return {};
      at = end_of_number + (*behind == 'f' ? 1 : 0);
    } else if (name > at) {
      const std::string word = expression.substr(at, name - at);
      const auto whole = source_value(text, word, end);
      const std::string set = definition_of(text, word, end),
                        own = whole ? std::to_string(*whole)
                              : set.empty() || !ends_of(set, word, set.size()).empty()
                                  ? std::string()
                                  : with_numbers(text, without_casts(set), end, depth + 1);
      if (!add(own)) return {};
      at = name;
    } else {
      if (std::string_view("+-*/() ").find(c) == std::string_view::npos) return {};
      divides = c == '/' || (divides && (c == ' ' || c == '('));
      result += c;
      ++at;
      continue;
    }
    divides = false;
  }
  return result;
}

/// Returns a body with the macros that take arguments replaced by what they stand for, as far as texts show it.
std::string with_macros_expanded(std::string body, const std::vector<kernel_source::Macro>& macros) {
  constexpr std::size_t kLongest = 200000;
  for (int level = 0; level < 3; ++level)  // macros in macros
    for (const kernel_source::Macro& macro : macros) {
      const std::size_t close = macro.value.find(')');
      if (!macro.takes_arguments || close == std::string::npos || contains(macro.value, {"#", "..."})) continue;
      const std::vector<std::string> names = list_at(macro.value, 0, ')');
      for (std::size_t at = 0; (at = body.find(macro.name, at)) != std::string::npos && body.size() < kLongest;) {
        const std::size_t behind = at + macro.name.size(), open = next_character(body, behind);
        const bool whole =
            (at == 0 || !kernel_source::in_identifier(body[at - 1])) && open < body.size() && body[open] == '(';
        const std::vector<std::string> given = whole ? list_at(body, open, ')') : names;
        if (!whole || given.size() != names.size()) {
          at = behind;
          continue;
        }
        std::string text;
        for (std::size_t i = close + 1; i < macro.value.size();) {
          const std::size_t end = std::max(kernel_source::end_of_identifier(macro.value, i), i + 1);
          const std::string word = macro.value.substr(i, end - i);
          const auto name = std::ranges::find(names, word);
          text += name == names.end() ? word : given[static_cast<std::size_t>(name - names.begin())];
          i = end;
        }
        std::erase(text, '\\');  // at the end of a line
        int depth = 0;
        std::size_t end = open;
        do depth += body[end] == '(' ? 1 : body[end] == ')' ? -1 : 0;
        while (++end < body.size() && depth > 0);
        text = trimmed(text);
        body.replace(at, end - at, text);
        at += text.size();
      }
    }
  return body;
}

/// Returns the number or name that a text begins with, also of "str(WG)" and "std::to_string(WG)"; empty for others.
std::string operand_at(const std::string& text, std::size_t at) {
  static const std::regex kOperand(
      R"(^\s{0,9}(?:(?:str|(?:std::)?to_string)\s?\(\s?)?([A-Za-z_0-9]{1,60})\s?(?=[+,;)%\]\n"']|$))");
  std::smatch found;
  const std::string near = text.substr(std::min(at, text.size()), 100);
  return std::regex_search(near, found, kOperand) ? found[1].str() : std::string();
}

/// Returns what replaces the placeholder at `at` ("%d", "{}") of a string of a host program; empty if it is not found.
std::string formatted_at(const std::string& host, std::size_t at, bool python) {
  const std::size_t begin = host.find_last_of("\"'\n", at),
                    end = host.find(host[begin == std::string::npos ? 0 : begin], at);
  if (begin == std::string::npos || end == std::string::npos || host[begin] == '\n') return {};
  std::size_t number = 0;
  const char mark = host[at];
  for (std::size_t other = begin; other < at; ++other) number += host[other] == mark;
  std::size_t next = next_character(host, end + 1);
  if (mark == '{') {
    if (host.compare(next, 8, ".format(") != 0) return {};
    next += 7;
  } else if (python) {
    if (host.compare(next, 1, "%") != 0) return {};
    next = next_character(host, next + 1);
    if (host.compare(next, 1, "(") != 0) return number == 0 ? operand_at(host, next) : std::string();
  } else {
    if (host.compare(next, 1, ",") != 0) return {};
    const std::size_t close = std::min(host.find(';', next), host.size());
    const std::vector<std::string> list = parts_of(host.substr(next + 1, close - next - 1), ",)");
    return number < list.size() ? operand_at(list[number], 0) : std::string();
  }
  const std::vector<std::string> list = list_at(host, next, ')');
  return number < list.size() ? operand_at(list[number], 0) : std::string();
}

/// Returns the macros that a host program defines in the options of a build: "-DWG=64", "-DWG=%d" with what is printed
/// in its place, "-DWG=" + str(WG), and "-DWG={WG}" of Python. Their value is empty where it is not found.
std::vector<kernel_source::Macro> macros_of_build(const HostProgram& program) {
  static const std::regex kDefine(R"(-D ?([A-Za-z_]\w{0,60})=(\{?[A-Za-z_0-9]{1,60}(?=\W|$))?)"),
      kAdjacent("\"\\s{0,99}\"");
  const bool python = program.file.extension() == ".py";
  const std::string host = python ? program.text : std::regex_replace(program.text, kAdjacent, "");
  std::vector<kernel_source::Macro> macros;
  for (std::sregex_iterator it(host.begin(), host.end(), kDefine), end; it != end; ++it) {
    std::string value = (*it)[2].str();
    const auto behind = static_cast<std::size_t>(it->position() + it->length());
    if (value.starts_with('{'))
      value = behind < host.size() && contains("}:", {{&host[behind], 1}}) ? value.substr(1) : std::string();
    if (value.empty() && behind < host.size()) {
      if (host[behind] == '%' || host[behind] == '{') value = formatted_at(host, behind, python);
      if (host[behind] == '"' || host[behind] == '\'')
        if (const std::size_t next = next_character(host, behind + 1);
            next < host.size() && (host[next] == '+' || host.compare(next, 2, "<<") == 0))
          value = operand_at(host, next + (host[next] == '+' ? 1 : 2));
    }
    macros.push_back({(*it)[1].str(), value});
  }
  return macros;
}

/// Returns the words of the strings of a host program that hold nothing but options of a build.
std::vector<std::string> words_of_build(const std::string& host) {
  static const std::regex kString(R"re("([^"\n]{2,400})"|'([^'\n]{2,400})')re");
  std::vector<std::string> words;
  for (std::sregex_iterator it(host.begin(), host.end(), kString), end; it != end; ++it) {
    std::vector<std::string> own;
    bool only_options = true;
    for (const std::string& part : split((*it)[(*it)[1].matched ? 1 : 2].str(), ' ')) {
      if (part.empty()) continue;
      const bool value = !own.empty() && (own.back() == "-I" || own.back() == "-D");
      only_options = only_options && (value || part.starts_with('-'));
      own.push_back(part);
    }
    if (only_options) words.insert(words.end(), own.begin(), own.end());
  }
  return words;
}

/// Returns the options among them that a problem keeps; macros and folders are read elsewhere, and what names a device
/// or the compiler's output is left to each device.
std::vector<std::string> options_of_build(const std::vector<std::string>& words) {
  static const std::regex kKept(
      R"(-cl-[a-z0-9-]+(=[A-Za-z0-9.]+)?|--?std=[a-z0-9+]+|-O[0-3]|-f[a-z-]+|--?use_fast_math)");
  std::vector<std::string> options;
  for (const std::string& word : words)
    if (std::regex_match(word, kKept) && std::ranges::find(options, word) == options.end()) options.push_back(word);
  return options;
}

/// Returns the folders of -I that exist, seen from the working directory or from the host program.
std::vector<std::string> folders_of_build(const std::vector<std::string>& words, const std::filesystem::path& host) {
  std::vector<std::string> folders;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("-I")) continue;
    const std::string given = words[i].size() > 2 ? words[i].substr(2) : i + 1 < words.size() ? words[i + 1] : "";
    for (const std::filesystem::path& folder : {host.parent_path() / given, std::filesystem::path(given)}) {
      std::error_code error;
      if (given.empty() || !std::filesystem::is_directory(folder, error)) continue;
      folders.push_back(folder.string());
      break;
    }
  }
  return folders;
}

}  // namespace

TypeNames types_of(const kernel_source::Outline& outline) {
  static const std::regex kTypedef("typedef\\s+([A-Za-z_0-9 ]{1,60})\\s+([A-Za-z_0-9]{1,60})\\s*;");
  static const std::regex kUsing("using\\s+([A-Za-z_0-9]{1,60})\\s*=\\s*([A-Za-z_0-9 ]{1,60}?)\\s*;");
  TypeNames types;
  const std::string text = one_blank(outline.outside);
  for (std::sregex_iterator it(text.begin(), text.end(), kTypedef), end; it != end; ++it)
    types[(*it)[2].str()] = (*it)[1].str();
  for (std::sregex_iterator it(text.begin(), text.end(), kUsing), end; it != end; ++it)
    types[(*it)[1].str()] = (*it)[2].str();
  for (const kernel_source::Macro& macro : outline.macros)
    if (!macro.takes_arguments && element_of(macro.value)) types[macro.name] = macro.value;
  return types;
}

std::string unqualified(const std::string& type) {
  std::string plain;
  for (const std::string& part : split(type, ' ')) {
    static const std::set<std::string> kQualifiers{"__global", "global",    "__constant", "constant", "__local",
                                                   "local",    "__private", "const",      ""};
    if (!kQualifiers.contains(part)) plain += (plain.empty() ? "" : " ") + part;
  }
  return plain;
}

std::string resolved(const TypeNames& types, const std::string& type) {
  const auto known = types.find(unqualified(type));
  return known == types.end() ? type : known->second;
}

std::optional<Element> element_of(const std::string& type) {
  std::string plain = unqualified(type);
  for (const char* prefix : {"std::", "cl_"})  // cl_float: of an OpenCL host
    if (plain.starts_with(prefix)) plain.erase(0, std::string_view(prefix).size());
  if (plain.starts_with("uint8["))  // of a structure: add_structures
    return Element{"uint8", static_cast<int>(whole_number(plain.substr(6, plain.size() - 7)).value_or(1))};
  if (plain == "bool") return Element{"uint8", 1};
  for (const char* complex : {" complex", " _Complex"})
    if (plain.ends_with(complex) && vector_type(plain.substr(0, plain.find(' '))))
      return Element{element_of(plain.substr(0, plain.find(' ')))->type, 2};
  if (const auto known = vector_type(plain)) return Element{to_string(known->first), known->second};
  return std::nullopt;
}

std::string with_sizes_of_types(const TypeNames& types, const std::string& expression) {
  static const std::regex kSizeof("sizeof\\s*\\(([A-Za-z_0-9 ]{1,60})\\)");
  std::string result;
  std::smatch match;
  std::string rest = one_blank(expression);
  while (std::regex_search(rest, match, kSizeof)) {
    const auto element = element_of(resolved(types, std::string(trimmed(match[1].str()))));
    result += match.prefix().str();
    result += element ? std::to_string(size_of(*element_type(element->type)) * static_cast<std::size_t>(element->width))
                      : match[0].str();
    rest = match.suffix().str();
  }
  return result + rest;
}

const SourceLanguage* known_language(const std::filesystem::path& file) {
  static const std::map<std::string, SourceLanguage> kLanguages{
      {".cu", {"cuda", false, {"__global__"}, "__CUDACC_RTC__"}},
      {".cuh", {"cuda", false, {"__global__"}, "__CUDACC_RTC__"}},
      {".hip", {"hip", false, {"__global__"}, "__HIPCC_RTC__"}},
      {".cl", {"opencl", false, {"__kernel", "kernel"}, "__OPENCL_VERSION__"}},
      {".c", {"c", true, {}, ""}},
      {".cpp", {"cpp", true, {}, ""}},
      {".cc", {"cpp", true, {}, ""}},
      {".cxx", {"cpp", true, {}, ""}}};
  const auto found = kLanguages.find(file.extension().string());
  return found == kLanguages.end() ? nullptr : &found->second;
}

DraftSource read_draft_source(const std::string& text, const std::filesystem::path& file, const std::string& wanted,
                              const HostProgram& host, const std::vector<std::filesystem::path>& include_folders) {
  const SourceLanguage* const language = known_language(file);
  if (!language)
    throw UserError(
        fmt::format("{}: no first problem file can be written for this kind of source; it can be for .cu, .cuh, "
                    ".hip, .cl, .c and .cpp; give a header with a kernel one of these endings (the page \"The problem "
                    "file\" of the documentation describes the rest); {}",
                    file.string(), kWholeProgram));
  std::vector<std::string> folders{file.has_parent_path() ? file.parent_path().string() : "."};
  for (const auto& folder : include_folders) folders.push_back(folder.string());
  const std::vector<std::string> words = words_of_build(host.text);
  for (const std::string& folder : folders_of_build(words, host.file))
    if (std::ranges::find(folders, folder) == folders.end()) folders.push_back(folder);
  std::string headers;
  const std::vector<IncludedFile> included = included_files(text, folders);
  for (const IncludedFile& header : included) headers += header.text + "\n";
  const std::vector<kernel_source::Macro> built = macros_of_build(host);
  std::string defines;
  for (const kernel_source::Macro& macro : built)
    if (!macro.value.empty() && macro.name != macro.value)
      defines += fmt::format("#define {} {}\n", macro.name, macro.value);
  const std::string program = host.file.extension() == ".py" ? python_as_c(host.text) : host.text;
  const std::string all = headers + text + "\n" + defines + ";\n" + program;
  std::string compiled = kernel_source::source_with_macro(text, language->macro);
  const InsertedHeader header = insert_header_of_kernel(compiled, *language, wanted, included);
  const kernel_source::Outline outline = kernel_source::outline_of(compiled);
  Function kernel = kernel_of(outline, *language, wanted, file, included, host.text);
  std::vector<kernel_source::Macro> macros = outline.macros, more = kernel_source::outline_of(headers).macros;
  macros.insert(macros.end(), more.begin(), more.end());
  kernel.body = without_casts(with_macros_expanded(std::move(kernel.body), macros));
  const auto parameters = kernel_source::parameters_of(kernel.parameters, true);
  if (std::ranges::any_of(parameters, [](const auto& parameter) { return parameter.name.empty(); }))
    throw UserError(fmt::format("{}: a parameter of {} has no name", file.string(), kernel.name));
  DraftSource source{file,
                     host.file,
                     folders,
                     *language,
                     all,
                     compiled,
                     outline,
                     kernel,
                     parameters,
                     built,
                     options_of_build(words),
                     language->key == "opencl" ? opencl_launch(all, kernel.name)
                     : language->for_host      ? host_call(all, kernel.name, parameters.size())
                                               : source_launch(all, kernel.name),
                     KernelUse(kernel.body),
                     kernel_source::identifiers_of_kernel(headers + compiled, kernel.name)};
  source.header = header;
  split_structures(source);
  return source;
}

std::string DraftSource::place(int line) const {
  if (header.lines == 0 || line < header.line) return fmt::format("{}:{}", file.string(), line);
  if (line < header.line + header.lines) return fmt::format("{}:{}", header.path.string(), line - header.line + 1);
  return fmt::format("{}:{}", file.string(), line - header.lines + 1);
}

std::string DraftSource::set_to(const std::string& variable) const {
  const std::vector<std::size_t> places = ends_of(all, variable, launch.at);
  for (auto behind = places.rbegin(); behind != places.rend(); ++behind)  // the last before the launch
    if (std::string value = initialiser_at(all, *behind); !value.empty())
      return ends_of(value, variable, value.size()).empty() ? value : std::string();
  return {};
}

std::string DraftSource::built_with(const std::string& macro) const {
  const auto found = std::ranges::find(built, macro, &kernel_source::Macro::name);
  return found == built.end() ? std::string() : found->value;
}

std::string DraftSource::unread_value(const std::string& macro) const {
  const bool given = std::ranges::count(built, macro, &kernel_source::Macro::name) > 0;
  const std::string expression = built_with(macro);
  return !given || (!expression.empty() && value(expression))
             ? std::string()
             : fmt::format("; the value that {} gives it was not understood", launch_file());
}

bool DraftSource::returns_void() const { return has_no_result(kernel); }

std::size_t DraftSource::argument_count() const {
  std::size_t count = parameters.size() + structures.size();
  for (const Structure& structure : structures) count -= structure.members.size();
  return count;
}

std::string DraftSource::launched_number(const std::string& parameter) const {
  const auto number = static_cast<std::size_t>(
      std::ranges::find(parameters, parameter, &kernel_source::Parameter::name) - parameters.begin());
  if (number >= launch.arguments.size()) return {};
  const std::string& argument = launch.arguments[number];
  if (const auto whole = value(argument)) return std::to_string(*whole);
  std::string found = literal(argument);
  const std::string plain = kernel_source::blank_comments(all);
  for (const std::size_t behind : ends_of(plain, argument, launch.at)) {  // the last value before the launch
    if (const std::string given = literal(initialiser_at(plain, behind)); !given.empty()) found = given;
  }
  if (!found.empty()) return found;
  try {
    const std::string numbers = with_numbers(plain, without_casts(argument), launch.at);
    const double result = numbers.empty() ? NAN : Expression::parse(numbers).evaluate_real([](std::string_view) {
      return static_cast<const Value*>(nullptr);
    });
    return std::isfinite(result) ? fmt::format("{}", result) : std::string();
  } catch (const UserError&) {  // not an expression after all
    return {};
  }
}

std::string DraftSource::changing_value(const std::string& parameter) const {
  const auto number = static_cast<std::size_t>(
      std::ranges::find(parameters, parameter, &kernel_source::Parameter::name) - parameters.begin());
  if (number >= launch.arguments.size()) return {};
  const std::string text = kernel_source::blank_comments(all);
  for (const std::size_t behind : ends_of(text, "for", launch.at)) {
    const std::size_t open = next_character(text, behind);
    const bool python = open < text.size() && text[open] != '(';
    std::size_t end = python ? std::min(text.find(':', open), text.size()) : open;
    for (int depth = 0; !python && end < launch.at; ++end) {
      depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
      if (depth == 0) break;
    }
    if (end >= launch.at) continue;
    std::string head = text.substr(open, end - open);
    const std::size_t first = head.find(python ? " in " : ";"), last = head.rfind(';');
    if (first == std::string::npos) continue;
    head = head.substr(0, first) + (python ? std::string() : head.substr(last));  // without the condition
    bool inside = kernel_source::identifiers_in(head).contains(launch.arguments[number]);
    int braces = 0, brackets = 0;
    for (std::size_t at = end + 1; inside && !python && at < launch.at; ++at) {
      brackets += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
      braces += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
      inside = braces > 0 || (braces == 0 && text[at] != '}' && (text[at] != ';' || brackets > 0));
    }
    if (inside)
      return fmt::format("one of the values of a loop, as it changes from launch to launch in {}", launch_file());
  }
  return {};
}

}  // namespace ergotune::draft
